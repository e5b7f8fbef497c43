"""Usual sends that one connection made in one read: what they have in common is looked at once for all of them.

Owns the short way of a send that nothing forbids, asks or answers. Does not own any rule: whatever is not plainly
fine by a bound that ``quotas``, ``dedupe`` or ``roster`` gives goes the long way (``sends``), which says what is wrong.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from intercomd.core.dedupe import MAX_KEPT_ID_CHARS, Remembered, content_hash
from intercomd.core.deliveries import Delivery
from libintercom.wire.codec import INCOMING_OVERHEAD_BYTES
from libintercom.wire.frames import MAX_FRAME_BYTES
from libintercom.wire.messages import SIBLING

if TYPE_CHECKING:
    from intercomd.core.deliveries import Deliveries
    from intercomd.core.events import Sent
    from intercomd.core.flow import Flow
    from intercomd.core.roster import Connection, Session
    from intercomd.core.sends import Sends
    from intercomd.core.state import State


class Bursts:
    """Accepts sends on the shared state, as many at once as it may."""

    def __init__(self, state: State, flow: Flow, sends: Sends, deliveries: Deliveries) -> None:
        self._state, self._flow, self._sends, self._deliveries = state, flow, sends, deliveries

    def send(self, connection: Connection, sends: list[Sent]) -> None:
        """Do what each of them alone would, in order."""
        sender = connection.session
        if sender is None or not self._charge(connection, sends):
            for to, message, raw, size_bytes in sends:
                self._flow.charge_input(connection, size_bytes)
                self._sends.send(connection, to, message, raw, size_bytes)
            return
        done, has_receipts = 0, sender.dialect == SIBLING
        while done < len(sends):
            to, message, raw, _size_bytes = sends[done]
            is_plain = message.reply_to is None and message.expects_reply is not True and not has_receipts
            count = self._send_run(sender, sends, done) if is_plain else 0
            if not count:
                self._sends.send_charged(connection, to, message, raw)
            done += count or 1

    def _charge(self, connection: Connection, sends: list[Sent]) -> bool:
        """Charge them all to their sender, if none would be refused or delayed for it."""
        size_bytes = sends[0][3] if len(sends) == 1 else sum([sent[3] for sent in sends])
        if not self._state.quotas.charge_sends(connection.conn, self._state.turn.now, len(sends), size_bytes):
            return False
        if connection.partial_bytes:
            self._flow.charge_input(connection, 0)
        return True

    def _send_run(self, sender: Session, sends: list[Sent], first: int) -> int:
        """Accept those from ``first`` on that have one target and nothing against them; how many there were."""
        state, to = self._state, sends[first][0]
        recipient = self._sends.aim(sender, to)
        if recipient is None or recipient.is_spooled or recipient.row.is_stalled:
            return 0
        connection = state.roster.connections[recipient.conn]
        row = sender.row.render(is_extended=recipient.has_ext, is_guarded=recipient.has_guard)
        overhead = INCOMING_OVERHEAD_BYTES + len(row)
        known_ids = state.dedupe.known_ids(sender.peer_id)
        fresh: dict[str | bytes, Remembered] = {}
        room, room_bytes = state.quotas.room(sender.peer_id, recipient.peer_id, connection)
        left_bytes, token = room_bytes, self._deliveries.last_token
        recipient_id, conn, epoch = recipient.peer_id, recipient.conn, recipient.row.epoch
        started, messages = [], []
        for target, message, raw, _size_bytes in islice(sends, first, first + room if room > 0 else first):
            message_id, size_bytes = message.id, overhead + len(raw)
            if (
                target != to
                or message.expects_reply is True
                or message.reply_to is not None
                or message_id in known_ids
                or message_id in fresh
                or len(message_id) > MAX_KEPT_ID_CHARS
                or size_bytes > left_bytes
                or size_bytes > MAX_FRAME_BYTES
            ):
                break
            left_bytes -= size_bytes
            token += 1
            known = fresh[message_id] = Remembered(content_hash(recipient_id, raw), conn, epoch, token)
            started.append(Delivery(token, sender, message_id, connection, recipient_id, size_bytes, known))
            messages.append(raw)
        if started:
            state.dedupe.keep_all(sender.peer_id, fresh, state.turn.now)
            state.quotas.charge_pair(sender.peer_id, recipient_id, state.turn.now, len(started))
            self._sends.acquaint(sender, recipient)
            self._deliveries.start_all(started, room_bytes - left_bytes, row, messages)
        return len(started)
