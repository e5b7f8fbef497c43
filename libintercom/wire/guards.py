"""Conditional targeting: the guard of a message, its publication hint, and when they are in order (wire.md 9.3).

Owns what sender, broker and recipient must all judge alike. Does not own whether a guard still fits a session: the
broker's word on that is ``intercomd.core.guards``.
"""

from __future__ import annotations

from libintercom.wire.record import UNUSABLE, Record, optional, required
from libintercom.wire.values import HEX64, LABEL, TOOL_NAME, UUID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.wire.messages import Message


class Guard(Record):
    """The one main, in the one context and with the one consent, that a message is for; all of it must match."""

    root_session_id: str = required(LABEL)
    peer_id: str = required(LABEL)
    incarnation: str = required(LABEL)
    application_guard: str = required(LABEL)


class ReplyHint(Record):
    """Where the recipient may publish a result: a tool and the command's immutable ID. Not an ask.

    ``command_fingerprint`` is opaque to intercom; its caller owns what it means.
    """

    tool: str = required(TOOL_NAME)
    command_id: str = required(UUID)
    command_fingerprint: str | None = optional(HEX64, default=None)


def is_guarded(message: Message) -> bool:
    """Whether a message is, or was meant to be, for one exact context only; never deliver it as an ordinary one."""
    return message.guard is not None or message.reply_hint is not None


def guard_fault(to: str, message: Message) -> str:
    """What is wrong with a guarded message as it stands, ``""`` when nothing is (code ``guard_invalid``)."""
    guard, hint = message.guard, message.reply_hint
    if guard is None:
        return "a replyHint goes with a guard"
    if guard is UNUSABLE:
        return "its guard needs rootSessionId, peerId, incarnation and applicationGuard, each a label"
    if hint is UNUSABLE:
        return "its replyHint needs a tool (an identifier) and a commandId (a lower-case UUID)"
    if to != guard.peer_id:
        return "its target is not the exact peerId of its guard"
    return _form_fault(message)


def _form_fault(message: Message) -> str:
    """A guarded message is no ask, no reply, names its delivery and is never replaced."""
    if message.expects_reply is not False:
        return "it must say expectsReply:false"
    if message.delivery is None:
        return "it must name its delivery"
    for name, value in (
        ("replyTo", message.reply_to),
        ("queueMode", message.queue_mode),
        ("threadId", message.thread_id),
    ):
        if value is not None:
            return f"it cannot have {name}"
    return ""
