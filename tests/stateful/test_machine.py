"""Long random plays of the core."""

from __future__ import annotations

from tests.stateful.machine import STEPS, Play

TestPlay = Play.TestCase


def test_plays_are_long():
    assert STEPS >= 40
