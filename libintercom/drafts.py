"""The message that a caller wants to send, built and checked before anything leaves the program.

Owns the client's defaults and local validation (wire.md 2.2). Does not own who gets it.
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame, InvalidMessage
from libintercom.wire.messages import Attachment, Message
from libintercom.wire.record import Record, dump_record, parse_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypedDict

    from libintercom.wire.guards import Guard, ReplyHint

    class SendOptions(TypedDict, total=False):
        """What may go with a text. Absent and None mean the same: the default."""

        message_id: str | None
        attachments: Sequence[Attachment | dict[str, str]]
        delivery: str | None
        queue_mode: str | None
        thread_id: str | None
        reply_to: str | None
        expects_reply: bool | None
        timeout_ms: int | None
        keep_reply_ms: int | None
        reply_token: str | None
        guard: Guard | dict[str, str] | None
        reply_hint: ReplyHint | dict[str, str] | None


# Option -> member of the message. ``message_id`` and ``attachments`` have their own places.
_MEMBERS = {
    "delivery": "delivery",
    "queue_mode": "queueMode",
    "thread_id": "threadId",
    "reply_to": "replyTo",
    "expects_reply": "expectsReply",
    "timeout_ms": "timeoutMs",
    "keep_reply_ms": "keepReplyMs",
    "reply_token": "replyToken",
    "guard": "guard",
    "reply_hint": "replyHint",
}
_OPTIONS = frozenset(_MEMBERS) | {"message_id", "attachments"}
# What a send without a word about delivery means (seeds, "Send, ask, and reply"); an ask says nothing.
DEFAULT_DELIVERY = "steer"


def draft_message(message_id: str, at_ms: int, text: str | None, options: SendOptions) -> Message:
    """A valid message. ``text`` may be None beside attachments.

    Raises:
        InvalidMessage: a value breaks its rule; the reason names it.
        TypeError: an option that does not exist.
    """
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
    drafted: dict[str, Any] = {
        "id": message_id,
        "timestamp": at_ms,
        "content": _draft_content(text, options.get("attachments") or ()),
    }
    for option, member in _MEMBERS.items():
        value = options.get(option)
        if value is not None:
            drafted[member] = dump_record(value) if isinstance(value, Record) else value
    if is_guarded(options):
        # What becomes of it is for its caller to say; that it is no ask follows from the guard.
        drafted.setdefault("expectsReply", False)
    elif not drafted.get("expectsReply"):
        drafted.setdefault("delivery", DEFAULT_DELIVERY)
    try:
        return parse_record(Message, drafted)
    except InvalidFrame as error:
        raise InvalidMessage(error.reason) from None


def is_guarded(options: SendOptions) -> bool:
    """Whether the caller means one exact context only."""
    return options.get("guard") is not None or options.get("reply_hint") is not None


def choose_id(options: SendOptions, make_id: Callable[[], str]) -> str:
    """The message ID that the caller gave, good or bad (an empty one is refused, never replaced), or a fresh one."""
    given = options.get("message_id")
    return make_id() if given is None else given


def _draft_content(text: str | None, attachments: Sequence[Attachment | dict[str, str]]) -> dict[str, Any]:
    if text is None and not attachments:
        raise InvalidMessage("there is no text and no attachment")
    content: dict[str, Any] = {"text": "" if text is None else text}
    if attachments:
        content["attachments"] = [dump_record(one) if isinstance(one, Attachment) else one for one in attachments]
    return content
