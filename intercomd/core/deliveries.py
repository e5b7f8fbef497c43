"""What became of a delivery: taken by the kernel, held in our memory, or lost with its recipient.

Owns deliveries between ``Deliver`` and their end, and acknowledging them. An acknowledgement is only ever
what was observed (wire.md 14.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from intercomd.core.dedupe import message_key
from intercomd.core.effects import Acknowledge, Deliver, DeliverAll
from intercomd.core.refusals import HELD, KEPT, PARKED, RECIPIENT_LEFT, STAGED, for_dialect, refusal
from libintercom.wire.answers import Delivered, DeliveryQueued
from libintercom.wire.codec import INCOMING_OVERHEAD_BYTES
from libintercom.wire.messages import SIBLING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from intercomd.core.asks import Ask
    from intercomd.core.dedupe import Remembered
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


class Delivery:
    """One message on its way to a socket.

    ``sender`` and ``recipient_id`` may have left since. ``known`` is what is remembered of it, to be told how it was
    answered; None when it was answered before (staged). ``gauge`` is where it is counted; ``""`` until it is accepted.
    What is counted as parked stays in the spool, and in that gauge, until it was taken.
    ``again`` are the connections that sent it again before it was settled: they are answered too. ``origin`` is told
    how it ended.
    """

    __slots__ = (
        "again",
        "ask",
        "gauge",
        "known",
        "message_id",
        "origin",
        "recipient",
        "recipient_id",
        "sender",
        "size_bytes",
        "token",
    )

    def __init__(
        self,
        token: int,
        sender: Session,
        message_id: str,
        recipient: Connection,
        recipient_id: str,
        size_bytes: int,
        known: Remembered | None,
        ask: Ask | None = None,
    ) -> None:
        self.token, self.sender, self.message_id = token, sender, message_id
        self.recipient, self.recipient_id, self.size_bytes = recipient, recipient_id, size_bytes
        self.known, self.ask = known, ask
        self.gauge = ""
        self.origin: Origin | None = None
        self.again: list[int] | None = None


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

    @property
    def last_token(self) -> int:
        """Those behind it are for ``start_all``."""
        return self._last_token

    def start(self, delivery: Delivery, sender_row: bytes, message: bytes) -> None:
        """Put a message on its way."""
        state, token, recipient = self._state, delivery.token, delivery.recipient
        self._open[token] = delivery
        recipient.tokens[token] = None
        state.quotas.hold(recipient, delivery.size_bytes)
        state.turn.effects.append(Deliver(recipient.conn, token, sender_row, message))

    def start_all(self, started: list[Delivery], size_bytes: int, sender_row: bytes, messages: list[bytes]) -> None:
        """Put messages of one sender to one recipient on their way: their tokens follow ``last_token``."""
        state, recipient = self._state, started[0].recipient
        open_, waiting, token = self._open, recipient.tokens, self._last_token
        for delivery in started:
            token = delivery.token
            open_[token] = delivery
            waiting[token] = None
        tokens = range(self._last_token + 1, token + 1)
        self._last_token = token
        state.quotas.hold(recipient, size_bytes, len(started))
        state.turn.effects.append(DeliverAll(recipient.conn, tokens, sender_row, messages))

    def repeat(self, token: int, conn: int) -> None:
        """The same send came again before the first was settled: both are answered then."""
        delivery = self._open[token]
        delivery.again = [*(delivery.again or ()), conn]

    def taken_all(self, tokens: Iterable[int]) -> None:
        """The kernel has all of these: delivered. Neighbours of one sender are acknowledged together."""
        state, open_ = self._state, self._open
        asker: Session | None = None
        ids: list[str] = []
        count = size_bytes = 0
        for token in tokens:
            delivery = open_.get(token)
            if (
                delivery is None
                or delivery.gauge
                or delivery.again
                or delivery.known is None
                or delivery.origin is not None
                or (delivery.sender is not asker and not self._is_plain(delivery.sender))
            ):
                # Its origin may go on with what comes next, by what there is room for now.
                state.quotas.held_bytes -= size_bytes
                asker, size_bytes = None, 0
                self.taken(token)
                continue
            if delivery.sender is not asker:
                asker, ids = delivery.sender, []
                state.turn.effects.append(Acknowledge(asker.conn, ids))
            ids.append(delivery.message_id)
            delivery.known.answer = ANSWERED_DELIVERED
            del open_[token]
            recipient = delivery.recipient
            del recipient.tokens[token]
            recipient.held_messages -= 1
            recipient.held_bytes -= delivery.size_bytes
            size_bytes += delivery.size_bytes
            count += 1
        state.quotas.held_bytes -= size_bytes
        state.counters.accept("delivered", count)

    def _is_plain(self, sender: Session) -> bool:
        """Whether a sender is there still, and told of a delivery by a frame that says nothing else."""
        connection = self._state.roster.connections.get(sender.conn)
        return connection is not None and connection.session is sender and sender.dialect != SIBLING

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
        key = message_key(delivery.sender.peer_id, delivery.message_id)
        if state.dedupe.find(key, state.turn.now) is delivery.known:
            state.dedupe.forget(key)
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
        for conn in (sender.conn, *(delivery.again or ())):
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
