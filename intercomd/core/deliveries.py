"""What became of a delivery: taken by the kernel, held in our memory, or lost with its recipient.

Owns deliveries between ``Deliver`` and their end, and acknowledging them. An acknowledgement is only ever
what was observed (wire.md 14.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from intercomd.core.effects import Deliver
from intercomd.core.refusals import HELD, KEPT, PARKED, RECIPIENT_LEFT, STAGED, for_dialect, refusal
from libintercom.wire.answers import Delivered, DeliveryQueued
from libintercom.wire.codec import INCOMING_OVERHEAD_BYTES
from libintercom.wire.messages import SIBLING

if TYPE_CHECKING:
    from intercomd.core.asks import Ask
    from intercomd.core.dedupe import MessageKey, Remembered
    from intercomd.core.obligations import Obligations
    from intercomd.core.roster import Connection, Session
    from intercomd.core.state import State

# How an accepted message was answered; kept for the case that it is sent again.
ANSWERED_DELIVERED = "delivered"
ANSWERED_HELD = "held"
ANSWERED_STAGED = "staged"
ANSWERED_PARKED = "parked"
ANSWERED_KEPT = "kept"
_QUEUED_REASONS = {ANSWERED_HELD: HELD, ANSWERED_STAGED: STAGED, ANSWERED_PARKED: PARKED, ANSWERED_KEPT: KEPT}


class Origin(Protocol):
    """Where a delivery came from, if that has to know how it ended."""

    def taken(self, token: int) -> None:
        """The kernel has all of it."""

    def lost(self, token: int) -> None:
        """The recipient's socket is gone, and what was not taken with it."""


@dataclass(slots=True, eq=False)
class Delivery:
    """One message on its way to a socket. ``gauge`` is where it is counted; ``""`` until it is accepted."""

    token: int
    # Who sent it; it may have left since.
    sender: Session
    message_id: str
    recipient: Connection
    recipient_id: str
    size_bytes: int
    # What is remembered of it, to be told how it was answered; None when it was answered before (staged).
    known: Remembered | None
    key: MessageKey
    ask: Ask | None
    gauge: str
    # Connections to acknowledge to: more than one when the same send came again in the same turn.
    askers: list[int] = field(default_factory=list)
    # What is counted as parked stays in the spool, and in that gauge, until it was taken.
    origin: Origin | None = None


class Deliveries:
    """Every delivery that has not ended."""

    def __init__(self, state: State, obligations: Obligations) -> None:
        self._state, self._obligations = state, obligations
        self._open: dict[int, Delivery] = {}
        self._last_token = 0

    def __len__(self) -> int:
        return len(self._open)

    def next_token(self) -> int:
        """A token never used before."""
        self._last_token += 1
        return self._last_token

    def start(self, delivery: Delivery, sender_row: bytes, message: bytes) -> None:
        """Put a message on its way."""
        state, token, recipient = self._state, delivery.token, delivery.recipient
        self._open[token] = delivery
        recipient.tokens[token] = None
        state.quotas.hold(recipient, delivery.size_bytes)
        state.turn.effects.append(Deliver(recipient.conn, token, sender_row, message))

    def repeat(self, token: int, conn: int) -> None:
        """The same send came again before the first was settled: both are answered then."""
        self._open[token].askers.append(conn)

    def taken(self, token: int) -> None:
        """The kernel has all of it: delivered."""
        delivery = self._close(token)
        if delivery is None:
            return
        if delivery.gauge:
            place = "drained" if delivery.gauge == "parked" else "delivered"
            self._state.counters.move(delivery.gauge, place)
        else:
            self._state.counters.accept("delivered")
            self._acknowledge(delivery, ANSWERED_DELIVERED)
        if delivery.origin is not None:
            delivery.origin.taken(token)

    def held(self, token: int) -> None:
        """Some of it is still ours: accepted, not delivered."""
        delivery = self._open.get(token)
        if delivery is None or delivery.gauge == "parked":
            return
        if delivery.gauge:
            self._state.counters.move(delivery.gauge, "buffered")
        else:
            self._state.counters.accept("buffered")
            self._acknowledge(delivery, ANSWERED_HELD)
        delivery.gauge = "buffered"

    def lose(self, recipient: Connection) -> None:
        """A recipient's socket is gone: what was accepted is dead, the rest was never delivered."""
        for token in list(recipient.tokens):
            delivery = self._close(token)
            if delivery is None:
                continue
            if delivery.origin is not None:
                delivery.origin.lost(token)
            if delivery.gauge == "parked":
                continue
            if delivery.gauge:
                self._state.counters.move(delivery.gauge, "dead_recipient_left")
                self._state.letters.bury(delivery.sender, delivery.recipient_id, delivery.message_id, "recipient_left")
            else:
                self._fail(delivery)

    def answer_again(self, sender: Session, message_id: str, answer: str) -> None:
        """Say once more how a message was answered."""
        self._state.turn.write(sender.conn, acknowledgement(sender, message_id, answer))

    def _acknowledge(self, delivery: Delivery, answer: str) -> None:
        if delivery.known is not None:
            delivery.known.answer = answer
        said = acknowledgement(delivery.sender, delivery.message_id, answer)
        for conn in self._askers(delivery):
            self._state.turn.write(conn, said)

    def _fail(self, delivery: Delivery) -> None:
        state = self._state
        if state.dedupe.find(delivery.key, state.turn.now) is delivery.known:
            state.dedupe.forget(delivery.key)
        if delivery.ask is not None and state.asks.find(*delivery.ask.key) is delivery.ask:
            self._obligations.withdraw(delivery.ask)
        frame = for_dialect(refusal(delivery.message_id, "recipient_left", RECIPIENT_LEFT), delivery.sender)
        for conn in self._askers(delivery):
            state.counters.refuse("recipient_left")
            state.turn.write(conn, frame)

    def _askers(self, delivery: Delivery) -> list[int]:
        """Who is to be answered. Who unregistered in the same breath is; who came instead is somebody else."""
        connections, sender = self._state.roster.connections, delivery.sender
        found = []
        for conn in delivery.askers:
            connection = connections.get(conn)
            session = connection.session if connection is not None else sender
            if connection is not None and (session is None or session.peer_id == sender.peer_id):
                found.append(conn)
        return found

    def _close(self, token: int) -> Delivery | None:
        delivery = self._open.pop(token, None)
        if delivery is None:
            return None
        del delivery.recipient.tokens[token]
        self._state.quotas.release(delivery.recipient, delivery.size_bytes)
        return delivery


def acknowledgement(sender: Session, message_id: str, answer: str) -> Delivered | DeliveryQueued:
    """How an accepted message is answered, in the sender's dialect (wire.md 8.3)."""
    is_delivered = answer == ANSWERED_DELIVERED
    if sender.dialect == SIBLING:
        word = "socket_delivered" if is_delivered else "queued"
        return Delivered(message_id=message_id, delivery=word, retryable=False, outcome_known=True)
    if is_delivered:
        return Delivered(message_id=message_id)
    return DeliveryQueued(message_id=message_id, reason=_QUEUED_REASONS[answer])


def frame_bytes(sender_row: bytes, message: bytes) -> int:
    """The payload size of the frame that carries a message."""
    return INCOMING_OVERHEAD_BYTES + len(sender_row) + len(message)
