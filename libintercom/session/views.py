"""What waits in a session, for whoever lists it: JSON objects.

Owns their members. Does not own sentences about them (``libintercom.texts``).
"""

from __future__ import annotations

from libintercom.session import entries
from libintercom.wire.record import dump_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from libintercom.session.backlog import Item
    from libintercom.session.entries import Standing
    from libintercom.session.inbox import Inbox

ASK, UNCERTAIN, MESSAGE = "ask", "uncertain", "message"
# The texts of all views together, when they have to fit a frame beside everything else in it.
MAX_TEXT_CHARS = 2_000


def pending_views(inbox: Inbox) -> list[dict[str, Any]]:
    """The questions that wait for a reply, then the messages of which nobody knows whether the host has them.

    ``kind`` is ``ask`` or ``uncertain``; a question has the members of ``tracker.AskView``, an uncertain message
    ``messageId``, ``senderId``, ``sender``, ``text``, ``receivedAtMs`` and ``isAsk``. ``from`` is the sender's row.
    """
    rows = {ask.message_id: ask.inbound.raw["from"] for ask in inbox.tracker.asks}
    asks = [{"kind": ASK, "from": rows[view.message_id], **dump_record(view)} for view in inbox.tracker.views()]
    return asks + [_uncertain_view(item) for item in inbox.uncertain()]


def stored_views(standings: Iterable[Standing]) -> list[dict[str, Any]]:
    """The same of a session that is not live, from what its journal has unfinished (``Journal.unfinished``).

    Behind them the messages that no host was seen to have: kind ``message``, members as of an uncertain one.
    """
    found = [(_kind_of(standing), standing) for standing in standings if standing.admitted is not None]
    order = (ASK, UNCERTAIN, MESSAGE)
    return [_stored_view(kind, one) for kind, one in sorted(found, key=lambda pair: order.index(pair[0]))]


def shorten(view: dict[str, Any]) -> dict[str, Any]:
    """The same without the row, with the beginning of its text, and ``isShortened`` when that is not all of it."""
    kept = {name: value for name, value in view.items() if name != "from"}
    if len(view["text"]) <= MAX_TEXT_CHARS:
        return kept
    return {**kept, "text": view["text"][:MAX_TEXT_CHARS], "isShortened": True}


def _kind_of(standing: Standing) -> str:
    if standing.is_open_ask:
        return ASK
    return UNCERTAIN if standing.kind == entries.UNCERTAIN else MESSAGE


def _stored_view(kind: str, standing: Standing) -> dict[str, Any]:
    entry = standing.admitted
    body = {} if entry is None else entry.body
    row, message = body["from"], body["message"]
    view = {
        "kind": kind,
        "from": row,
        "messageId": standing.message_id,
        "senderId": row["id"],
        "sender": row.get("name") or row["id"][:8],
        "text": message["content"]["text"],
        "receivedAtMs": int(body["receivedAt"]),
    }
    if kind == ASK:
        is_shown = standing.kind in entries.FINAL
        reply_id = standing.answers[-1] if standing.answers else ""
        return {**view, "isShown": is_shown, "isTarget": False, "replyId": reply_id}
    return {**view, "isAsk": standing.is_ask}


def _uncertain_view(item: Item) -> dict[str, Any]:
    inbound = item.inbound
    return {
        "kind": UNCERTAIN,
        "from": inbound.raw["from"],
        "messageId": item.message_id,
        "senderId": inbound.row.id,
        "sender": inbound.sender,
        "text": inbound.message.content.text,
        "receivedAtMs": item.received_at_ms,
        "isAsk": inbound.message.is_ask,
    }
