"""Greedy connections: what is answered late, what is merged, what pauses reading, and that all of it ends."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from intercomd.core import effects, events
from libintercom.wire.codec import decode_request
from libintercom.wire.frames import encode_json
from tests.support.conversation import Conversation
from tests.support.sayings import list_sessions, presence, register, stats


def health(size_bytes: int, request_id: str = "h") -> dict[str, Any]:
    """A frame of so many bytes that costs nothing but its size."""
    return {"type": "health", "requestId": request_id, "padding": "x" * (size_bytes - 60)}


def types(talk: Conversation, conn: str) -> list[str]:
    return [frame["type"] for frame in talk.receives(conn)]


def watched(talk: Conversation) -> list[effects.Effect]:
    """What the broker asks for from now on, without what it writes."""
    seen: list[effects.Effect] = []
    carry_out = talk.carry_out

    def watch(effect: effects.Effect) -> None:
        if not isinstance(effect, effects.Write | effects.WriteRows | effects.Log):
            seen.append(effect)
        carry_out(effect)

    talk.carry_out = watch  # type: ignore[method-assign]
    return seen


def row_of(talk: Conversation, conn: str, name: str) -> dict[str, Any]:
    (answer,) = talk.says(conn, list_sessions()).receives(conn)
    return next(row for row in answer["sessions"] if row.get("name") == name)


def greedy(**limits: float) -> Conversation:
    """A session that has used up its bytes: 1,000 at once, 100 a second."""
    talk = Conversation(**{"input_burst_bytes": 1_000, "input_bytes_per_s": 100.0, **limits})
    return talk.joins("a", "alice", ext=1).joins("b", "bob").after(60)


def test_a_list_over_the_budget_is_answered_when_it_is_refilled() -> None:
    talk = greedy().says("a", health(1_100), list_sessions("l1"))
    assert types(talk, "a") == ["health_ok"]
    talk.after(1.0).expects_nothing("a").after(1.0)
    assert types(talk, "a") == ["sessions"]


def test_a_list_is_answered_within_two_seconds_however_far_over_the_budget() -> None:
    talk = greedy().says("a", *[health(400)] * 4, list_sessions("l1"), list_sessions("l2"))
    talk.receives("a")
    talk.after(1.999).expects_nothing("a").after(0.001)
    assert [frame["requestId"] for frame in talk.receives("a")] == ["l1", "l2"]


def test_far_over_the_budget_nothing_is_read_until_it_is_refilled() -> None:
    talk = greedy().says("a", *[health(500)] * 4)
    assert talk.is_reading("a")
    talk.says("a", health(500))
    assert not talk.is_reading("a")
    talk.after(14)
    assert not talk.is_reading("a")
    talk.after(2)
    assert talk.is_reading("a")


def test_nobody_is_disconnected_for_speed() -> None:
    talk = greedy()
    for _round in range(50):
        talk.says("a", *[health(800)] * 10).after(0.5)
    talk.expects_open("a", "b").after(5_000)
    assert len(types(talk, "a")) == 500


@pytest.mark.parametrize("uptime_s", [0.0, 1e5, 3.3e7])
def test_a_refilled_budget_lets_go_whatever_the_clock_rounds(uptime_s: float) -> None:
    """The level at the deadline may be a hair below zero: waiting for that hair must not be for ever."""
    for size_bytes in range(1_000, 1_060, 7):
        talk = Conversation(input_burst_bytes=1_000, input_bytes_per_s=1_000_003.7)
        talk.now += uptime_s
        talk.joins("a").says("a", health(1_000), health(1_000), health(size_bytes))
        assert not talk.is_reading("a")
        talk.after(1)
        assert talk.is_reading("a")


def test_presence_over_the_budget_is_merged_and_the_last_wins() -> None:
    talk = greedy().says("a", health(1_100))
    talk.says("a", presence(status="one", pendingAsks=1), presence(status="two"), presence(status="three"))
    assert row_of(talk, "b", "alice").get("status") is None
    talk.after(2)
    row = row_of(talk, "b", "alice")
    assert (row["status"], row["pendingAsks"]) == ("three", 1)


def test_presence_after_a_late_one_does_not_overtake_it() -> None:
    talk = greedy().says("a", health(1_050), presence(status="one"))
    talk.says("a", presence(status="two")).after(2)
    assert row_of(talk, "b", "alice")["status"] == "two"


def test_a_late_presence_that_is_invalid_drops_the_connection() -> None:
    talk = greedy().says("a", health(1_100), presence(status="bad\x1b"))
    talk.expects_open("a").after(2).expects_closed("a")


def test_nothing_late_is_owed_to_who_unregistered() -> None:
    talk = greedy().says("a", health(1_100), list_sessions(), presence(status="late"), {"type": "unregister"})
    assert types(talk, "a") == ["health_ok"]
    assert not talk.router.flow.late
    talk.says("a", register("again", id="session-a", ext=1)).after(3)
    assert types(talk, "a") == ["registered"]
    talk.receives("b")
    assert row_of(talk, "b", "again").get("status") is None


def test_nothing_late_is_owed_to_who_is_gone() -> None:
    talk = greedy().says("a", health(1_100), list_sessions(), presence(status="late")).hangs_up("a")
    assert not talk.router.flow.late
    deadlines = talk.router.state.deadlines.keys()
    assert not any(key[0] == "late" for key in deadlines)


@pytest.mark.parametrize("query", [list_sessions, stats, lambda: {"type": "dead_letters", "requestId": "d"}])
def test_every_query_with_a_big_answer_is_late_over_the_budget(query: Any) -> None:
    talk = greedy().says("a", health(1_100), query())
    assert types(talk, "a") == ["health_ok"]
    talk.after(2)
    assert len(types(talk, "a")) == 1


def in_one_read(talk: Conversation, conn: str, *frames: dict[str, Any]) -> Conversation:
    """Frames that were all cut before the broker could pause the connection."""
    payloads = [encode_json(frame) for frame in frames]
    number, at_ms = talk.number(conn), talk.at_ms
    return talk.happens(
        *[events.FrameReceived(number, decode_request(payload), len(payload), at_ms) for payload in payloads]
    )


def test_the_answers_to_a_flood_of_queries_come_a_few_at_a_time() -> None:
    """What one read can ask for must not be written all at once: each answer may be a megabyte."""
    talk = in_one_read(greedy(), "a", health(1_100), *[list_sessions(f"l{at}") for at in range(100)])
    assert not talk.is_reading("a")
    assert types(talk, "a") == ["health_ok"]
    most, answered = 0, 0
    for _round in range(1_000):
        talk.after(0.5)
        got = len(types(talk, "a"))
        most, answered = max(most, got), answered + got
    assert answered == 100
    assert most <= 16
    talk.after(1_000)
    assert talk.is_reading("a")


def test_the_answers_to_a_flood_wait_for_whoever_does_not_read() -> None:
    talk = greedy(recipient_bytes=2_000)
    in_one_read(talk, "a", health(1_100), *[list_sessions(f"l{at}") for at in range(50)]).receives("a")
    talk.holds("a").happens(events.OutputProgressed(1, 2_001, has_moved=False)).after(19)
    assert talk.listener.sockets[1].waiting_bytes == 0
    talk.reads("a").happens(events.OutputProgressed(1, 0, has_moved=True)).after(100)
    assert len(types(talk, "a")) == 50


def test_reading_is_paused_once_whatever_the_reasons() -> None:
    """Every order of reasons coming and going: paused exactly while one is left."""
    for order in itertools.permutations(["output", "partial", "output over", "partial over"]):
        talk = Conversation(recipient_bytes=1_000, partial_bytes=100).joins("a")
        seen, reasons = watched(talk), set()
        for step in order:
            kind, *over = step.split()
            (reasons.discard if over else reasons.add)(kind)
            _pauses(talk, kind, is_over=bool(over))
            assert talk.is_reading("a") is not bool(reasons), order
        kinds = [type(effect) for effect in seen]
        assert all(one is not other for one, other in itertools.pairwise(kinds))


def _pauses(talk: Conversation, kind: str, *, is_over: bool) -> None:
    if kind == "output":
        talk.happens(events.OutputProgressed(1, 0 if is_over else 1_001, has_moved=is_over))
    else:
        talk.happens(events.FrameBegun(1, 0 if is_over else 101))
