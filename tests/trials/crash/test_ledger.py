"""What is a fence for what left the spool, and what is none."""

from __future__ import annotations

import pytest

from tests.trials.crash.broker_ledger import Input, Ledger, Question


def taken_away() -> Ledger:
    """A reply that was kept and acknowledged; a message that was dropped, whose letter nobody heard yet."""
    ledger = Ledger()
    ledger.inputs = {"m-1": Input("m-1", "sib", "kid", dropped="told"), "m-2": Input("m-2", "sib", "kid")}
    ledger.questions = {"q": Question("q", "t", "r", is_promised=True)}
    ledger.acknowledge("q")
    return ledger


def test_a_letter_heard_late_says_nothing_of_what_left_since() -> None:
    ledger = taken_away()
    ledger.promise_letter("sib", "m-1")
    ledger.begin_life()
    ledger.fetch("q", "replied", "r")
    assert ledger.violations == []


@pytest.mark.parametrize("promise", [lambda one: one.promise_park("kid"), lambda one: one.promise_input("m-2")])
def test_behind_a_later_promise_nothing_comes_back(promise) -> None:
    ledger = taken_away()
    promise(ledger)
    ledger.begin_life()
    ledger.fetch("q", "replied", "r")
    assert ledger.violations == ["life 1: the reply to q was taken away and is there again"]
