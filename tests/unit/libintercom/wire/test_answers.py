"""What a broker may say, as a client reads it, from a broker of any age."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.errors import InvalidFrame
from libintercom.wire.answers import ANSWERS, UNKNOWN_TYPE, Incoming, parse_answer, parse_row, parse_rows
from libintercom.wire.record import dump_record
from tests.support.desk import row

CANDIDATE = {"id": "pi-1", "target": "pi-1", "name": "n", "cwd": "/"}
LETTER = {"id": "l", "senderId": "s", "recipientId": "r", "messageId": "m", "reason": "expired", "atMs": 1}
MESSAGE = {"id": "m", "timestamp": 1, "content": {"text": "t"}}
HELLO = {"program": "p", "version": "v", "pid": 1, "startIdentity": {"x": 1}, "starter": "s", "incarnation": "i"}
PAGE = {"entryId": "e", "offset": 0, "text": "t\ud83d", "nextOffset": None, "total": 2}
RECEIPT = {
    "version": 1,
    "rootSessionId": "root",
    "messageId": "m",
    "sender": {"peerId": "a"},
    "delivery": None,
    "receivedAt": 5,
    "checkpointEntryId": "e1",
    "textSha256": "ab" * 32,
    "queued": False,
    "nativeHandoff": True,
    "placementEntryId": "e2",
    "discarded": False,
}
VALID: list[dict[str, Any]] = [
    {"type": "registered", "sessionId": "s", "ext": 1, "observer": 1, "broker": HELLO, "limits": {"a": 1}},
    {"type": "registered", "sessionId": "s"},
    {"type": "sessions", "requestId": "", "sessions": [5, None], "more": False, "omitted": 2},
    {"type": "message", "from": row("pi-1"), "message": MESSAGE},
    {"type": "session_left", "sessionId": "s"},
    {"type": "delivered", "messageId": "m", "delivery": "socket_delivered", "retryable": False, "outcomeKnown": True},
    {"type": "delivery_queued", "messageId": "m", "reason": ""},
    {
        "type": "delivery_failed",
        "messageId": "m",
        "reason": "r",
        "code": "ambiguous",
        "retryable": False,
        "outcomeKnown": True,
        "candidates": [CANDIDATE],
        "nearest": [],
        "rule": "x",
        "count": 1,
        "limit": 2,
        "retryAfterMs": 3,
    },
    {"type": "health_ok", "requestId": "r", "protocol": "pi-intercom", "version": 1},
    {"type": "error", "error": "e", "code": "c"},
    {
        "type": "message_receipt",
        "from": row("pi-1"),
        "receipt": {"messageId": "m", "status": "injected", "timestamp": 1},
    },
    {"type": "ask_retired", "messageId": "m", "askerId": "a", "reason": "timeout"},
    {"type": "dead_letter", "messageId": "m", "recipientId": "r", "reason": "expired", "atMs": 1},
    {"type": "dead_letters_result", "requestId": "r", "letters": [LETTER], "omitted": 1},
    {"type": "stats_result", "requestId": "r", "counters": {}, "gauges": {}},
    {"type": "registered", "sessionId": "s", "guardedDelivery": 1, "receiptReads": 1},
    {"type": "message", "from": {**row("pi-1"), "guardedDelivery": 1, "applicationGuard": "v"}, "message": MESSAGE},
    {"type": "read_request", "token": "t", "kind": "last", "entryId": "e", "offset": 0, "limit": 5},
    {"type": "read_request", "token": "t", "kind": "receipt", "rootSessionId": "root", "messageId": "m"},
    {"type": "read_result", "requestId": "r", "kind": "last", "peerId": "p", "page": PAGE},
    {"type": "read_result", "requestId": "r", "kind": "receipt", "peerId": "p", "receipt": RECEIPT},
    {"type": "read_result", "requestId": "r", "kind": "last", "error": {"code": "not_found", "reason": "none"}},
    {"type": "parked", "childId": "c"},
    {"type": "park_failed", "childId": "c", "code": "limit"},
    {"type": "unparked", "childId": "c", "dropped": 2},
    {"type": "wake_request", "childId": "c", "messageId": "m", "attempt": 1},
    {"type": "wake_failed", "messageId": "m", "reason": "no such program"},
    {"type": "fetched_reply", "requestId": "r", "state": "waiting"},
    {"type": "fetched_reply", "requestId": "r", "state": "replied", "message": MESSAGE, "from": row("pi-1")},
]


@pytest.mark.parametrize("said", VALID, ids=lambda said: said["type"])
def test_valid_answer_comes_back_as_it_was(said: dict[str, Any]) -> None:
    answer = parse_answer({**said, "zzz": None})
    assert {"type": answer.type, **dump_record(answer)} == said


def test_every_type_has_a_valid_example() -> None:
    assert {said["type"] for said in VALID} == set(ANSWERS)


def test_unknown_type_is_told_as_such() -> None:
    with pytest.raises(InvalidFrame) as caught:
        parse_answer({"type": "session_joined" + "x" * 100})
    assert caught.value.reason.startswith(UNKNOWN_TYPE)
    assert len(caught.value.reason) < 80


@pytest.mark.parametrize(
    "said",
    [
        {"type": "registered"},
        {"type": "sessions", "requestId": "r"},
        {"type": "sessions", "requestId": "r", "sessions": {}},
        {"type": "sessions", "sessions": []},
        {"type": "message", "from": row("pi-1"), "message": {}},
        {"type": "message", "from": {}, "message": MESSAGE},
        {"type": "message", "message": MESSAGE},
        {"type": "delivered"},
        {"type": "delivery_queued", "messageId": "m"},
        {"type": "delivery_failed", "messageId": "m", "reason": None},
        {"type": "unparked", "childId": "c"},
        {"type": "wake_request", "childId": "c", "messageId": "m", "attempt": -1},
        {"type": "fetched_reply", "requestId": "r", "state": "lost"},
        {"type": "read_request", "token": "t", "kind": "first"},
        {"type": "read_request", "kind": "last"},
        {"type": "read_result", "requestId": "r", "kind": "last"},
        {"type": "read_result", "requestId": "r", "kind": "last", "page": {**PAGE, "total": 1}},
        {"type": "read_result", "requestId": "r", "kind": "last", "page": PAGE, "receipt": RECEIPT},
        {"type": "read_result", "requestId": "r", "kind": "receipt", "receipt": {**RECEIPT, "version": 2}},
        {"type": "read_result", "requestId": "r", "kind": "receipt", "error": {"code": "", "reason": "r"}},
    ],
)
def test_broken_answer_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidFrame):
        parse_answer(said)


def test_bad_rows_are_left_out_and_a_bad_project_only_dropped() -> None:
    rows = parse_rows(
        [row("pi-1", projectId="zz"), row("pi-2", projectId=None), row("pi-3", "a\nb"), {}, None, row("pi-4", zzz=1)]
    )
    assert [(one.id, one.project_id) for one in rows] == [("pi-1", None), ("pi-2", None), ("pi-4", None)]
    assert parse_row(row("pi-5", projectId="a" * 64)).project_id == "a" * 64


def test_row_that_is_parsed_is_not_changed() -> None:
    told = row("pi-1", projectId="zz")
    parse_row(told)
    assert told["projectId"] == "zz"


@pytest.mark.parametrize("project", ["zz", None, 5])
def test_bad_project_of_a_sender_does_not_cost_its_message(project: object) -> None:
    answer = parse_answer({"type": "message", "from": row("pi-1", projectId=project), "message": MESSAGE})
    assert isinstance(answer, Incoming)
    assert answer.from_.project_id is None
