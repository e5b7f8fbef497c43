"""Accepted = terminals + gauges after every step, and a step that breaks it shows."""

from __future__ import annotations

import itertools

import pytest

from intercomd.core.counters import GAUGES, TERMINALS, Counters
from tests.support.conversation import Conversation
from tests.support.sayings import ask, replace, send, stats

PLACES = ("delivered", "dead_expired", "buffered", "staged")


def test_every_short_history_stays_balanced() -> None:
    for accepted in itertools.product(PLACES, repeat=3):
        for moved in itertools.product(PLACES, repeat=2):
            counters = Counters()
            for place in accepted:
                counters.accept(place)
            for place in moved:
                gauge = next((name for name in GAUGES if counters.held[name]), None)
                if gauge:
                    counters.move(gauge, place)
            assert counters.is_balanced
            assert counters.counts["accepted"] == 3


@pytest.mark.parametrize("wrong", ["lost", "invented", "negative"])
def test_a_wrong_step_shows(wrong: str) -> None:
    counters = Counters()
    counters.accept("staged")
    assert counters.is_balanced
    if wrong == "lost":
        counters.held["staged"] -= 1
    elif wrong == "invented":
        counters.counts["delivered"] += 1
    else:
        counters.move("buffered", "delivered")
    assert not counters.is_balanced


def test_every_reason_of_a_dead_letter_is_a_terminal() -> None:
    assert {name.removeprefix("dead_") for name in TERMINALS if name.startswith("dead_")} == {
        "recipient_left",
        "expired",
        "discarded",
        "store_failed",
    }


def test_refusals_are_counted_by_code_and_are_no_part_of_the_equation() -> None:
    counters = Counters()
    counters.refuse("not_found")
    counters.refuse("not_found")
    assert counters.refused == {"not_found": 2}
    assert counters.counts["accepted"] == 0
    assert counters.is_balanced


def told(talk: Conversation) -> dict[str, dict[str, int]]:
    talk.receives("a")
    (answer,) = talk.says("a", stats()).receives("a")
    return {"counters": answer["counters"], "gauges": answer["gauges"]}


def test_what_stats_tell_adds_up_at_every_step_of_a_messages_life() -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob", status="idle")
    steps = [
        lambda: talk.says("a", send("bob", "m1")),
        lambda: talk.says("a", replace("bob", "m2", "t")),
        lambda: talk.says("a", replace("bob", "m3", "t")),
        lambda: talk.after(2),
        lambda: talk.holds("b").says("a", send("bob", "m4")),
        lambda: talk.says("a", replace("bob", "m5", "t")),
        lambda: talk.after(2),
        lambda: talk.reads("b"),
        lambda: talk.holds("b").says("a", ask("bob", "m6")),
        lambda: talk.says("a", replace("bob", "m7", "t")),
        lambda: talk.hangs_up("b"),
        lambda: talk.says("a", send("bob", "m8")),
    ]
    for step in steps:
        step()
        now = told(talk)
        terminals = sum(now["counters"][name] for name in TERMINALS)
        assert now["counters"]["accepted"] == terminals + sum(now["gauges"][name] for name in GAUGES)
    assert {name: now["counters"][name] for name in ("accepted", "delivered", "replaced", "dead_recipient_left")} == {
        "accepted": 7,
        "delivered": 4,
        "replaced": 1,
        "dead_recipient_left": 2,
    }
    assert now["counters"]["refused_not_found"] == 1
