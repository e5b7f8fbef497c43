"""Asking a main to wake its parked child, and what comes of it (wire.md 9.5).

Owns who is asked, which messages a try is for, and ending the wait of those whose question cannot be answered soon.
Does not own the children (``parking``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.parked import STORED
from libintercom.wire.answers import WakeFailedNotice, WakeRequest

if TYPE_CHECKING:
    from intercomd.core.obligations import Obligations
    from intercomd.core.parked import Child, Input
    from intercomd.core.roster import Session
    from intercomd.core.state import State
    from libintercom.wire.requests import WakeOutcome

FAILED = "failed"
_NO_REASON = "its main gave no reason"
# Tries of one child that may still be answered: more than it can hold messages.
_MAX_TRIES = 128
# A row is sent with every message, so the reason in it is short.
_MAX_REASON_CHARS = 256


class Waking:
    """Wakes children of the shared state's mains."""

    def __init__(self, state: State, obligations: Obligations) -> None:
        self._state, self._obligations = state, obligations

    def wake_for(self, child: Child, waiting: Input) -> None:
        """One message came for a child that is away; passive ones wake nobody."""
        if not waiting.is_passive:
            self._request(child, waiting.message_id, (waiting.key,))

    def wake_once(self, child: Child) -> None:
        """A child's main is back: ask once for all that waits."""
        active = [one for one in child.inputs.values() if not one.is_passive and one.state == STORED]
        if active:
            self._request(child, active[0].message_id, tuple(one.key for one in active))

    def settle(self, child: Child, outcome: WakeOutcome) -> None:
        """What a try came to. One that was never asked for, or was told already, changes nothing."""
        keys = child.tries.pop(outcome.attempt, None)
        if keys is None or child.live is not None:
            return
        if outcome.outcome != FAILED:
            child.failure = None
            child.show()
            return
        reason = outcome.reason or _NO_REASON
        child.failure = {"reason": reason[:_MAX_REASON_CHARS], "atMs": self._state.turn.at_ms}
        child.show()
        for key in keys:
            if key in child.inputs:
                self._end_wait(child.inputs[key], reason)

    def _request(self, child: Child, message_id: str, keys: tuple[str, ...]) -> None:
        main = self._main_of(child)
        if main is None:
            return
        child.attempt += 1
        child.tries[child.attempt] = keys
        if len(child.tries) > _MAX_TRIES:
            del child.tries[next(iter(child.tries))]
        asked = WakeRequest(child_id=child.child_id, message_id=message_id, attempt=child.attempt)
        self._state.turn.write(main.conn, asked)

    def _main_of(self, child: Child) -> Session | None:
        """Who is asked: the main that parked it, or another one of its group that knows how."""
        mains = [main for main in self._state.roster.group_mains(child.root) if main.has_ext]
        own = [main for main in mains if main.peer_id == child.owner_id]
        return next(iter(own or mains), None)

    def _end_wait(self, waiting: Input, reason: str) -> None:
        ask = waiting.ask
        if ask is None or ask.ended_by or not ask.is_waiting:
            return
        self._obligations.stop_waiting(ask)
        asker = self._state.roster.sessions.get(ask.asker_id)
        if asker is not None and asker.has_ext and asker.lineage == waiting.author.lineage:
            self._state.turn.write(asker.conn, WakeFailedNotice(message_id=ask.message_id, reason=reason))
