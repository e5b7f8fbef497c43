"""Slow and greedy connections: pausing, stalling, late answers, bounded waiting (wire.md 14.5, 14.6).

Owns what a budget does to a connection. Nobody is disconnected for speed alone: input is paused, a list is
answered late, presence is coalesced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.effects import Close, PauseAccepting, PauseReading, ResumeAccepting, ResumeReading
from libintercom.wire.record import is_absent

if TYPE_CHECKING:
    from intercomd.core.membership import Membership
    from intercomd.core.queries import Queries, Query
    from intercomd.core.roster import Connection
    from intercomd.core.state import State
    from libintercom.wire.requests import Presence

# Reasons why nothing is read from a connection.
_FOR_OUTPUT = "output"
_FOR_INPUT = "input"
_FOR_PARTIAL = "partial"
# Queries that one connection may have unanswered before it is read no further, and that are answered at once when
# its budget is there again: each answer may be as large as a frame.
_MAX_LATE = 16
# A level a hair below zero would be due at this very moment again, for ever: clocks and floats have a grain.
_MIN_WAIT_S = 0.01
# Reasons why nothing is accepted.
_FOR_UNREGISTERED = "unregistered"
_FOR_DESCRIPTORS = "descriptors"
# Descriptors may be free again without any of our connections ending: the whole system had none.
_ACCEPT = ("accept",)
_RETRY_ACCEPT_S = 1.0


class Flow:
    """Pauses and resumes connections on the shared state."""

    def __init__(self, state: State, membership: Membership, queries: Queries) -> None:
        self._state, self._membership, self._queries = state, membership, queries
        self._late: dict[int, list[Query]] = {}
        self._late_presence: dict[int, Presence] = {}
        # Half-received frames: bytes of all, which connections hold some, and who is read no further because of it.
        self._partial_bytes = 0
        self._partial_holders: dict[int, None] = {}
        self._partial_paused: dict[int, None] = {}
        # What waits for all sockets together, and who is read no further because of what waits.
        self._output_bytes = 0
        self._output_paused: dict[int, None] = {}
        self._unregistered: set[int] = set()
        self._accept_paused_for: set[str] = set()

    @property
    def unregistered(self) -> int:
        """Connections that are neither session nor observer."""
        return len(self._unregistered)

    @property
    def late(self) -> set[int]:
        """Connections that something late is owed to."""
        return set(self._late) | set(self._late_presence)

    def count_unregistered(self, connection: Connection) -> None:
        """A connection has to register in time; too many of them pause accepting."""
        self._unregistered.add(connection.conn)
        state = self._state
        state.deadlines.set(("register", connection.conn), state.turn.now + state.limits.register_timeout_s)
        if len(self._unregistered) >= state.limits.max_unregistered:
            self._pause_accepting(_FOR_UNREGISTERED)

    def count_registered(self, connection: Connection) -> None:
        """A connection registered, or is gone."""
        self._unregistered.discard(connection.conn)
        self._state.deadlines.clear(("register", connection.conn))
        if len(self._unregistered) < self._state.limits.max_unregistered:
            self._resume_accepting(_FOR_UNREGISTERED)

    def descriptors_exhausted(self) -> None:
        """No descriptor is left for another connection: wait until one is closed, or a moment."""
        self._pause_accepting(_FOR_DESCRIPTORS)
        self._state.deadlines.set(_ACCEPT, self._state.turn.now + _RETRY_ACCEPT_S)

    def retry_accepting(self) -> None:
        """There may be descriptors again."""
        self._state.deadlines.clear(_ACCEPT)
        self._resume_accepting(_FOR_DESCRIPTORS)

    def charge_input(self, connection: Connection, size_bytes: int) -> None:
        """Charge bytes to a connection's budget; far below zero it is read no further for a while."""
        state = self._state
        now = state.turn.now
        left = state.quotas.allowance(connection.conn, now).input.take(size_bytes, now)
        if left < -state.limits.input_burst_bytes:
            self._pause(connection, _FOR_INPUT)
            self._await_budget(connection)
        if connection.partial_bytes:
            # A frame was completed: the one behind it has its own time.
            self._await_frame(connection)

    def query(self, connection: Connection, frame: Query) -> None:
        """Answer a query now, or late when the connection's budget is used up; in order in any case."""
        late = self._late.get(connection.conn)
        if late is None and not self._is_over(connection):
            self.charge_input(connection, self._queries.answer(connection, frame))
            return
        late = self._late.setdefault(connection.conn, [])
        late.append(frame)
        if len(late) >= _MAX_LATE:
            self._pause(connection, _FOR_INPUT)
        self._await_budget(connection)

    def change_presence(self, connection: Connection, presence: Presence) -> bool:
        """Apply a presence now, or merge it with later ones when the budget is used up.

        One that gives or withdraws consent is never late: nothing is admitted on consent that was withdrawn.
        """
        session = connection.session
        if session is None:
            return False
        before = self._late_presence.pop(connection.conn, None)
        if before is not None:
            presence = before.merge(presence)
        is_consent = not is_absent(presence.application_guard)
        if is_consent or (before is None and not self._is_over(connection)):
            return self._membership.change(session, presence)
        self._late_presence[connection.conn] = presence
        self._await_budget(connection)
        return True

    def settle_late(self, connection: Connection) -> None:
        """The budget is there again, or the longest delay is over."""
        conn, state = connection.conn, self._state
        presence = self._late_presence.pop(conn, None)
        session = connection.session
        if presence is not None and session is not None and not self._membership.change(session, presence):
            state.turn.add(Close(conn, "presence makes the row invalid"))
            connection.is_closing = True
        self._answer_late(connection)
        if conn in self._late or (self._is_over(connection) and _FOR_INPUT in connection.paused_for):
            self._await_budget(connection)
        else:
            self._resume(connection, _FOR_INPUT)

    def hold_partial(self, connection: Connection, held_bytes: int) -> None:
        """An incomplete frame grew or was completed."""
        state = self._state
        had_room = self._partial_bytes <= state.limits.partial_bytes
        self._count_partial(connection, held_bytes)
        key = ("frame", connection.conn)
        if not held_bytes:
            state.deadlines.clear(key)
        elif key not in state.deadlines:
            self._await_frame(connection)
        if self._partial_bytes > state.limits.partial_bytes and held_bytes:
            # Whoever would add to it is read no further, not only the one that found that there is no room.
            self._pause_partial(list(self._partial_holders) if had_room else [connection.conn])
        elif self._partial_bytes <= state.limits.partial_bytes:
            self._resume_partial()

    def is_frame_late(self, connection: Connection) -> bool:
        """Whether a connection has had its time for a frame.

        It has not while others keep it from being read and it holds no more than its share of the room for all. Not
        everybody can hold so little when there is no room, so somebody's time is over then.
        """
        share_bytes = self._state.limits.partial_bytes // max(1, len(self._partial_holders))
        if connection.conn not in self._partial_paused or connection.partial_bytes > share_bytes:
            return True
        self._await_frame(connection)
        return False

    def progress(self, connection: Connection, waiting_bytes: int, *, has_moved: bool) -> None:
        """Bytes wait for a connection's socket, fewer do, or none."""
        state = self._state
        self._count_output(connection, waiting_bytes)
        if has_moved or not waiting_bytes:
            self._mark_stalled(connection, is_stalled=False)
        key = ("stall", connection.conn)
        if not waiting_bytes:
            state.deadlines.clear(key)
        elif has_moved or key not in state.deadlines:
            state.deadlines.set(key, state.turn.now + state.limits.stalled_after_s)
        self._judge_output(connection)

    def stall(self, connection: Connection) -> None:
        """A socket took nothing for a while; the second time it is the end."""
        state, conn = self._state, connection.conn
        if connection.is_stalled:
            state.turn.log("warning", "disconnected a stalled connection", conn=conn, bytes=connection.waiting_bytes)
            state.turn.add(Close(conn, f"took nothing for {state.limits.disconnect_after_s:g} s"))
            connection.is_closing = True
            return
        self._mark_stalled(connection, is_stalled=True)
        left_s = state.limits.disconnect_after_s - state.limits.stalled_after_s
        state.deadlines.set(("stall", conn), state.turn.now + left_s)

    def drop_session(self, connection: Connection) -> None:
        """The session on a connection ended: nothing late is owed any more."""
        self._late.pop(connection.conn, None)
        self._late_presence.pop(connection.conn, None)
        self._state.deadlines.clear(("late", connection.conn))
        self._resume(connection, _FOR_INPUT)

    def drop(self, connection: Connection) -> None:
        """A connection is gone."""
        conn, state = connection.conn, self._state
        # Nothing is asked for on it any more.
        connection.paused_for.clear()
        self.drop_session(connection)
        self.count_registered(connection)
        self._count_partial(connection, 0)
        self._partial_paused.pop(conn, None)
        self._output_paused.pop(conn, None)
        self._count_output(connection, 0)
        for key in (("frame", conn), ("stall", conn)):
            state.deadlines.clear(key)
        state.quotas.forget(conn)
        if self._partial_bytes <= state.limits.partial_bytes:
            self._resume_partial()
        self.retry_accepting()

    def _count_partial(self, connection: Connection, held_bytes: int) -> None:
        self._partial_bytes += held_bytes - connection.partial_bytes
        connection.partial_bytes = held_bytes
        if held_bytes:
            self._partial_holders[connection.conn] = None
        else:
            self._partial_holders.pop(connection.conn, None)

    def _count_output(self, connection: Connection, waiting_bytes: int) -> None:
        limit_bytes = self._state.limits.outbound_bytes
        was_over = self._output_bytes > limit_bytes
        self._output_bytes += waiting_bytes - connection.waiting_bytes
        connection.waiting_bytes = waiting_bytes
        if was_over and self._output_bytes <= limit_bytes:
            for conn in list(self._output_paused):
                self._judge_output(self._state.roster.connections[conn])

    def _judge_output(self, connection: Connection) -> None:
        """Nothing more is read from whoever takes no answers; when too much waits in all, sooner."""
        limits, waiting_bytes = self._state.limits, connection.waiting_bytes
        is_too_much = self._output_bytes > limits.outbound_bytes and waiting_bytes > 0
        if waiting_bytes > limits.recipient_bytes or is_too_much:
            self._output_paused[connection.conn] = None
            self._pause(connection, _FOR_OUTPUT)
        elif waiting_bytes <= limits.recipient_bytes // 2:
            self._output_paused.pop(connection.conn, None)
            self._resume(connection, _FOR_OUTPUT)

    def _answer_late(self, connection: Connection) -> None:
        """A few of the queries that are owed; none while the connection does not take what it got."""
        owed = self._late.pop(connection.conn, [])
        count = 0 if _FOR_OUTPUT in connection.paused_for else _MAX_LATE
        if owed[count:]:
            self._late[connection.conn] = owed[count:]
        for frame in owed[:count]:
            self.charge_input(connection, self._queries.answer(connection, frame))

    def _is_over(self, connection: Connection) -> bool:
        now = self._state.turn.now
        return self._state.quotas.allowance(connection.conn, now).input.level(now) < 0

    def _await_budget(self, connection: Connection) -> None:
        state, key = self._state, ("late", connection.conn)
        if key not in state.deadlines:
            bucket = state.quotas.allowance(connection.conn, state.turn.now).input
            is_blocked = _FOR_OUTPUT in connection.paused_for
            wait_s = state.limits.max_list_delay_s if is_blocked else bucket.wait_s(state.turn.now, 0)
            wait_s = max(_MIN_WAIT_S, min(wait_s, state.limits.max_list_delay_s))
            state.deadlines.set(key, state.turn.now + wait_s)

    def _await_frame(self, connection: Connection) -> None:
        state = self._state
        state.deadlines.set(("frame", connection.conn), state.turn.now + state.limits.frame_timeout_s)

    def _mark_stalled(self, connection: Connection, *, is_stalled: bool) -> None:
        connection.is_stalled = is_stalled
        session = connection.session
        if session is not None and session.row.is_stalled is not is_stalled:
            session.row.stall(is_stalled=is_stalled)

    def _pause(self, connection: Connection, reason: str) -> None:
        if not connection.paused_for:
            self._state.turn.add(PauseReading(connection.conn))
        connection.paused_for.add(reason)

    def _resume(self, connection: Connection, reason: str) -> None:
        if reason in connection.paused_for:
            connection.paused_for.discard(reason)
            if not connection.paused_for:
                self._state.turn.add(ResumeReading(connection.conn))

    def _pause_partial(self, conns: list[int]) -> None:
        for conn in conns:
            self._partial_paused[conn] = None
            self._pause(self._state.roster.connections[conn], _FOR_PARTIAL)

    def _resume_partial(self) -> None:
        for conn in list(self._partial_paused):
            del self._partial_paused[conn]
            connection = self._state.roster.connections[conn]
            self._resume(connection, _FOR_PARTIAL)
            if connection.partial_bytes:
                # What others held kept it from completing its frame.
                self._await_frame(connection)

    def _pause_accepting(self, reason: str) -> None:
        if not self._accept_paused_for:
            self._state.turn.add(PauseAccepting(reason))
            self._state.turn.log("warning", "accepting paused", reason=reason)
        self._accept_paused_for.add(reason)

    def _resume_accepting(self, reason: str) -> None:
        if reason in self._accept_paused_for:
            self._accept_paused_for.discard(reason)
            if not self._accept_paused_for:
                self._state.turn.add(ResumeAccepting())
