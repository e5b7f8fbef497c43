"""How long the broker lives: idle exit, stopping in order, the end (ownership.md section 5).

Owns when it leaves. Does not own giving up the endpoint (an edge does, and reports it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.effects import Close, Exit, StopAccepting

if TYPE_CHECKING:
    from intercomd.core.flow import Flow
    from intercomd.core.parking import Parking
    from intercomd.core.staging import Staging
    from intercomd.core.state import State

_IDLE = ("idle",)
_STOP = ("stop",)
# ownership.md section 5: whoever is waited for defers an idle exit by at most so long.
_LONGEST_DEFERRAL_S = 60.0


class Lifetime:
    """Serving, then leaving, then over."""

    def __init__(self, state: State, flow: Flow, staging: Staging, parking: Parking) -> None:
        self._state, self._flow, self._staging, self._parking = state, flow, staging, parking
        self.is_over = False
        self._leaving_for = ""
        self._is_idle_due = False
        self._is_released = False

    @property
    def is_leaving(self) -> bool:
        return bool(self._leaving_for)

    def consider_idle(self) -> None:
        """Sessions came or went: arm, keep or clear the idle timer."""
        state = self._state
        if state.limits.idle_exit_s is None or self.is_leaving:
            return
        if state.roster.sessions or self._parking.inputs:
            # Input that was admitted for a parked child keeps a broker for its main to come back to.
            self._is_idle_due = False
            state.deadlines.clear(_IDLE)
        elif self._is_idle_due:
            self._leave_idle()
        elif _IDLE not in state.deadlines:
            state.deadlines.set(_IDLE, state.turn.now + state.limits.idle_exit_s)

    def meet_idle(self) -> None:
        """Nobody was here for long enough. Whoever is about to register, or is owed a list, is waited for."""
        deadlines, now = self._state.deadlines, self._state.turn.now
        if self._is_idle_due:
            self._leave_for_idleness()
            return
        self._is_idle_due = True
        deadlines.set(_IDLE, now + _LONGEST_DEFERRAL_S)
        self._leave_idle()

    def stay(self) -> None:
        """A connection was in the backlog: the idle exit is off, unless a stop was asked for since."""
        if self._leaving_for != "idle":
            self._state.turn.add(StopAccepting(self._leaving_for))
            return
        self._leaving_for = ""
        self._is_idle_due = False
        self.consider_idle()

    def stop(self, reason: str) -> None:
        """Leave in order: what is staged goes out, nobody new comes in, what waits gets a moment."""
        if self.is_leaving and self._leaving_for != "idle":
            return
        state = self._state
        was_leaving, self._leaving_for = self.is_leaving, reason
        state.deadlines.clear(_IDLE)
        state.deadlines.set(_STOP, state.turn.now + state.limits.stop_timeout_s)
        self._staging.release_all()
        state.turn.log("info", "stopping", reason=reason, sessions=len(state.roster.sessions))
        if not was_leaving:
            state.turn.add(StopAccepting(reason))

    def released(self) -> None:
        """The endpoint is not ours any more."""
        self._is_released = True
        if _STOP not in self._state.deadlines:
            self._state.deadlines.set(_STOP, self._state.turn.now + self._state.limits.stop_timeout_s)

    def consider_end(self) -> None:
        """End once the endpoint is released, and nothing waits for a socket or for the spool."""
        if not self._is_released or self.is_over:
            return
        state = self._state
        self._staging.release_all()
        if state.storing or state.quotas.held_bytes:
            return
        if any(connection.waiting_bytes for connection in state.roster.connections.values()):
            return
        self.end()

    def end(self) -> None:
        """Close everyone and exit."""
        state = self._state
        self._staging.release_all()
        self.is_over = True
        for connection in state.roster.connections.values():
            if not connection.is_closing:
                reason = f"the broker leaves: {self._leaving_for}"
                state.turn.add(Close(connection.conn, reason, is_after_flush=True))
        state.deadlines.clear(_STOP)
        state.turn.add(Exit(0, self._leaving_for))

    def _leave_idle(self) -> None:
        if not self._flow.unregistered and not self._flow.late:
            self._leave_for_idleness()

    def _leave_for_idleness(self) -> None:
        self._state.deadlines.clear(_IDLE)
        self._leaving_for = "idle"
        self._state.turn.add(StopAccepting("idle", is_cancellable=True))
