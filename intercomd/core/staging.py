"""Staging replaceable updates, and what becomes of them: replaced, delivered, cancelled or dead (wire.md 5.4).

Owns the steps; ``stage`` owns what is staged. Every arrival is acknowledged as queued; at the end of the quiet
time only the last one is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core import refusals
from intercomd.core.asks import CANCELLED
from intercomd.core.dedupe import message_key
from intercomd.core.deliveries import ANSWERED_STAGED, Delivery, acknowledgement, frame_bytes
from intercomd.core.stage import Staged
from libintercom.wire.answers import Delivered
from libintercom.wire.values import js_trim

if TYPE_CHECKING:
    from intercomd.core.dedupe import Remembered
    from intercomd.core.deliveries import Deliveries
    from intercomd.core.obligations import Obligations
    from intercomd.core.roster import Session
    from intercomd.core.sends import Attempt
    from intercomd.core.stage import StageKey
    from intercomd.core.state import State
    from libintercom.wire.messages import Message


def is_stageable(message: Message, recipient: Session) -> bool:
    """Replace mode to an idle recipient that takes asks, or any replaceable ask; else it is delivered at once."""
    if not message.is_replace:
        return False
    return message.is_ask or (recipient.is_idle and recipient.registered.accepts_asks is not False)


def stage_key(sender_id: str, recipient_id: str, message: Message) -> StageKey:
    """Threads are named by their trimmed label."""
    return (sender_id, recipient_id, js_trim(message.thread_id or ""))


class Staging:
    """Stages, replaces, delivers and drops on the shared state."""

    def __init__(self, state: State, obligations: Obligations, deliveries: Deliveries) -> None:
        self._state, self._obligations, self._deliveries = state, obligations, deliveries

    def has_room_for(self, attempt: Attempt) -> bool:
        """Whether the stage can take this attempt."""
        return self._state.stage.has_room_for(_staged(attempt))

    def stage(self, attempt: Attempt, known: Remembered) -> None:
        """Stage an accepted message in place of an earlier one of its thread."""
        state, staged = self._state, _staged(attempt)
        before = state.stage.take(staged.key)
        if before is not None:
            # Its ask, if it was one, ended when the newer message of the thread was accepted.
            state.counters.move("staged", "replaced")
        state.stage.put(staged)
        state.counters.accept("staged")
        known.answer = ANSWERED_STAGED
        state.deadlines.set(("stage", *staged.key), state.turn.now + state.limits.stage_delay_s)
        state.turn.write(attempt.sender.conn, acknowledgement(attempt.sender, attempt.message.id, ANSWERED_STAGED))

    def supersede(self, sender_id: str, recipient_id: str, message: Message) -> None:
        """A newer message of a thread goes out at once: what is staged of the thread is void."""
        staged = self._take(stage_key(sender_id, recipient_id, message))
        if staged is not None:
            self._state.counters.move("staged", "replaced")

    def release(self, key: StageKey) -> None:
        """The quiet time of a key is over: deliver what it holds."""
        staged = self._take(key)
        if staged is None:
            return
        state = self._state
        recipient = state.roster.sessions[staged.recipient_id]
        size_bytes = frame_bytes(staged.sender_row, staged.message_bytes)
        connection = state.roster.connections[recipient.conn]
        if recipient.row.is_stalled or state.quotas.recipient_excess(connection, size_bytes) is not None:
            self._bury(staged, "discarded")
            return
        delivery = Delivery(
            token=self._deliveries.next_token(),
            sender=staged.sender,
            message_id=staged.message.id,
            recipient=connection,
            recipient_id=recipient.peer_id,
            size_bytes=size_bytes,
            known=None,
            ask=staged.ask,
        )
        delivery.gauge = "staged"
        self._deliveries.start(delivery, staged.sender_row, staged.message_bytes)
        if staged.ask is not None:
            self._obligations.arrive(staged.ask)

    def release_all(self) -> None:
        """Nothing may wait any longer: the broker leaves."""
        for key in self._state.stage.all_keys():
            self.release(key)

    def leave(self, peer_id: str) -> None:
        """A session left: what is staged to it is dead; of what it staged, only its questions are."""
        for staged in self._state.stage.concerning(peer_id):
            if staged.recipient_id == peer_id:
                self._take(staged.key)
                self._bury(staged, "recipient_left")
            elif staged.message.is_ask:
                self._take(staged.key)
                self._bury(staged, "discarded")

    def cancel(self, sender: Session, message_id: str) -> None:
        """A sibling takes back a message: possible while it is staged (wire.md section 3)."""
        staged = self._state.stage.find_message(sender.peer_id, message_id)
        if staged is None:
            reason = "Message to take back: it is not queued here any more; it was delivered or has ended"
            frame = refusals.refusal(message_id, "not_found", reason)
            self._state.turn.write(sender.conn, refusals.for_dialect(frame, sender))
            return
        self._take(staged.key)
        self._state.counters.move("staged", "dead_discarded")
        self._state.dedupe.forget(message_key(sender.peer_id, message_id))
        if staged.ask is not None and not staged.ask.ended_by:
            self._obligations.end(staged.ask, CANCELLED)
        self._state.turn.write(sender.conn, Delivered(message_id=message_id))

    def _take(self, key: StageKey) -> Staged | None:
        self._state.deadlines.clear(("stage", *key))
        return self._state.stage.take(key)

    def _bury(self, staged: Staged, reason: str) -> None:
        state = self._state
        state.counters.move("staged", f"dead_{reason}")
        # It is queued no more: when it is sent again, that is a new attempt.
        state.dedupe.forget(message_key(staged.sender_id, staged.message.id))
        state.letters.bury(staged.sender, staged.recipient_id, staged.message.id, reason)
        if staged.ask is not None and not staged.ask.ended_by:
            self._obligations.withdraw(staged.ask)


def _staged(attempt: Attempt) -> Staged:
    key = stage_key(attempt.sender.peer_id, attempt.recipient.peer_id, attempt.message)
    return Staged(key, attempt.message, attempt.message_bytes, attempt.sender_row, attempt.sender, attempt.ask)
