"""Long random plays of the inbox."""

from __future__ import annotations

from tests.stateful.session.machine import STEPS, Play

TestPlay = Play.TestCase


def test_plays_are_long():
    assert STEPS >= 40
