"""Waiting for an append: told once, in whichever order of asking and settling."""

from __future__ import annotations

import threading

import pytest

from libintercom.errors import TimedOut
from libintercom.session.journal import JournalFailed, Pending


def test_who_asks_before_and_who_asks_after_is_told_once() -> None:
    pending = Pending(threading.Lock())
    told: list[object] = []
    pending.add_done(told.append)
    pending.settle()
    pending.add_done(told.append)
    pending.settle()
    assert told == [None, None]


def test_a_failure_is_told_and_raised() -> None:
    pending, failure = Pending(threading.Lock()), JournalFailed("/j", "the disk is full")
    told: list[object] = []
    pending.add_done(told.append)
    assert pending.failure is None
    pending.settle(failure)
    assert told == [failure]
    with pytest.raises(JournalFailed, match="the disk is full"):
        pending.wait(1)


def test_waiting_ends_with_its_time() -> None:
    with pytest.raises(TimedOut, match="storing entries in the journal"):
        Pending(threading.Lock()).wait(0.01)
