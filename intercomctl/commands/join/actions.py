"""What a joined session can be told to do: one action, and how a line of JSON says it.

Owns the actions of ``join``, typed or scripted, and the reading of one scripted line. Does not own how they are
carried out (``membership``) nor how they are answered (``jsonl``, ``console``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from libintercom.errors import InvalidFrame
from libintercom.wire import values
from libintercom.wire.messages import Attachment
from libintercom.wire.record import parse_record

if TYPE_CHECKING:
    from collections.abc import Callable

SEND, ASK, REPLY, PENDING, PRESENCE, LIST = "send", "ask", "reply", "pending", "presence", "list"
# Typed ones; a script reads the first off its events, and ends its input for the second.
STATUS, QUIT = "status", "quit"


@dataclass(frozen=True, kw_only=True, eq=False)
class Action:
    """One thing to be done; the same words said twice are two actions. ``request_id`` is the script's own mark.

    ``message`` holds the options of a send or ask as the client names them, ``changes`` those of a presence.
    ``timeout_s`` bounds an ask.
    """

    kind: str
    request_id: str | int | None = None
    to: str | None = None
    text: str = ""
    reply_to: str | None = None
    timeout_s: float | None = None
    message: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)


class BadLine(ValueError):
    """A line that is no action. ``request_id`` is its mark where one could be read."""

    def __init__(self, reason: str, request_id: str | int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.request_id = reason, request_id


@dataclass(frozen=True)
class _Member:
    """One member of an action's object: what it must be, and under which keyword the client takes it."""

    keyword: str
    must_be: str
    accepts: Callable[[object], bool]


def _is_ask_timeout(value: object) -> bool:
    return values.is_ask_timeout(value) and value != 0


_STRING = ("a string", values.is_string)
_MEMBERS = {
    "to": _Member("to", *_STRING),
    "text": _Member("text", *_STRING),
    "messageId": _Member("message_id", *_STRING),
    "delivery": _Member("delivery", *_STRING),
    "queueMode": _Member("queue_mode", *_STRING),
    "threadId": _Member("thread_id", *_STRING),
    "replyTo": _Member("reply_to", *_STRING),
    "attachments": _Member("attachments", "a list", lambda value: isinstance(value, list)),
    "timeoutMs": _Member("timeout_s", f"an integer of 1 to {values.MAX_ASK_TIMEOUT_MS}", _is_ask_timeout),
    "status": _Member("status", *_STRING),
    "name": _Member("name", *_STRING),
    "acceptsAsks": _Member("accepts_asks", "true or false", values.is_bool),
}
_ROUTE = ("messageId", "delivery", "queueMode", "threadId", "attachments")
# Each action: the members it needs, then those it may have.
_SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    SEND: (("to", "text"), ("replyTo", *_ROUTE)),
    ASK: (("to", "text"), ("timeoutMs", *_ROUTE)),
    REPLY: (("text",), ("to", "replyTo", "messageId", "attachments")),
    PENDING: ((), ()),
    LIST: ((), ()),
    PRESENCE: ((), ("status", "name", "acceptsAsks")),
}
# Members that are fields of the action; the rest of a message's go to the client as they are.
_OWN_FIELDS = ("to", "text", "reply_to", "timeout_s")


def read_action(line: str) -> Action:
    """The action of one line of JSON.

    Raises:
        BadLine: it is none; the reason says what was found and what is expected.

    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as wrong:
        raise BadLine(f"not JSON: {wrong}") from None
    if not isinstance(value, dict):
        raise BadLine("the line is not a JSON object")
    request_id = _read_request_id(value)
    try:
        return _read(value, request_id)
    except InvalidFrame as wrong:
        raise BadLine(wrong.reason, request_id) from None


def _read_request_id(value: dict[str, Any]) -> str | int | None:
    request_id = value.get("requestId")
    if request_id is not None and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise BadLine("requestId is not a string or an integer")
    return request_id


def _read(value: dict[str, Any], request_id: str | int | None) -> Action:
    kind = value.get("action")
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise InvalidFrame(f"action is not one of {', '.join(_SHAPES)}")
    members = {name: member for name, member in value.items() if name not in ("action", "requestId")}
    _check_members(kind, members)
    told = {_MEMBERS[name].keyword: member for name, member in members.items()}
    if kind == PRESENCE:
        return Action(kind=kind, request_id=request_id, changes=told)
    if "timeout_s" in told:
        told["timeout_s"] = told["timeout_s"] / 1000
    if "attachments" in told:
        told["attachments"] = tuple(parse_record(Attachment, attachment) for attachment in told["attachments"])
    own = {keyword: told.pop(keyword) for keyword in _OWN_FIELDS if keyword in told}
    return Action(kind=kind, request_id=request_id, message=told, **own)


def _check_members(kind: str, members: dict[str, Any]) -> None:
    needed, allowed = _SHAPES[kind]
    for name in needed:
        if name not in members:
            raise InvalidFrame(f"{kind} needs {name}")
    for name, member in members.items():
        if name not in (*needed, *allowed):
            raise InvalidFrame(f"{kind} takes no {name}")
        if not _MEMBERS[name].accepts(member):
            raise InvalidFrame(f"{name} is not {_MEMBERS[name].must_be}")
    if kind == PRESENCE and not members:
        raise InvalidFrame(f"{kind} needs one of {', '.join(allowed)}")
