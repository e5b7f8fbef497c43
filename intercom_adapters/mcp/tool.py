"""The tool as agents see it: its name, what it says about itself, and the parameters of each action. Pure.

Owns those words and the table of who takes which parameter (seeds, "Send, ask, and reply" and the sections around
it). Does not own reading a call (``calls``) nor carrying it out (``actions``).
"""

from __future__ import annotations

from typing import Any

from libintercom.wire.messages import ATTACHMENT_TYPES, DELIVERIES, QUEUE_MODES

NAME = "intercom"
TITLE = "Talk to other agent sessions"

LIST, STATUS, SEND, ASK, PENDING, REPLY, LAST = "list", "status", "send", "ask", "pending", "reply", "last"

# Each action: the parameters it needs, then those it may have.
ACTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    LIST: ((), ("to", "children", "scope", "device")),
    STATUS: ((), ()),
    SEND: (("to",), ("message", "attachments", "delivery", "queueMode", "threadId", "replyTo")),
    ASK: (("to", "message"), ("attachments", "delivery", "queueMode", "threadId")),
    PENDING: ((), ("entryId", "offset")),
    REPLY: (("message",), ("to", "replyTo", "attachments")),
    LAST: (("to",), ("entryId", "offset")),
}

PROJECT = "project"

DESCRIPTION = (
    "Find the other agent sessions of this user on this machine, and talk to them. "
    "list: who is connected (children: true prints your group's children; to: filter by name or ID). "
    "send: tell a session something, without waiting. "
    "ask: ask and wait for the reply; use it only when you cannot go on without the answer. "
    "pending: read the messages and questions that wait for you. "
    "reply: answer a question (replyTo names it when several wait). "
    "last: read a session's last response without waking it. "
    "status: this session, the broker, and the list. "
    "Use a target exactly as list prints it. Do not send thanks or acknowledgements, and do not reply to what needs "
    "no reply. A send says that the broker took the message, not that anybody read it; when the outcome is unknown, "
    "check the recipient before you send again."
)

_ATTACHMENT = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": list(ATTACHMENT_TYPES)},
        "name": {"type": "string"},
        "content": {"type": "string"},
        "language": {"type": "string"},
    },
    "required": ["type", "name", "content"],
    "additionalProperties": False,
}

PARAMETERS: dict[str, dict[str, Any]] = {
    "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
    "to": {
        "type": "string",
        "description": "send, ask, last: the target, a name or an ID from list. reply: whose question. list: keep the "
        "sessions whose name or ID contains this.",
    },
    "message": {"type": "string", "description": "send, ask, reply: the text."},
    "attachments": {"type": "array", "items": _ATTACHMENT, "description": "Texts that go with the message."},
    "delivery": {
        "type": "string",
        "enum": list(DELIVERIES),
        "description": "steer (default) wakes an idle recipient and reaches a busy one after its current tool call; "
        "queue waits for the end of its turn; passive wakes nobody and is read at the next turn.",
    },
    "queueMode": {
        "type": "string",
        "enum": list(QUEUE_MODES),
        "description": "With delivery queue: replace lets a later message of the same threadId take this one's place.",
    },
    "threadId": {"type": "string", "description": "The thread of queueMode replace."},
    "replyTo": {"type": "string", "description": "reply: the message ID of the question. send: what this answers."},
    "children": {"type": "boolean", "description": "list: one line for each child of your group."},
    "scope": {"type": "string", "enum": [PROJECT], "description": "list: only the sessions of this project."},
    "device": {"type": "string", "description": "list: the sessions of another device of this user."},
    "entryId": {"type": "string", "description": "last, pending: continue with this entry."},
    "offset": {"type": "integer", "minimum": 0, "description": "last, pending: the offset that the page before told."},
}

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": PARAMETERS,
    "required": ["action"],
    "additionalProperties": False,
}
