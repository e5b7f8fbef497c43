"""Native receipts: what the journal of this very session observed of one message (wire.md 9.4). Pure.

Owns making the receipt from one message's entries and refusing to speak for another root. Facts stay apart: each was
observed once, and none says what is so now. Does not own reading the journal.

Driven so: ``make_receipt(journal.receipt_rows(message_id), request…, session=native id, root=its root)``.
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame
from libintercom.session.entries import fold
from libintercom.wire.guards import Guard, ReplyHint
from libintercom.wire.reads import NativeReceipt, ReadError, ReceiptSender
from libintercom.wire.record import parse_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from libintercom.session.entries import Entry, Standing

_VERSION = 1


def make_receipt(
    rows: Sequence[Entry], *, root_session_id: str, message_id: str, session: str, root: str
) -> NativeReceipt | ReadError:
    """The receipt of ``message_id``, or why there is none.

    ``rows``: its entries, oldest first; ``root_session_id``: the root that was asked about; ``session`` and ``root``:
    this journal's native session and its root. What was copied from another session attests nothing here.
    """
    if root_session_id != root:
        return ReadError(code="publication_unavailable", reason="this session does not own that root")
    standing = fold(row for row in rows if row.message_id == message_id)
    if standing is None or standing.admitted is None:
        return _absent("no checkpoint of that message is on record; that proves nothing about its effects")
    if standing.admitted.body.get("session") != session:
        return _absent("its checkpoint was made by another session")
    try:
        return _receipt(standing, standing.admitted.body, root)
    except (InvalidFrame, KeyError, TypeError):
        return _absent("its checkpoint is damaged")


def _absent(reason: str) -> ReadError:
    return ReadError(code="receipt_not_found", reason=reason)


def _receipt(standing: Standing, body: dict[str, Any], root: str) -> NativeReceipt:
    row, message = body["from"], body["message"]
    guarded: dict[str, Any] = {
        name: parse_record(record, message[wire_name])
        for name, wire_name, record in (("guard", "guard", Guard), ("reply_hint", "replyHint", ReplyHint))
        if message.get(wire_name) is not None
    }
    origin = {"root_session_id": row.get("rootSessionId"), "incarnation": row.get("incarnation")}
    return NativeReceipt(
        version=_VERSION,
        root_session_id=root,
        message_id=standing.message_id,
        sender=ReceiptSender(peer_id=row["id"], **{name: value for name, value in origin.items() if value is not None}),
        delivery="passive" if message.get("passive") is True else message.get("delivery"),
        received_at=body["receivedAt"],
        checkpoint_entry_id=standing.admitted.entry_id if standing.admitted else "",
        text_sha256=body["textSha256"],
        queued=standing.was_queued,
        native_handoff=standing.was_handed,
        placement_entry_id=standing.placement,
        discarded=standing.was_discarded,
        **guarded,
    )
