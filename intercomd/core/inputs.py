"""The input of parked children: stored before it is acknowledged, handed over in order (wire.md 9.5).

Owns each message from its acceptance until the kernel took it, or it died. Does not own which children there are
(``parking``).

What waits goes to a child with the same peer ID **and** the same root, in the order it was accepted, and leaves the
spool once the kernel took it. While some of it has not been handed over, what comes new waits behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core import refusals
from intercomd.core.dedupe import Remembered, content_hash, message_key
from intercomd.core.deliveries import ANSWERED_PARKED, Delivery, acknowledgement, frame_bytes
from intercomd.core.items import INPUT, Author, Item
from intercomd.core.parked import HANDED, STORED, STORING, Child, Input, author_of
from intercomd.core.quotas import Excess

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.core.deliveries import Deliveries
    from intercomd.core.obligations import Obligations
    from intercomd.core.roster import Session
    from intercomd.core.state import State
    from libintercom.wire.messages import Message

# When a child's socket has no room for the next message though nothing of its own is on its way.
_RETRY_DRAIN_S = 1.0


class Inputs:
    """Every message that waits for a parked child. ``on_change`` hears of children whose input changed."""

    def __init__(
        self, state: State, obligations: Obligations, deliveries: Deliveries, on_change: Callable[[Child], None]
    ) -> None:
        self._state, self._obligations, self._deliveries = state, obligations, deliveries
        self._on_change = on_change
        self._by_key: dict[str, tuple[Child, Input]] = {}
        self._by_token: dict[int, tuple[Child, Input]] = {}
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._by_key)

    # -- accepting -----------------------------------------------------------------------------------

    def excess(self, child: Child, size_bytes: int) -> Excess | None:
        """Say whether one more message would pass what may wait for a child, or for all."""
        limits = self._state.limits
        for rule, count, more, limit in (
            ("parked_messages", len(child.inputs), 1, limits.parked_messages),
            ("parked_bytes", child.size_bytes, size_bytes, limits.parked_bytes),
            ("parked_bytes_total", self._size_bytes, size_bytes, limits.parked_bytes_total),
        ):
            if count + more > limit:
                return Excess(rule, count, limit, 0)
        return None

    def admit(
        self, sender: Session, child: Child, message: Message, parts: tuple[bytes, bytes], known: Remembered
    ) -> Input:
        """Take in an accepted message; ``parts``: its sender's row and its bytes. It is answered once stored."""
        state = self._state
        waiting = Input(
            key=state.storing.next_key(),
            author=Author(sender.peer_id, sender.lineage),
            message_id=message.id,
            row=parts[0],
            message=parts[1],
            at_ms=state.turn.at_ms,
            is_passive=message.is_passive,
            known=known,
            askers=[sender.conn],
            state=STORING,
        )
        known.spooled = waiting
        self._hold(child, waiting)
        state.storing.store(INPUT, waiting.key, waiting.facts(child), waiting.row, waiting.message)
        return waiting

    def recover(self, child: Child, item: Item) -> None:
        """A message that an earlier broker kept. It is accepted anew, and known when it is sent again."""
        facts, state = item.read(), self._state
        author = author_of(facts)
        known = Remembered(content_hash(child.child_id, item.message), 0, "", 0, ANSWERED_PARKED)
        waiting = Input(
            item.key, author, facts["id"], item.row, item.message, facts["at"], facts["passive"], known, state=STORED
        )
        known.spooled = waiting
        state.dedupe.remember(message_key(author.peer_id, facts["id"]), known, state.turn.now)
        state.counters.accept("parked")
        self._hold(child, waiting)

    def stored(self, key: str) -> tuple[Child, Input] | None:
        """A message is kept: its sender may know. Returns it while it is wanted."""
        if key not in self._by_key:
            return None
        child, waiting = self._by_key[key]
        waiting.state, waiting.known.answer = STORED, ANSWERED_PARKED
        self._state.counters.accept("parked")
        for conn, session in self._take_askers(waiting):
            self._state.turn.write(conn, acknowledgement(session, waiting.message_id, ANSWERED_PARKED))
        if waiting.doom:
            self.bury(child, waiting, waiting.doom)
            return None
        return child, waiting

    def store_failed(self, key: str, cause: str) -> None:
        """A message could not be kept: its sender is told, and it is as if it had never come."""
        if key not in self._by_key:
            return
        (child, waiting), state = self._by_key[key], self._state
        self._release(child, waiting)
        known = message_key(waiting.author.peer_id, waiting.message_id)
        if state.dedupe.find(known, state.turn.now) is waiting.known:
            state.dedupe.forget(known)
        if waiting.ask is not None and not waiting.ask.ended_by:
            self._obligations.withdraw(waiting.ask)
        refused = refusals.not_stored(waiting.message_id, child.child_id, cause)
        for conn, session in self._take_askers(waiting):
            state.counters.refuse("store_failed")
            state.turn.write(conn, refusals.for_dialect(refused, session))
        self._on_change(child)

    def bury(self, child: Child, waiting: Input, reason: str) -> None:
        """What waits can no longer arrive. One that is being stored dies once it is."""
        if waiting.state == STORING:
            waiting.doom = reason
            return
        state = self._state
        state.counters.move("parked", f"dead_{reason}")
        state.storing.forget(waiting.key, is_answered=reason == "discarded")
        self._release(child, waiting)
        state.dedupe.forget(message_key(waiting.author.peer_id, waiting.message_id))
        state.letters.bury(waiting.author, child.child_id, waiting.message_id, reason)
        if waiting.ask is not None and not waiting.ask.ended_by:
            self._obligations.withdraw(waiting.ask)

    # -- handing over --------------------------------------------------------------------------------

    def drain(self, child: Child) -> None:
        """Hand over what may be handed over now, in order; what comes new waits for as long as some may not be."""
        session = child.live
        if session is None:
            return
        self._state.deadlines.clear(("drain", child.child_id))
        session.is_spooled = not all(self._hand(child, session, one) for one in list(child.inputs.values()))

    def taken(self, token: int) -> None:
        """The kernel has a whole message: it leaves the spool."""
        child, waiting = self._by_token.pop(token)
        self._state.storing.forget(waiting.key)
        self._release(child, waiting)
        self._on_change(child)

    def lost(self, token: int) -> None:
        """The child's socket went before it had a whole message: that waits again, in its place."""
        child, waiting = self._by_token.pop(token)
        gone = waiting.conn
        waiting.state, waiting.token, waiting.conn = STORED, 0, 0
        waiting.known.spooled = waiting
        # On the connection that is going nothing is handed over any more.
        if child.live is None or child.live.conn != gone:
            self._on_change(child)

    def _hand(self, child: Child, session: Session, waiting: Input) -> bool:
        """Whether a message is on its way to this very connection now."""
        if waiting.state == HANDED:
            # On an older connection it may still come to nothing, and would then be overtaken.
            return waiting.conn == session.conn
        if waiting.state == STORING:
            return False
        connection = self._state.roster.connections[session.conn]
        size_bytes = frame_bytes(waiting.row, waiting.message)
        if self._state.quotas.recipient_excess(connection, size_bytes) is not None:
            self._state.deadlines.set(("drain", child.child_id), self._state.turn.now + _RETRY_DRAIN_S)
            return False
        self._mark_handed(child, session, waiting)
        delivery = Delivery(
            token=waiting.token,
            # It was answered when it was stored, and is here again if it is lost: nobody is told by the delivery.
            sender=child.listed,
            message_id=waiting.message_id,
            recipient=connection,
            recipient_id=child.child_id,
            size_bytes=size_bytes,
            known=None,
            ask=waiting.ask,
        )
        delivery.gauge, delivery.origin = "parked", self
        self._deliveries.start(delivery, waiting.row, waiting.message)
        if waiting.ask is not None:
            self._obligations.arrive(waiting.ask)
        return True

    def _mark_handed(self, child: Child, session: Session, waiting: Input) -> None:
        waiting.state, waiting.conn, waiting.token = HANDED, session.conn, self._deliveries.next_token()
        self._by_token[waiting.token] = (child, waiting)
        # Sent again, it is the same message for as long as this endpoint is there.
        known = waiting.known
        known.spooled, known.token = None, waiting.token
        known.recipient_conn, known.recipient_epoch = session.conn, session.row.epoch

    # -- the books -----------------------------------------------------------------------------------

    def _hold(self, child: Child, waiting: Input) -> None:
        child.inputs[waiting.key] = waiting
        self._by_key[waiting.key] = (child, waiting)
        self._size_bytes += waiting.size_bytes

    def _release(self, child: Child, waiting: Input) -> None:
        waiting.is_over = True
        del child.inputs[waiting.key], self._by_key[waiting.key]
        self._size_bytes -= waiting.size_bytes

    def _take_askers(self, waiting: Input) -> list[tuple[int, Session]]:
        """Who is to be answered: its author, where it is still registered."""
        found = ((conn, self._state.roster.session_of(conn)) for conn in waiting.askers)
        waiting.askers = []
        return [(conn, session) for conn, session in found if session and session.peer_id == waiting.author.peer_id]
