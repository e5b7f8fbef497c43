"""One turn: its effects, and the wall time that follows the monotonic clock."""

from __future__ import annotations

from intercomd.core.effects import Log, ResumeAccepting, Write
from intercomd.core.turn import Turn
from libintercom.wire.answers import SessionLeft


def test_effects_are_kept_in_the_order_they_were_asked_for() -> None:
    turn = Turn(10.0, 1_000)
    left = SessionLeft(session_id="a")
    turn.add(ResumeAccepting())
    turn.write(7, left)
    turn.log("info", "something", conn=7)
    assert turn.effects == [ResumeAccepting(), Write(7, left), Log("info", "something", {"conn": 7})]


def test_a_new_turn_has_no_effects_and_leaves_those_of_the_last_alone() -> None:
    turn = Turn(10.0, 1_000)
    turn.add(ResumeAccepting())
    before = turn.effects
    turn.begin(11.0)
    assert turn.effects == []
    assert before == [ResumeAccepting()]


def test_wall_time_follows_the_monotonic_clock() -> None:
    turn = Turn(10.0, 1_700_000_000_000)
    turn.begin(12.5)
    assert turn.at_ms == 1_700_000_002_500


def test_a_wall_clock_that_was_set_is_believed() -> None:
    turn = Turn(10.0, 1_700_000_000_000)
    turn.begin(11.0)
    turn.learn_wall_time(1_600_000_000_000)
    turn.begin(11.5)
    assert turn.at_ms == 1_600_000_000_500
