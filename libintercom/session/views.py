"""What waits in a session, for whoever lists it: JSON objects.

Owns their members. Does not own sentences about them (``libintercom.texts``).
"""

from __future__ import annotations

from libintercom.wire.record import dump_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.session.backlog import Item
    from libintercom.session.inbox import Inbox

ASK, UNCERTAIN = "ask", "uncertain"
# The texts of all views together, when they have to fit a frame beside everything else in it.
MAX_TEXT_CHARS = 2_000


def pending_views(inbox: Inbox) -> list[dict[str, Any]]:
    """The questions that wait for a reply, then the messages of which nobody knows whether the host has them.

    ``kind`` is ``ask`` or ``uncertain``; a question has the members of ``tracker.AskView``, an uncertain message
    ``messageId``, ``senderId``, ``sender``, ``text``, ``receivedAtMs`` and ``isAsk``.
    """
    asks = [{"kind": ASK, **dump_record(view)} for view in inbox.tracker.views()]
    return asks + [_uncertain_view(item) for item in inbox.uncertain()]


def shorten(view: dict[str, Any]) -> dict[str, Any]:
    """The same with the beginning of its text, and ``isShortened`` when that is not all of it."""
    if len(view["text"]) <= MAX_TEXT_CHARS:
        return view
    return {**view, "text": view["text"][:MAX_TEXT_CHARS], "isShortened": True}


def _uncertain_view(item: Item) -> dict[str, Any]:
    inbound = item.inbound
    return {
        "kind": UNCERTAIN,
        "messageId": item.message_id,
        "senderId": inbound.row.id,
        "sender": inbound.sender,
        "text": inbound.message.content.text,
        "receivedAtMs": item.received_at_ms,
        "isAsk": inbound.message.is_ask,
    }
