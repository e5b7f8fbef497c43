"""A guarded message as it stands: every member that can be wrong makes it ``guard_invalid``, never an ordinary one."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.wire.guards import guard_fault, is_guarded
from libintercom.wire.messages import Message
from libintercom.wire.record import parse_record
from tests.support import sayings

GUARD = {"rootSessionId": "root", "peerId": "bob", "incarnation": "i", "applicationGuard": "v1"}
HINT = {"tool": "publish", "commandId": "00000000-0000-4000-8000-00000000000a", "commandFingerprint": "ab" * 32}


def message(**members: Any) -> Message:
    told = {"expectsReply": False, "delivery": "steer", "guard": GUARD, **members}
    made = parse_record(Message, sayings.message("m1", **told))
    assert is_guarded(made)
    return made


@pytest.mark.parametrize("delivery", ["steer", "queue", "passive"])
def test_a_complete_guard_has_no_fault(delivery: str) -> None:
    assert not guard_fault("bob", message(delivery=delivery))
    assert not guard_fault("bob", message(replyHint=HINT))
    assert not guard_fault("bob", message(replyHint={"tool": "_", "commandId": HINT["commandId"]}))


def test_an_ordinary_message_is_not_guarded() -> None:
    assert not is_guarded(parse_record(Message, sayings.message("m1")))


@pytest.mark.parametrize("name", GUARD)
@pytest.mark.parametrize("wrong", [None, "", 5, "a\nb", "x" * 1025, []])
def test_each_member_of_a_guard_is_a_label(name: str, wrong: Any) -> None:
    assert guard_fault("bob", message(guard={**GUARD, name: wrong}))
    assert guard_fault("bob", message(guard={key: value for key, value in GUARD.items() if key != name}))


@pytest.mark.parametrize(
    "change",
    [
        {"tool": ""},
        {"tool": "1st"},
        {"tool": "a-b"},
        {"tool": "a" * 65},
        {"tool": "a\n"},
        {"tool": None},
        {"commandId": HINT["commandId"].upper()},
        {"commandId": HINT["commandId"] + "\n"},
        {"commandId": "5"},
        {"commandFingerprint": "AB" * 32},
        {"commandFingerprint": "ab" * 31},
        {"commandFingerprint": None},
    ],
)
def test_each_member_of_a_hint_has_its_form(change: dict[str, Any]) -> None:
    assert guard_fault("bob", message(replyHint={**HINT, **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"guard": None, "replyHint": HINT},
        {"expectsReply": None},
        {"delivery": None},
        {"expectsReply": True},
        {"replyTo": "m0"},
        {"delivery": "queue", "queueMode": "stack"},
        {"delivery": "queue", "queueMode": "replace", "threadId": "t"},
    ],
)
def test_a_guarded_message_is_no_ask_reply_or_update(change: dict[str, Any]) -> None:
    assert guard_fault("bob", message(**change))


@pytest.mark.parametrize("to", ["Bob", " bob", "bob ", "bo", "pi-1", ""])
def test_its_target_is_the_guards_exact_peer(to: str) -> None:
    assert guard_fault(to, message())
