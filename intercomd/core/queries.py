"""Answering what a client asks the broker about: sessions, its own dead letters, counts (wire.md 9.8, 14.10).

Owns composing the answers and saying how large they are. Does not own when they are given (``flow``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.lists import write_list
from libintercom.wire.answers import StatsResult
from libintercom.wire.requests import FetchReply, ListDeadLetters, ListSessions, Stats

if TYPE_CHECKING:
    from intercomd.core.kept import Kept
    from intercomd.core.obligations import Obligations
    from intercomd.core.roster import Connection
    from intercomd.core.state import State

Query = ListSessions | ListDeadLetters | Stats | FetchReply
# What an answer of counters and gauges comes to, to charge it; its names are the broker's own.
_STATS_BYTES = 1_024


class Queries:
    """Answers from the shared state."""

    def __init__(self, state: State, obligations: Obligations, kept: Kept) -> None:
        self._state, self._obligations, self._kept = state, obligations, kept

    def answer(self, connection: Connection, frame: Query) -> int:
        """Ask for the answer to be written; returns its size in bytes."""
        if isinstance(frame, ListSessions):
            return write_list(self._state, connection, frame)
        if isinstance(frame, ListDeadLetters):
            return self._answer_letters(connection, frame)
        if isinstance(frame, FetchReply):
            return self._kept.answer(connection, frame)
        self._state.turn.write(connection.conn, StatsResult(request_id=frame.request_id, **self.stats()))
        return _STATS_BYTES

    def stats(self) -> dict[str, dict[str, int]]:
        """Counters and gauges as ``stats_result`` carries them."""
        state = self._state
        refused = {f"refused_{code}": count for code, count in sorted(state.counters.refused.items())}
        ended = {f"asks_{reason}": count for reason, count in sorted(self._obligations.ended.items())}
        return {
            "counters": {**state.counters.counts, **refused, "asks": self._obligations.opened, **ended},
            "gauges": {
                **state.counters.held,
                "sessions": len(state.roster.sessions),
                "connections": len(state.roster.connections),
                "openAsks": len(state.asks),
                "waitingAsks": state.asks.waiting,
                "deadLetters": len(state.letters),
                "heldBytes": state.quotas.held_bytes,
                "stagedBytes": state.stage.size_bytes,
                "parkedChildren": len(state.roster.parked),
                "keptAsks": len(self._kept),
                "unstored": len(state.storing),
            },
        }

    def _answer_letters(self, connection: Connection, frame: ListDeadLetters) -> int:
        if connection.session is None:
            raise ValueError(f"connection {connection.conn} has no letters")
        answer, size_bytes = self._state.letters.of_sender(connection.session, frame.request_id, frame.since_ms or 0)
        self._state.turn.write(connection.conn, answer)
        return size_bytes
