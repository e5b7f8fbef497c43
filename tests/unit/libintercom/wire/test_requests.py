"""What a client may say, and what makes it end the connection."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.errors import InvalidFrame
from libintercom.wire.messages import NATIVE, SIBLING
from libintercom.wire.record import UNUSABLE, dump_record
from libintercom.wire.requests import IGNORED_TYPES, REQUESTS, BadSend, Ignored, Register, Send, parse_request
from tests.support import sayings

GUARD = {"rootSessionId": "root", "peerId": "b", "incarnation": "i", "applicationGuard": "v1"}
HINT = {"tool": "publish", "commandId": "00000000-0000-4000-8000-00000000000a", "commandFingerprint": "ab" * 32}
PAGE = {"entryId": "e", "offset": 2, "text": "\U0001f600", "nextOffset": 4, "total": 5}
RECEIPT = {
    "version": 1,
    "rootSessionId": "root",
    "messageId": "m",
    "sender": {"peerId": "a", "rootSessionId": "other", "incarnation": "i"},
    "delivery": "steer",
    "receivedAt": 5,
    "checkpointEntryId": "e1",
    "guard": GUARD,
    "replyHint": HINT,
    "textSha256": "ab" * 32,
    "queued": True,
    "nativeHandoff": True,
    "placementEntryId": None,
    "discarded": False,
}

VALID: list[dict[str, Any]] = [
    sayings.register("a", id="pi-12345678", ext=1, observer=1, topicFrames=True),
    sayings.register_sibling("n", id="any id"),
    {"type": "unregister"},
    {"type": "list", "requestId": "", "stream": True},
    sayings.send("bob", "m1"),
    {"type": "presence"},
    {"type": "presence", "name": "n", "pendingAsks": 0, "acceptsAsks": False, "contextPct": None},
    {"type": "health", "requestId": "r"},
    {"type": "message_receipt", "receipt": {"messageId": "m", "status": "queued", "timestamp": 1, "detail": "d"}},
    {"type": "cancel_message", "messageId": "m"},
    {"type": "cancel_ask", "messageId": "m"},
    {"type": "stats", "requestId": "r"},
    {"type": "dead_letters", "requestId": "r", "sinceMs": 5},
    {"type": "park", "childId": "c"},
    {"type": "park", "childId": "c", "row": {"cwd": "/w", "model": "m", "name": "n"}, "runId": "run"},
    {"type": "unpark", "childId": "c", "discard": True},
    {"type": "wake_outcome", "childId": "c", "attempt": 1, "outcome": "failed", "reason": "two\nlines"},
    {"type": "fetch_reply", "requestId": "r", "messageId": "m", "replyToken": "0" * 32},
    {"type": "ack_reply", "messageId": "m", "replyToken": "f" * 32},
    {"type": "read", "requestId": "r", "kind": "last", "to": "b"},
    {"type": "read", "requestId": "r", "kind": "last", "to": "b", "entryId": "e", "offset": 0, "limit": 99_999},
    {"type": "read", "requestId": "r", "kind": "receipt", "to": "b", "rootSessionId": "root", "messageId": "m"},
    {"type": "read_response", "token": "t", "kind": "last", "page": PAGE},
    {"type": "read_response", "token": "t", "kind": "receipt", "receipt": RECEIPT},
    {"type": "read_response", "token": "t", "kind": "last", "error": {"code": "empty_history", "reason": "nothing"}},
    {**sayings.register("a", id="pi-12345678", applicationGuard="v1"), "guardedDelivery": 1, "receiptReads": 1},
    {"type": "presence", "applicationGuard": "v2"},
    {"type": "presence", "applicationGuard": None},
    sayings.send("b", "m1", expectsReply=False, delivery="steer", guard=GUARD, replyHint=HINT),
]


@pytest.mark.parametrize("said", VALID, ids=lambda said: said["type"])
def test_valid_request_comes_back_as_it_was(said: dict[str, Any]) -> None:
    request = parse_request({**said, "zzz": None})
    assert {"type": request.type, **dump_record(request)} == said


def test_every_type_has_a_valid_example() -> None:
    assert {said["type"] for said in VALID} == set(REQUESTS)


@pytest.mark.parametrize(
    "said",
    [
        {"type": "tea"},
        {"type": ""},
        {"type": "register"},
        {"type": "register", "session": {"cwd": "/"}},
        {"type": "register", "session": {"cwd": "/", "model": "m", "projectId": "zz"}},
        {"type": "list"},
        {"type": "list", "requestId": 5},
        {"type": "health"},
        {"type": "health", "requestId": None},
        {"type": "presence", "status": None},
        {"type": "presence", "pendingAsks": -1},
        {"type": "presence", "acceptsAsks": 1},
        {"type": "message_receipt"},
        {"type": "message_receipt", "receipt": {"messageId": "m", "status": "read", "timestamp": 1}},
        {"type": "cancel_ask"},
        {"type": "cancel_message", "messageId": None},
        {"type": "dead_letters", "requestId": "r", "sinceMs": "x"},
        {"type": "park", "childId": ""},
        {"type": "park", "childId": "c", "row": {"cwd": "/w"}},
        {"type": "park", "childId": "c", "row": {"cwd": "/w", "model": "m", "name": ""}},
        {"type": "unpark", "childId": "c"},
        {"type": "wake_outcome", "childId": "c", "attempt": 1, "outcome": "maybe"},
        {"type": "fetch_reply", "requestId": "r", "messageId": "m", "replyToken": "0"},
        {"type": "ack_reply", "messageId": "m"},
        {"type": "read", "requestId": "r", "kind": "first", "to": "b"},
        {"type": "read", "requestId": "r", "kind": "last"},
        {"type": "read", "requestId": "r", "kind": "last", "to": "b", "limit": 0},
        {"type": "read", "requestId": "r", "kind": "last", "to": "b", "offset": -1},
        {"type": "read", "requestId": "r", "kind": "last", "to": "b", "entryId": ""},
        {"type": "read", "requestId": "r", "kind": "receipt", "to": "b", "rootSessionId": "root"},
        {"type": "read", "requestId": "r", "kind": "receipt", "to": "b", "messageId": "m"},
        {"type": "read_response", "kind": "last", "page": PAGE},
        {"type": "read_response", "token": "t", "page": PAGE},
        {"type": "presence", "applicationGuard": ""},
        {**sayings.register_sibling("n"), "sessionId": " "},
        {**sayings.register_sibling("n"), "sessionId": 5},
        {**sayings.register_sibling("n"), "scopeId": 5},
    ],
)
def test_violation_ends_the_connection(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidFrame):
        parse_request(said)


@pytest.mark.parametrize("kind", IGNORED_TYPES)
def test_siblings_extensions_are_accepted_whatever_they_hold(kind: str) -> None:
    assert parse_request({"type": kind, "payload": None}) == Ignored()


@pytest.mark.parametrize(
    ("change", "dialect"),
    [
        ({}, NATIVE),
        ({"pid": 1, "startedAt": 2, "lastActivity": 3}, SIBLING),
        ({"pid": 1, "startedAt": 2}, NATIVE),
    ],
)
def test_dialect_by_the_numbers_that_only_the_sibling_tells(change: dict[str, Any], dialect: str) -> None:
    said = parse_request(sayings.register("a", **change))
    assert isinstance(said, Register)
    assert said.dialect == dialect


def test_wanted_peer_id_is_the_native_clients_mark() -> None:
    said = parse_request({**sayings.register_sibling("n"), "requestedId": "pi-12345678"})
    assert isinstance(said, Register)
    assert said.dialect == NATIVE


@pytest.mark.parametrize("wanted", [5, None, {"a": 1}, "x", " "])
def test_useless_wanted_id_is_no_violation(wanted: object) -> None:
    """It falls back to a random ID, silently (wire.md 5.1)."""
    assert isinstance(parse_request({**sayings.register("a"), "requestedId": wanted}), Register)


@pytest.mark.parametrize(
    ("change", "message_id"),
    [
        ({"to": 5}, "m1"),
        ({"to": None}, "m1"),
        ({"message": None}, "unknown"),
        ({"message": []}, "unknown"),
        ({"message": {}}, "unknown"),
        ({"message": sayings.message("m1", "\x1b")}, "unknown"),
        ({"message": sayings.message("m1", delivery="bogus")}, "unknown"),
        ({"to": 5, "message": sayings.message("m1", "\x1b")}, "unknown"),
    ],
)
def test_invalid_send_is_answered_never_a_drop(change: dict[str, Any], message_id: str) -> None:
    assert parse_request({**sayings.send("bob", "m1"), **change}) == BadSend(message_id=message_id)


def test_empty_target_is_a_send_like_any_other() -> None:
    said = parse_request(sayings.send("", "m1"))
    assert isinstance(said, Send)
    assert said.to == ""


@pytest.mark.parametrize("wrong", [None, 5, [], {}, {**GUARD, "incarnation": ""}, {**GUARD, "peerId": None}])
def test_a_wrong_guard_stays_in_its_message_as_unusable(wrong: Any) -> None:
    """It must be told from none: without its guard the message would go to whoever has the name now."""
    said = sayings.send("b", "m1")
    said["message"]["guard"] = wrong
    request = parse_request(said)
    assert isinstance(request, Send)
    assert request.message.guard is UNUSABLE
    assert "guard" in dump_record(request.message)


@pytest.mark.parametrize("name", ["page", "receipt", "error"])
def test_a_wrong_answer_to_a_read_does_not_end_the_connection(name: str) -> None:
    response = parse_request({"type": "read_response", "token": "t", "kind": "last", name: {"code": "x"}})
    assert getattr(response, name) is UNUSABLE
