"""Sends of one read together: the same as each alone, whatever forbids one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercomd.core import effects, events
from libintercom.wire.messages import Content, Message
from tests.support.conversation import Conversation
from tests.support.group import ROOT, TOKEN, Group, keep, park
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
    return begun(talk, "abcs")


def begun(talk: Conversation, conns: str) -> Conversation:
    """Everybody spoke before, so that a row is as long in the first message of a burst as in the others."""
    for conn in conns:
        talk.receives(conn)
    for session in talk.router.state.roster.sessions.values():
        session.row.exchanged(talk.at_ms)
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
        elif kind == "after":
            talk.after(detail)
        else:
            change_group(talk, kind)
        seen.append({conn: [plain(frame) for frame in talk.receives(conn)] for conn in talk._numbers})
    state, kept = talk.router.state, {key: (item.kind, item.message) for key, item in talk.kept_items.items()}
    pairs = {pair: window.total for pair, window in state.quotas._pairs.items()}
    counts = [state.counters.counts, state.counters.held, state.counters.refused]
    return [*seen, *counts, pairs, state.quotas.held_bytes, kept]


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


# Different ones are reached first; ``kid`` is parked, so that what is said to it goes through the spool.
GROUP_LIMITS: dict[str, dict[str, Any]] = {
    "the child's": {"parked_messages": 3},
    "the recipient's messages": {"recipient_messages": 2},
    "everybody's bytes": {"outbound_bytes": 2_500},
    "kept asks": {"kept_asks": 1},
}
_GUARD = {"rootSessionId": "root-b", "peerId": "session-b", "incarnation": "i1", "applicationGuard": "v1"}
_GUARDED: dict[str, Any] = {"guard": _GUARD, "expectsReply": False, "delivery": "steer"}
_MEMBERS = st.sampled_from(["session-b", "session-b", "bob", "carol", "child-001", "child-001", "kid", "alice"])
_GROUP_FRAMES = st.one_of(
    st.builds(send, _MEMBERS, _IDS, _TEXTS),
    st.builds(send, st.just("child-001"), st.integers(0, 99).map(str)),
    st.builds(send, _MEMBERS, _IDS, replyToken=st.just(TOKEN), keepReplyMs=st.just(60_000)),
    st.builds(send, _MEMBERS, _IDS, **{name: st.just(value) for name, value in _GUARDED.items()}),
    st.builds(ask, _MEMBERS, _IDS),
    st.builds(keep, _MEMBERS, _IDS),
    st.builds(reply, _MEMBERS, _IDS, _IDS),
    st.builds(replace, _MEMBERS, _IDS, st.sampled_from(["t", "u"])),
    st.just(park()),
    st.just({"type": "list", "requestId": "r"}),
)
_GROUP_STEPS = st.one_of(
    st.tuples(st.just("says"), st.sampled_from(["a", "a", "b", "c"]), st.lists(_GROUP_FRAMES, min_size=1, max_size=8)),
    st.tuples(st.sampled_from(["kid comes", "kid goes", "kid holds", "kid reads"]), st.none(), st.none()),
    st.tuples(st.sampled_from(["spool waits", "spool stores"]), st.none(), st.none()),
    st.tuples(st.just("holds"), st.sampled_from(["b", "c"]), st.sampled_from([0, 300, 1_000])),
    st.tuples(st.just("reads"), st.sampled_from(["b", "c"]), st.none()),
    st.tuples(st.just("after"), st.none(), st.sampled_from([0.001, 1.5, 40.0])),
)


# Every other run begins with input that is being stored for a child that is back: the barrier.
_BEGINNINGS: list[list[tuple[Any, ...]]] = [
    [],
    [("spool waits", None, None), ("says", "a", [send("child-001", "first")]), ("kid comes", None, None)],
]


def group(*, gathers: bool, **limits: Any) -> Conversation:
    """``alice`` is the main of a parked child; ``bob`` and ``carol`` read guarded rows, and may be guarded."""
    guarded = {"guardedDelivery": 1, "incarnation": "i1", "applicationGuard": "v1"}
    talk = Conversation(gathers=gathers, **limits)
    talk.joins("a", "alice", ext=1, rootSessionId=ROOT, guardedDelivery=1)
    talk.joins("b", "bob", rootSessionId="root-b", **guarded).joins("c", "carol", ext=1, **guarded)
    talk.says("kid 0", Group.registration()).says("a", park()).hangs_up("kid 0")
    return begun(talk, "abc")


def change_group(talk: Conversation, kind: str) -> None:
    """The child comes, goes, or is slow; the spool takes its time, or answers."""
    number = sum(conn.startswith("kid") for conn in talk._numbers)
    kid = f"kid {number - 1}"
    if kind.startswith("spool"):
        talk.spool = kind.removeprefix("spool ")
        if talk.spool == "stores":
            talk.stores()
    elif kind == "kid comes" and talk.number(kid) not in talk.router.state.roster.connections:
        talk.says(f"kid {number}", Group.registration())
    elif talk.number(kid) in talk.router.state.roster.connections and kind != "kid comes":
        {"kid goes": talk.hangs_up, "kid holds": talk.holds, "kid reads": talk.reads}[kind](kid)


@pytest.mark.parametrize("tight", GROUP_LIMITS)
@settings(max_examples=80, deadline=None)
@given(beginning=st.sampled_from(_BEGINNINGS), steps=st.lists(_GROUP_STEPS, min_size=1, max_size=12))
def test_so_it_is_for_who_is_parked_guarded_or_asked_for_a_reply_to_keep(
    tight: str, beginning: list[tuple[Any, ...]], steps: list[tuple[Any, ...]]
) -> None:
    steps = beginning + steps
    together, alone = group(gathers=True, **GROUP_LIMITS[tight]), group(gathers=False, **GROUP_LIMITS[tight])
    assert play(together, steps) == play(alone, steps)
    assert together.router.state.counters.is_balanced


def test_a_burst_to_a_parked_child_is_stored_message_by_message() -> None:
    talk = group(gathers=True)
    asked_for = asked(talk, sent("child-001", "m1"), sent("child-001", "m2"), sent("carol", "m3"))
    assert [type(effect) for effect in asked_for] == [effects.Store, effects.Store, effects.DeliverAll]


def test_a_burst_waits_behind_what_is_being_stored_for_a_child_that_is_back() -> None:
    talk = group(gathers=True)
    talk.spool = "waits"
    talk.says("a", send("child-001", "m1")).says("kid 1", Group.registration())
    assert {type(effect) for effect in asked(talk, sent("child-001", "m2"), sent("child-001", "m3"))} == {effects.Store}
    talk.stores()
    assert {type(effect) for effect in asked(talk, sent("child-001", "m4"))} == {effects.Store}


@pytest.mark.parametrize(("to", "is_extended"), [("bob", False), ("carol", True)])
def test_who_reads_guarded_rows_gets_one_in_a_burst(to: str, is_extended: bool) -> None:
    talk = group(gathers=True)
    row = talk.router.state.roster.sessions["session-a"].row
    (deliver,) = asked(talk, sent(to, "m1"), sent(to, "m2"))
    assert isinstance(deliver, effects.DeliverAll)
    assert deliver.sender == row.render(is_extended=is_extended, is_guarded=True)
    assert b'"guardedDelivery":1' in deliver.sender


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
