"""What a client may say, and what makes it end the connection."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.errors import InvalidFrame
from libintercom.wire.messages import NATIVE, SIBLING
from libintercom.wire.record import dump_record
from libintercom.wire.requests import IGNORED_TYPES, REQUESTS, BadSend, Ignored, Register, Send, parse_request
from tests.support import sayings

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
