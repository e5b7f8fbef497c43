"""The router itself: which frames may come when, what ends a connection, and that it can be copied."""

from __future__ import annotations

import copy
import itertools
import types
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.core import effects, events
from libintercom.wire import requests
from libintercom.wire.connection import BROKER_TABLE
from libintercom.wire.requests import IGNORED_TYPES, REQUESTS
from tests.support.conversation import Conversation
from tests.support.sayings import ask, list_sessions, message, presence, register, replace, send, stats

if TYPE_CHECKING:
    from intercomd.core.router import Router

FRAMES: dict[str, dict[str, Any]] = {
    "register": register("again"),
    "unregister": {"type": "unregister"},
    "list": list_sessions(),
    "send": {"type": "send", "to": "nobody", "message": message("m1")},
    "presence": presence(status="x"),
    "health": {"type": "health", "requestId": "h"},
    "message_receipt": {
        "type": "message_receipt",
        "receipt": {"messageId": "m", "status": "injected", "timestamp": 1},
    },
    "cancel_message": {"type": "cancel_message", "messageId": "m"},
    "cancel_ask": {"type": "cancel_ask", "messageId": "m"},
    "extension": {"type": "extension_publish"},
    "stats": stats(),
    "dead_letters": {"type": "dead_letters", "requestId": "d"},
    "park": {"type": "park", "childId": "c"},
    "unpark": {"type": "unpark", "childId": "c", "discard": True},
    "wake_outcome": {"type": "wake_outcome", "childId": "c", "attempt": 1, "outcome": "started"},
    "fetch_reply": {"type": "fetch_reply", "requestId": "f", "messageId": "m", "replyToken": "0" * 32},
    "ack_reply": {"type": "ack_reply", "messageId": "m", "replyToken": "0" * 32},
    "read": {"type": "read", "requestId": "r", "kind": "last", "to": "nobody"},
    "read_response": {"type": "read_response", "token": "t", "kind": "last"},
}


def in_state(state: str) -> Conversation:
    talk = Conversation().connects("a")
    if state == "registered":
        talk.joins("a", "alice", ext=1)
    elif state == "observing":
        talk.joins("a", observer=1, ext=1)
    return talk


@pytest.mark.parametrize(
    ("state", "kind"), list(itertools.product(["unregistered", "registered", "observing"], FRAMES))
)
def test_every_frame_in_every_state(state: str, kind: str) -> None:
    talk = in_state(state).says("a", FRAMES[kind])
    assert talk.is_closed("a") is ((state, kind) not in BROKER_TABLE)


def test_every_frame_of_the_wire_is_in_that_table() -> None:
    assert {kind for _state, kind in BROKER_TABLE} == set(REQUESTS) | {requests.Ignored.type} == set(FRAMES)
    for kind in IGNORED_TYPES:
        in_state("registered").says("a", {"type": kind}).expects_open("a").expects_nothing("a")


def test_what_was_answered_by_what() -> None:
    talk = in_state("registered").says(
        "a", *[FRAMES[kind] for kind in ("list", "send", "health", "stats", "dead_letters")]
    )
    kinds = [frame["type"] for frame in talk.receives("a")]
    assert kinds == ["sessions", "delivery_failed", "health_ok", "stats_result", "dead_letters_result"]


def test_health_says_who_answers() -> None:
    for state in ("unregistered", "registered", "observing"):
        talk = in_state(state).says("a", FRAMES["health"])
        talk.expects("a", {"type": "health_ok", "requestId": "h", "protocol": "pi-intercom", "version": 1})


def test_frames_of_a_connection_that_is_being_closed_are_not_heard() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob")
    said = [list_sessions(), {"type": "bad"}, send("bob", "m1"), list_sessions("l2")]
    talk.says("a", *said).expects_closed("a").expects("b", {"type": "session_left", "sessionId": "session-a"})
    number = talk.number("a")
    assert talk.router.handle(events.FrameReceived(number, requests.Unregister(), 10, talk.at_ms), talk.now) == []


def test_a_bad_frame_closes_once_and_says_why_in_the_log() -> None:
    talk = Conversation().joins("a", "alice")
    number = talk.number("a")
    decided = talk.router.handle(events.FrameRejected(number, "not JSON"), talk.now)
    assert decided == [
        effects.Log("info", "connection ended", {"conn": number, "reason": "not JSON"}),
        effects.Close(number, "not JSON"),
    ]
    assert talk.router.handle(events.FrameRejected(number, "again"), talk.now) == []


def test_a_recipient_that_is_being_closed_fails_the_send() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob")
    talk.happens(
        events.FrameRejected(talk.number("b"), "bad"),
        events.FrameReceived(talk.number("a"), _send("bob", "m1"), 100, talk.at_ms, b"{}"),
    )
    left = {"type": "session_left", "sessionId": "session-b"}
    talk.expects("a", {"type": "delivery_failed", "code": "recipient_left", "messageId": "m1", "...": True}, left)


def _send(to: str, message_id: str) -> requests.Request:
    return requests.parse_request(send(to, message_id))


def test_a_decoders_twin_of_a_frame_acts_as_the_frame() -> None:
    class Twin(requests.Unregister):
        """What another codec makes of it."""

    talk = Conversation().joins("a", "alice").joins("b", "bob")
    talk.happens(events.FrameReceived(talk.number("a"), Twin(), 10, talk.at_ms))
    talk.expects("b", {"type": "session_left", "sessionId": "session-a"})


def test_nothing_waits_in_a_broker_with_idle_sessions() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").says("a", send("bob", "m1"), list_sessions())
    assert talk.router.next_deadline() is None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (ask("bob", "q1"), "ask"),
        (ask("bob", "q1", timeoutMs=0), None),
        (replace("bob", "m1", "t"), "stage"),
        (presence(status="x"), None),
    ],
)
def test_a_deadline_exists_when_something_waits(said: dict[str, Any], kind: str | None) -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob", status="idle").says("a", said)
    deadlines = talk.router.state.deadlines.keys()
    assert {key[0] for key in deadlines} == ({kind} if kind else set())


def test_a_timer_that_fires_early_decides_nothing_and_late_everything() -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob", ext=1)
    talk.says("a", ask("bob", "q1", timeoutMs=1_000), ask("bob", "q2", timeoutMs=2_000))
    due = talk.router.next_deadline()
    assert due == talk.now + 1
    assert talk.router.handle_deadline(due - 0.001) == []
    told = talk.router.handle_deadline(due + 100)
    assert [effect.frame.message_id for effect in told if isinstance(effect, effects.Write)] == ["q1", "q2"]  # type: ignore[attr-defined]
    assert talk.router.next_deadline() is None


def busy() -> Conversation:
    """Something of everything: held, staged, asked, late, stalled, half-received, unregistered, dead."""
    talk = Conversation(input_burst_bytes=20_000, input_bytes_per_s=100.0)
    talk.joins("a", "alice", ext=1).joins("b", "bob", status="idle").joins("c", "carol").connects("u")
    talk.says("a", ask("bob", "q1"), replace("bob", "m1", "t"), send("carol", "m2"))
    talk.holds("c").says("a", send("carol", "m3"), send("nobody", "m4")).hangs_up("c")
    talk.joins("d", "dan").holds("d").says("a", send("dan", "m5")).after(0.5)
    talk.happens(events.FrameBegun(talk.number("b"), 100))
    talk.says("b", {"type": "health", "requestId": "h" * 21_000}, list_sessions(), presence(status="idle"))
    return talk


def play(router: Router, now: float, numbers: dict[str, int]) -> list[str]:
    """A future of that broker, as what it decides."""
    decided: list[Any] = []
    alice, dan = numbers["a"], numbers["d"]
    for event in (
        events.FrameReceived(alice, _send("bob", "n1"), 100, 0, b"{}"),
        events.DeliveriesTaken(tuple(range(20))),
        events.ConnectionClosed(dan, "gone"),
        events.FrameReceived(alice, requests.Stats(request_id="s"), 10, 0),
        events.StopRequested("SIGTERM"),
        events.EndpointReleased(),
    ):
        decided += router.handle(event, now)
    decided += router.handle_deadline(now + 200)
    return [repr(effect) for effect in decided]


def test_a_copy_lives_on_by_itself_and_as_the_original_would_have() -> None:
    talk = busy()
    numbers = dict(talk._numbers)
    copied, again = copy.deepcopy(talk.router), copy.deepcopy(talk.router)
    before = copied.queries.stats()
    first = play(copied, talk.now, numbers)
    assert talk.router.queries.stats() == before
    assert play(talk.router, talk.now, numbers) == first
    assert play(copy.deepcopy(again), talk.now, numbers) == first


def test_a_copy_shares_nothing_that_changes() -> None:
    router = busy().router
    shared = _mutable_parts(router) & _mutable_parts(copy.deepcopy(router))
    assert shared == set()


def _mutable_parts(root: object) -> set[int]:
    """The identities of every dictionary, list, set and plain object of the core reachable from ``root``."""
    found: dict[int, object] = {}
    frontier = [root]
    while frontier:
        part = frontier.pop()
        if id(part) in found or isinstance(part, type | types.FunctionType):
            continue
        is_core = type(part).__module__.startswith("intercomd.core") and type(part).__name__ != "Limits"
        if isinstance(part, dict | list | set | deque) or is_core or isinstance(part, types.MethodType):
            found[id(part)] = part
            frontier += _parts_of(part)
        elif isinstance(part, tuple):
            frontier += part
    return {key for key, part in found.items() if not isinstance(part, types.MethodType)}


def _parts_of(part: Any) -> list[object]:
    if isinstance(part, dict):
        return [*part.keys(), *part.values()]
    if isinstance(part, list | set | deque):
        return list(part)
    if isinstance(part, types.MethodType):
        return [part.__self__]
    slots = [
        getattr(part, name)
        for cls in type(part).__mro__
        for name in getattr(cls, "__slots__", ())
        if hasattr(part, name)
    ]
    return [*vars(part).values(), *slots] if hasattr(part, "__dict__") else slots
