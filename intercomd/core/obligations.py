"""Beginning and ending asks: the one place where an ask ends, and who is told (wire.md 9.6).

Owns the steps; ``asks`` owns the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core import asks as ends
from libintercom.wire.answers import AskRetired

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.core.asks import Ask
    from intercomd.core.roster import Session
    from intercomd.core.state import State

# The ends that the recipient is told, so that it stops counting the question as pending.
_RETIRING = (ends.TIMEOUT, ends.CANCELLED, ends.ASKER_LEFT, ends.REPLACED)


class Obligations:
    """Opens and ends asks on the shared state, and counts how they ended."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.opened = 0
        self.ended: dict[str, int] = {}
        # Hears how a kept ask ended.
        self.on_kept_end: Callable[[Ask], None] | None = None

    def open(self, ask: Ask, asker: Session) -> None:
        """An ask was accepted."""
        state = self._state
        if not asker.has_ext:
            # A client without ``ext:1`` makes one ask at a time: it gave up on the one before, waiting now or not.
            earlier = state.asks.of_asker(asker.peer_id)
            for given_up in earlier:
                self.stop_waiting(given_up)
            if len(earlier) >= state.limits.max_asks_per_asker:
                # It cannot withdraw a question either: the oldest makes room, or it could never ask again.
                self.end(earlier[0], ends.REPLACED)
        self.opened += 1
        state.asks.open(ask)
        if ask.is_waiting:
            state.deadlines.set(("ask", *ask.key), state.turn.now + ask.timeout_s)

    def end(self, ask: Ask, reason: str) -> None:
        """An ask ends, once; its recipient is told when it had the question and owes nothing any more."""
        state = self._state
        state.asks.close(ask)
        state.deadlines.clear(("ask", *ask.key))
        self.ended[reason] = self.ended.get(reason, 0) + 1
        ask.ended_by = reason
        if ask.is_delivered:
            self._tell_retired(ask)
        if ask.is_kept and self.on_kept_end is not None:
            self.on_kept_end(ask)

    def arrive(self, ask: Ask) -> None:
        """A question is on its way to its recipient. One that ended in the stage is retired behind it."""
        ask.is_delivered = True
        self._tell_retired(ask)

    def withdraw(self, ask: Ask) -> None:
        """An ask was not accepted after all."""
        self.end(ask, ends.NOT_DELIVERED)

    def time_out(self, asker_id: str, message_id: str) -> None:
        """An ask's time is up. A default timer ends the waiting only: the question stands."""
        ask = self._state.asks.find(asker_id, message_id)
        if ask is None:
            return
        if ask.is_timed and not ask.is_kept:
            self.end(ask, ends.TIMEOUT)
        else:
            self.stop_waiting(ask)

    def cancel(self, asker_id: str, message_id: str) -> None:
        """The asker gave up; silent when there is no such ask."""
        ask = self._state.asks.find(asker_id, message_id)
        if ask is not None:
            self.end(ask, ends.CANCELLED)

    def leave(self, peer_id: str, *, is_parked: bool = False) -> None:
        """A session left: what it asked ends, or nobody waits for it; what it owes ends, unless it will come back."""
        for ask in self._state.asks.of_asker(peer_id):
            if ask.is_kept:
                self.stop_waiting(ask)
            else:
                self.end(ask, ends.ASKER_LEFT)
        if not is_parked:
            self.give_up(peer_id)

    def give_up(self, peer_id: str) -> None:
        """A session will answer nothing any more."""
        for ask in self._state.asks.of_recipient(peer_id):
            self.end(ask, ends.RECIPIENT_LEFT)

    def stop_waiting(self, ask: Ask) -> None:
        """Nobody waits for the reply any more; the question stands."""
        self._state.asks.stop_waiting(ask)
        self._state.deadlines.clear(("ask", *ask.key))

    def answered_by(self, sender_id: str, recipient_id: str, reply_to: str | None) -> Ask | None:
        """The open ask that a message from ``sender_id`` would be the first reply to."""
        if reply_to is None:
            return None
        ask = self._state.asks.find(recipient_id, reply_to)
        return ask if ask is not None and ask.recipient_id == sender_id else None

    def replace_thread(self, asker_id: str, recipient_id: str, thread_id: str) -> None:
        """A newer message of a thread was accepted: an older question in it is void."""
        for ask in self._state.asks.of_asker(asker_id):
            if ask.recipient_id == recipient_id and ask.thread_id == thread_id:
                self.end(ask, ends.REPLACED)

    def _tell_retired(self, ask: Ask) -> None:
        recipient = self._state.roster.sessions.get(ask.recipient_id)
        if ask.ended_by in _RETIRING and recipient is not None and recipient.has_ext:
            told = AskRetired(message_id=ask.message_id, asker_id=ask.asker_id, reason=ask.ended_by)
            self._state.turn.write(recipient.conn, told)
