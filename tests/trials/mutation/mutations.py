"""Breaking valid frames: by their JSON, their text, their bytes, their joints and their order.

Owns the mutations. Each is made by given dice, so that a seed repeats a run.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from libintercom.errors import InvalidFrame
from libintercom.wire.codec import decode_request
from libintercom.wire.connection import CLOSED, UNREGISTERED, next_broker_state
from libintercom.wire.frames import MAX_FRAME_BYTES, encode_json, frame

if TYPE_CHECKING:
    import random

_MESSAGE = {
    "id": "m",
    "timestamp": 1,
    "content": {"text": "text", "attachments": [{"type": "file", "name": "a", "content": "b", "language": "c"}]},
    "replyTo": "q",
    "expectsReply": True,
    "delivery": "queue",
    "queueMode": "replace",
    "threadId": "t",
    "timeoutMs": 100,
}
_SESSION = {
    "cwd": "/",
    "model": "m",
    "name": "n",
    "projectId": "0" * 64,
    "status": "idle",
    "pendingAsks": 0,
    "acceptsAsks": True,
    "rootSessionId": "r",
    "parentSessionId": "r",
    "incarnation": "i",
    "host": {"steer": True},
    "contextPct": 1.5,
    "pid": 1,
    "startedAt": 1,
    "lastActivity": 1,
}
# The one who gets what is still a message, and judges what came of it.
WITNESS = "mutation-witness"
_RECEIPT = {"messageId": "m", "status": "queued", "timestamp": 1}
# One valid frame of every type, with every member that a rule speaks of.
VALID: tuple[dict[str, Any], ...] = (
    {"type": "register", "session": _SESSION, "requestedId": "wanted-12345", "ext": 1},
    {"type": "register", "session": _SESSION, "sessionId": "s", "scopeId": "s", "observer": 1},
    {"type": "unregister"},
    {"type": "list", "requestId": "q", "stream": True},
    {"type": "send", "to": WITNESS, "message": _MESSAGE},
    {"type": "send", "to": WITNESS, "message": {"id": "n", "timestamp": 1, "content": {"text": "plain"}}},
    {"type": "send", "to": "nobody", "message": {"id": "m", "timestamp": 1, "content": {"text": "x"}}},
    {"type": "presence", "name": "n", "status": "s", "model": "m", "pendingAsks": 1, "contextPct": None},
    {"type": "health", "requestId": "q"},
    {"type": "message_receipt", "receipt": _RECEIPT},
    {"type": "cancel_message", "messageId": "m"},
    {"type": "cancel_ask", "messageId": "m"},
    {"type": "extension_publish", "payload": {}},
    {"type": "stats", "requestId": "q"},
    {"type": "dead_letters", "requestId": "q", "sinceMs": 0},
)
# What a member may become: every type, every edge of a number, every kind of text that a rule forbids or allows.
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**53 + 1, -(2**63), 10**400, 1e308, "", " ", "x" * 2000, "\x00", "\x1b[2J",
    "\x7f\x85",
    "\ud800", "\U000e0041", "\u202e", "\ufeff", WITNESS, "\n", [], {}, [[]], [None], {"": {}}, {"type": "send"},
)  # fmt: skip
# What is put into a text: half characters, whole ones beyond the basic plane, marks, separators and controls that each
# reader treats in a way of its own.
_CHARACTERS = (
    "\ud800", "\udfff", "\ude00\ud83d", "\U0001f600", "\U0010ffff", "\ue000", "\uf8ff", "\u2028", "\u2029", "\u0301",
    "\u202e", "\ufeff", "\ufffe", "\uffff", "\xa0", "\x1c", "\x7f", "\x80", "\x00", "\t", "\r\n", '"', "\\", "\\u", "/",
)  # fmt: skip
_BYTES = (
    b"\x00",
    b"\xff",
    b"\xc0\xaf",
    b'"',
    b"\\",
    b"\\u",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b",",
    b":",
    b"1e999",
    b"NaN",
)


def mutate_json(dice: random.Random) -> bytes:
    """A frame whose JSON is well formed and whose meaning may be anything."""
    value = copy.deepcopy(dice.choice(VALID))
    for _change in range(dice.randint(1, 3)):
        holder = _choose_holder(value, dice)
        _change_member(holder, dice)
    return frame(_cut(encode_json(value)))


def mutate_text(dice: random.Random) -> bytes:
    """A frame with odd characters in some of its texts, written as themselves or as escapes."""
    value = copy.deepcopy(dice.choice(VALID))
    for _change in range(dice.randint(1, 4)):
        holder = _choose_holder(value, dice)
        names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        texts = [name for name in names if isinstance(holder[name], str)]
        if texts:
            name = dice.choice(texts)
            text, at = holder[name], dice.randint(0, len(holder[name]))
            holder[name] = text[:at] + dice.choice(_CHARACTERS) * dice.choice((1, 1, 1, 40)) + text[at:]
    encode = encode_json if dice.random() < 0.5 else lambda said: json.dumps(said).encode()
    return frame(_cut(encode(value)))


def splice(dice: random.Random) -> bytes:
    """The beginning of one frame and the end of another; or a member that occurs twice."""
    one, other = (json.dumps(dice.choice(VALID)).encode() for _ in range(2))
    if dice.random() < 0.5:
        return _frame_maybe_lying(one[: dice.randint(1, len(one))] + other[dice.randrange(len(other)) :], dice)
    return frame(_cut(one[:-1] + b"," + other[1:]))


def shuffle_order(dice: random.Random) -> list[bytes]:
    """Valid frames in any order, up to and with the first one that is not allowed then."""
    state, said = UNREGISTERED, []
    for _frame in range(dice.randint(1, 12)):
        value = dice.choice(VALID)
        said.append(frame(encode_json(value)))
        kind = "extension" if value["type"].startswith("extension") else value["type"]
        state = next_broker_state(state, kind, is_observer="observer" in value)
        if state == CLOSED:
            break
    return said


def mutate_bytes(dice: random.Random) -> bytes:
    """A frame whose payload or framing is broken somewhere, or by luck is not."""
    payload = bytearray(json.dumps(dice.choice(VALID), ensure_ascii=dice.random() < 0.5).encode())
    for _change in range(dice.randint(1, 4)):
        at = dice.randrange(len(payload) + 1)
        if dice.random() < 0.5:
            payload[at:at] = dice.choice(_BYTES)
        elif dice.random() < 0.5:
            del payload[at : at + dice.randint(1, 9)]
        elif at < len(payload):
            payload[at] = dice.randrange(256)
    return _frame_maybe_lying(_cut(bytes(payload)), dice)


def is_last(raw: bytes) -> bool:
    """Whether a whole, truthful frame ends its connection, or the registration that the next frame needs."""
    try:
        request = decode_request(raw[4:])
    except InvalidFrame:
        return True
    return request.type in ("register", "unregister")


def _choose_holder(value: dict[str, Any], dice: random.Random) -> Any:
    holders: list[Any] = [value]
    for holder in holders:
        members = holder.values() if isinstance(holder, dict) else holder
        holders += [member for member in members if isinstance(member, (dict, list)) and member]
    return dice.choice(holders)


def _change_member(holder: Any, dice: random.Random) -> None:
    names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not names:
        return
    name, other = dice.choice(names), dice.choice(names)
    match dice.randrange(4):
        case 0:
            del holder[name]
        case 1:
            holder[name], holder[other] = holder[other], holder[name]
        case 2 if isinstance(holder, dict):
            holder[str(dice.choice(_VALUES))[:20]] = copy.deepcopy(dice.choice(_VALUES))
        case _:
            holder[name] = copy.deepcopy(dice.choice(_VALUES))


def _frame_maybe_lying(payload: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.8:
        return frame(payload)
    size = dice.choice((0, len(payload) - 1, len(payload) + 1, MAX_FRAME_BYTES + 1, 2**32 - 1))
    return max(0, size).to_bytes(4, "big") + payload


def _cut(payload: bytes) -> bytes:
    return payload[:MAX_FRAME_BYTES] or b" "
