"""Sends of one read together: the same as each alone, whatever forbids one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercomd.core import effects, events
from libintercom.wire.messages import Content, Message
from tests.support.conversation import Conversation
from tests.support.sayings import ask, register_sibling, replace, reply, send

if TYPE_CHECKING:
    from tests.support.matching import Json

# Different ones are reached first.
LIMITS: dict[str, dict[str, Any]] = {
    "the sender's": {"send_burst": 14, "sends_per_s": 1.0, "input_burst_bytes": 4_000},
    "the pair's": {"pair_messages": 5, "dedupe_per_sender": 5, "dedupe_s": 30.0},
    "the recipient's messages": {"recipient_messages": 2},
    "the recipient's bytes": {"recipient_bytes": 1_500},
    "everybody's bytes": {"outbound_bytes": 2_000},
}
_IDS = st.sampled_from([f"m{number}" for number in range(8)])
_TARGETS = st.sampled_from(["bob", "bob", "bob", "session-b", "carol", "sibling", "alice", "nobody", "b"])
_TEXTS = st.sampled_from(["hello", "hello", "other", "x" * 900])
_FRAMES = st.one_of(
    st.builds(send, _TARGETS, _IDS, _TEXTS),
    st.builds(send, st.just("bob"), _IDS, _TEXTS),
    st.builds(send, st.just("bob"), st.integers(0, 99).map(str)),
    st.builds(ask, _TARGETS, _IDS),
    st.builds(reply, _TARGETS, _IDS, _IDS),
    st.builds(replace, _TARGETS, _IDS, st.sampled_from(["t", "u"])),
    st.just({"type": "list", "requestId": "r"}),
)
_STEPS = st.one_of(
    st.tuples(st.just("says"), st.sampled_from(["a", "b", "s"]), st.lists(_FRAMES, min_size=1, max_size=8)),
    st.tuples(st.just("holds"), st.sampled_from(["b", "c"]), st.sampled_from([0, 300, 1_000])),
    st.tuples(st.just("reads"), st.sampled_from(["b", "c"]), st.none()),
    st.tuples(st.just("after"), st.none(), st.sampled_from([0.001, 1.5, 40.0])),
)


def cast(*, gathers: bool, **limits: Any) -> Conversation:
    talk = (
        Conversation(gathers=gathers, **limits).joins("a", "alice", ext=1).joins("b", "bob").joins("c", "carol", ext=1)
    )
    talk.says("s", register_sibling("sibling"))
    for conn in "abcs":
        talk.receives(conn)
    return talk


def play(talk: Conversation, steps: list[tuple[Any, ...]]) -> list[Json]:
    """What everybody received after each step, and what is counted at the end."""
    seen: list[Json] = []
    for kind, conn, detail in steps:
        if kind == "says":
            talk.says(conn, *detail)
        elif kind == "holds":
            talk.holds(conn, detail)
        elif kind == "reads":
            talk.reads(conn)
        else:
            talk.after(detail)
        seen.append({conn: [plain(frame) for frame in talk.receives(conn)] for conn in "abcs"})
    state = talk.router.state
    pairs = {pair: window.total for pair, window in state.quotas._pairs.items()}
    return [*seen, state.counters.counts, state.counters.held, state.counters.refused, pairs, state.quotas.held_bytes]


def plain(frame: Json) -> Json:
    """Sends of one read have the row of the first, so the time of the last message may be an earlier one."""
    for row in (frame.get("from"), *frame.get("sessions", ())):
        if row:
            row.pop("lastIntercomActivity")
    return frame


@pytest.mark.parametrize("tight", LIMITS)
@settings(max_examples=80, deadline=None)
@given(steps=st.lists(_STEPS, min_size=1, max_size=12))
def test_a_burst_is_what_its_sends_are_one_by_one(tight: str, steps: list[tuple[Any, ...]]) -> None:
    together, alone = cast(gathers=True, **LIMITS[tight]), cast(gathers=False, **LIMITS[tight])
    assert play(together, steps) == play(alone, steps)
    assert together.router.state.counters.is_balanced


def sent(to: str, message_id: str, **members: Any) -> events.Sent:
    message = Message(id=message_id, timestamp=1, content=Content(text="t"), **members)
    return to, message, b'{"id":"%b"}' % message_id.encode(), 100


def asked(talk: Conversation, *sends: events.Sent) -> list[effects.Effect]:
    return talk.router.handle(events.SendsReceived(talk.number("a"), talk.at_ms, list(sends)), talk.now)


def test_neighbours_with_one_target_are_one_effect() -> None:
    talk = cast(gathers=True)
    first, second, third = asked(talk, sent("bob", "m1"), sent("bob", "m2"), sent("carol", "m3"), sent("bob", "m4"))
    assert isinstance(first, effects.DeliverAll)
    assert (first.conn, list(first.tokens), first.messages) == (2, [1, 2], [b'{"id":"m1"}', b'{"id":"m2"}'])
    assert isinstance(second, effects.DeliverAll)
    assert (second.conn, list(second.tokens)) == (3, [3])
    assert isinstance(third, effects.DeliverAll)
    assert (third.conn, list(third.tokens)) == (2, [4])


def test_they_are_acknowledged_together_when_all_were_taken() -> None:
    talk = cast(gathers=True)
    (deliver,) = asked(talk, sent("bob", "m1"), sent("bob", "m2"))
    assert isinstance(deliver, effects.DeliverAll)
    told = talk.router.handle(events.DeliveriesTaken(tuple(deliver.tokens)), talk.now)
    assert told == [effects.Acknowledge(1, ["m1", "m2"])]
    assert len(talk.router.deliveries) == 0


def test_a_send_before_registering_ends_the_connection() -> None:
    talk = cast(gathers=True).connects("d")
    talk.happens(events.SendsReceived(talk.number("d"), talk.at_ms, [sent("bob", "m1")])).expects_closed("d")
    talk.expects_nothing("b")
    assert talk.router.handle(events.SendsReceived(99, talk.at_ms, [sent("bob", "m1")]), talk.now) == []


def test_an_observer_is_told_that_it_may_not() -> None:
    talk = cast(gathers=True).joins("o", "watcher", observer=1, ext=1)
    talk.happens(events.SendsReceived(talk.number("o"), talk.at_ms, [sent("bob", "m1"), sent("bob", "m2")]))
    assert [frame["code"] for frame in talk.receives("o")] == ["not_registered"] * 2


@pytest.mark.parametrize("count", [1, 3])
def test_a_frame_that_was_completed_gives_the_next_one_its_own_time(count: int) -> None:
    talk = cast(gathers=True, frame_timeout_s=30.0)
    talk.happens(events.FrameBegun(talk.number("a"), 10)).after(29)
    sends = [sent("bob", f"m{number}") for number in range(count)]
    talk.happens(events.SendsReceived(talk.number("a"), talk.at_ms, sends))
    talk.after(29).expects_open("a").after(2).expects_closed("a")


def test_gathered_or_not_the_requests_are_the_same() -> None:
    """The fixture itself: a usual send in a conversation that gathers comes as ``SendsReceived``."""
    seen: list[type] = []
    talk = cast(gathers=True)
    handle = talk.router.handle

    def note(event: events.Event, now: float) -> list[effects.Effect]:
        seen.append(type(event))
        return handle(event, now)

    talk.router.handle = note  # type: ignore[method-assign]
    talk.says("a", send("bob", "m1"), send("bob", "m2"), {"type": "list", "requestId": "r"}, send("bob", "m3"))
    assert seen[:3] == [events.SendsReceived, events.FrameReceived, events.SendsReceived]
