"""Forwarding a sibling's receipts to the sibling that sent the message (wire.md section 3, ``message_receipt``).

Owns the routes a receipt may take. A receipt without a route is ignored.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from intercomd.core.roster import may_see
from libintercom.wire.answers import ForwardedReceipt
from libintercom.wire.codec import encode
from libintercom.wire.frames import MAX_FRAME_BYTES, decode_json
from libintercom.wire.messages import SIBLING, Row
from libintercom.wire.record import parse_record

if TYPE_CHECKING:
    from intercomd.core.roster import Connection, Session
    from intercomd.core.state import State
    from libintercom.wire.requests import SendReceipt

# How long and how many messages a receipt may still come for (wire.md section 3 and 5.6).
_ROUTE_S = 3_600.0
_MAX_ROUTES = 4_096


class Receipts:
    """Which sibling sent which message to which sibling."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._routes: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()

    def remember(self, sender: Session, recipient: Session, message_id: str) -> None:
        """A message between siblings was accepted."""
        if sender.dialect != SIBLING or recipient.dialect != SIBLING:
            return
        self._routes[recipient.peer_id, message_id] = (sender.peer_id, self._state.turn.now + _ROUTE_S)
        self._routes.move_to_end((recipient.peer_id, message_id))
        if len(self._routes) > _MAX_ROUTES:
            self._routes.popitem(last=False)

    def forward(self, connection: Connection, frame: SendReceipt) -> None:
        """Pass a receipt on if its message came this way, else ignore it."""
        session = connection.session
        if session is None:
            return
        sender_id, until = self._routes.get((session.peer_id, frame.receipt.message_id), ("", 0.0))
        sender = self._state.roster.sessions.get(sender_id)
        if sender is None or until <= self._state.turn.now or not self._may_hear(sender, session):
            return
        row = parse_record(Row, decode_json(session.row.render(is_extended=False)))
        told = ForwardedReceipt(from_=row, receipt=frame.receipt)
        if len(encode(told)) <= MAX_FRAME_BYTES:
            self._state.turn.write(sender.conn, told)

    def _may_hear(self, sender: Session, recipient: Session) -> bool:
        """Whether the session that now has the sender's ID knows receipts and the recipient, and takes what it gets.

        Its ID may have come back with another client or in another group, and a receipt is worth no memory.
        """
        if sender.dialect != SIBLING or not may_see(sender.registered, recipient.registered):
            return False
        return self._state.roster.connections[sender.conn].waiting_bytes <= self._state.limits.recipient_bytes
