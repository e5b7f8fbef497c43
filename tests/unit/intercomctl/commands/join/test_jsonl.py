"""The scripted face: every action answered exactly once (an ask twice), whatever happens and in whatever order."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest

from intercomctl.commands.join.jsonl import JsonLines
from libintercom.inbound import AskEnded, Inbound
from libintercom.outcomes import Listing, Outcome, not_sent
from libintercom.profile import Profile
from libintercom.wire.messages import Message, Row
from libintercom.wire.record import parse_record

RAW: dict[str, Any] = {
    "from": {"id": "peer-0001", "cwd": "/w", "model": "m", "name": "ann", "extra": 1},
    "message": {"id": "m1", "timestamp": 1, "content": {"text": "42"}, "replyTo": "q1"},
}
INBOUND = Inbound(row=parse_record(Row, RAW["from"]), message=parse_record(Message, RAW["message"]), raw=RAW)
DELIVERED = Outcome(outcome="delivered", message_id="q1", accepted=True, delivered=True, delivery_unknown=False)
LINES = {
    "send": {"action": "send", "to": "ann", "text": "x"},
    "ask": {"action": "ask", "to": "ann", "text": "x"},
    "list": {"action": "list"},
}
# Every way in which a carried-out action can come back, fitting or not.
ANSWERS = {
    "sent": lambda face, action: face.sent(action, DELIVERED),
    "replied": lambda face, action: face.replied(action, INBOUND),
    "failed": lambda face, action: face.failed(action, "timeout"),
    "listed": lambda face, action: face.listed(action, None, Listing(rows=(), omitted=0)),
}
# What happens unasked.
HAPPENINGS = {
    "arrived": lambda face: face.arrived(INBOUND),
    "disconnected": lambda face: face.disconnected("gone"),
    "bad": lambda face: face.read("{"),
}
# With 3 lines, 4 answers to either of the first two actions and 3 happenings: 14 + ... + 14^4 sequences.
DEPTH = 4


def play(sequence, face_type=JsonLines):
    """The events of one sequence, closed at its end, and the marks of the actions in it."""
    events: list[dict[str, Any]] = []
    face = face_type(events.append)
    actions: list[Any] = []
    for step in sequence:
        if step in LINES:
            actions.append(face.read(json.dumps({**LINES[step], "requestId": len(actions)})))
        elif isinstance(step, tuple):
            index, answer = step
            if index < len(actions):
                ANSWERS[answer](face, actions[index])
        else:
            HAPPENINGS[step](face)
    face.end("left")
    count = len(events)
    for action in actions:
        face.failed(action, "late")
    face.arrived(INBOUND)
    assert len(events) == count, "something was said after the end"
    return events, [action.kind for action in actions]


def violations(sequence, face_type=JsonLines):
    """What breaks the contract in one sequence."""
    events, kinds = play(sequence, face_type)
    for index, kind in enumerate(kinds):
        answers = [event["event"] for event in events if event.get("requestId") == index]
        if kind != "ask":
            if len(answers) != 1:
                yield f"{kind} was answered {answers}"
        elif len(answers) != 2 or answers[0] != "sent" or answers[1] == "sent":
            yield f"ask was answered {answers}"
    unmarked = sum("requestId" not in event for event in events)
    if unmarked != sum(step in HAPPENINGS for step in sequence):
        yield f"{unmarked} events without a mark"


def fitting(sequence):
    """Only answers that a carried-out action of that kind can have."""
    kinds = [step for step in sequence if step in LINES]
    for step in sequence:
        if isinstance(step, tuple):
            index, answer = step
            kind = kinds[index] if index < len(kinds) else ""
            if answer == "listed" and kind == "ask":
                return False
            if answer == "replied" and kind != "ask":
                return False
    return not any(
        second == (first[0], "sent")
        for first, second in itertools.combinations([s for s in sequence if isinstance(s, tuple)], 2)
        if first[1] == "sent"
    )


STEPS = [*LINES, *HAPPENINGS, *itertools.product((0, 1), ANSWERS)]


def sequences(depth):
    for length in range(1, depth + 1):
        yield from (found for found in itertools.product(STEPS, repeat=length) if fitting(found))


def test_every_short_sequence_keeps_the_contract():
    count = 0
    for sequence in sequences(DEPTH):
        count += 1
        assert not list(violations(sequence)), sequence
    print(f"\njsonl: {count} sequences")
    assert count > 20_000


class TwiceAnswering(JsonLines):
    """The planted bug: an answer is not counted."""

    def _settle(self, action):
        return action in self._owed


class Forgetting(JsonLines):
    """The planted bug: what is owed at the end is not answered."""

    def end(self, reason):
        self._has_ended = True


@pytest.mark.parametrize("planted", [TwiceAnswering, Forgetting])
def test_the_search_finds_a_planted_bug(planted):
    assert any(list(violations(sequence, planted)) for sequence in sequences(3))


def say(step, **events):
    said: list[dict[str, Any]] = []
    face = JsonLines(said.append)
    action = face.read(json.dumps({**LINES.get(step, {"action": step}), "requestId": "r"}))
    for answer in events.values():
        answer(face, action)
    return said


def test_a_send_is_answered_with_its_outcome():
    assert say("send", sent=ANSWERS["sent"]) == [
        {
            "event": "sent",
            "requestId": "r",
            "outcome": "delivered",
            "messageId": "q1",
            "accepted": True,
            "delivered": True,
            "deliveryUnknown": False,
        }
    ]


def test_a_reply_is_the_message_as_it_was_on_the_wire():
    assert say("ask", sent=ANSWERS["sent"], replied=ANSWERS["replied"])[1] == {
        "event": "message",
        "requestId": "r",
        **RAW,
    }


def test_an_ask_that_never_left_is_answered_twice():
    refused = not_sent("q1", "already_waiting", "one ask at a time")
    events = say("ask", sent=lambda f, a: f.sent(a, refused), failed=lambda f, a: f.failed(a, "one ask at a time"))
    assert [(event["event"], event.get("outcome")) for event in events] == [("sent", "not_sent"), ("error", None)]


def test_pending_gives_each_question_with_its_asker_and_time():
    view = {"kind": "ask", "messageId": "m1", "from": RAW["from"], "text": "42", "receivedAtMs": 1234, "isShown": True}
    (event,) = say("pending", told=lambda face, action: face.told_pending(action, [view]))
    assert event["asks"] == [{"messageId": "m1", "from": RAW["from"], "text": "42", "receivedAtMs": 1234}]


def test_what_happens_unasked_has_no_mark():
    said: list[dict[str, Any]] = []
    face = JsonLines(said.append)
    face.joined(SimpleNamespace(profile=Profile(cwd="/w", model="m", name="me"), session_id="", broker=None))
    face.peer_left("peer-0001")
    face.ask_retired(AskEnded(message_id="m1", asker_id="peer-0001", reason="timeout"))
    face.disconnected("gone")
    assert said == [
        {"event": "registered", "sessionId": "", "name": "me", "broker": None},
        {"event": "peer_left", "sessionId": "peer-0001"},
        {"event": "ask_retired", "messageId": "m1", "askerId": "peer-0001", "reason": "timeout"},
        {"event": "disconnected", "reason": "gone"},
    ]


def test_a_bad_line_is_an_error_and_not_the_end():
    said: list[dict[str, Any]] = []
    face = JsonLines(said.append)
    assert face.read('{"action":"fly","requestId":"r"}') is None
    assert face.read('{"action":"list","requestId":"s"}') is not None
    assert [(event["event"], event["requestId"]) for event in said] == [("error", "r")]
