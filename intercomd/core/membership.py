"""Joining, changing and leaving: registrations, presence, departures (wire.md 5.1, 9.1, 9.2, 14.4, 14.11).

Owns who becomes which session and who hears of its leaving.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from intercomd.core.effects import Close
from intercomd.core.roster import Session
from intercomd.core.rows import RowBytes
from libintercom.wire.answers import ErrorAnswer, Registered, SessionLeft
from libintercom.wire.frames import MAX_FRAME_BYTES
from libintercom.wire.messages import NATIVE, SIBLING, label_fault, labels_of
from libintercom.wire.record import ABSENT
from libintercom.wire.values import is_label, is_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.core.limits import Limits
    from intercomd.core.parking import Parking
    from intercomd.core.roster import Connection
    from intercomd.core.state import State
    from libintercom.wire.requests import Presence, Register

# wire.md 5.1: the peer IDs a native client may ask for.
_REQUESTED_ID = re.compile("[a-zA-Z0-9_-]{8,80}")


class Membership:
    """Lets sessions in and out. ``on_leave`` settles what a leaving session had open."""

    def __init__(self, state: State, parking: Parking, on_leave: Callable[[Session], None]) -> None:
        self._state, self._parking, self._on_leave = state, parking, on_leave

    def register(self, connection: Connection, frame: Register, ids: tuple[str, ...]) -> bool:
        """Make a connection a session or an observer; False when it was refused and is being closed."""
        has_ext, has_guard = is_one(frame.ext), is_one(frame.guarded_delivery)
        labels = labels_of(frame.session, frame.dialect)
        fault = label_fault(labels)
        if fault:
            return self._refuse(connection, frame, fault, "invalid_registration")
        consent = {} if has_guard else {"application_guard": ABSENT}
        registered = frame.session.replace(**labels, **consent)
        at_ms = self._state.turn.at_ms
        row = RowBytes(self._choose_id(frame, ids[0]), registered, ids[1], at_ms, has_guard=has_guard)
        limits = self._state.limits
        if row.size_bytes() > limits.max_row_bytes:
            reason = f"the row is {row.size_bytes()} bytes (limit {limits.max_row_bytes})"
            return self._refuse(connection, frame, reason, "row_too_large")
        if len(self._state.roster.sessions) >= limits.max_sessions:
            return self._refuse(connection, frame, f"{limits.max_sessions} sessions are connected", "too_many_sessions")
        connection.has_ext, connection.has_guard = has_ext, has_guard
        if is_one(frame.observer):
            connection.observer = registered
        else:
            self._join(connection, frame, row)
        self._state.turn.write(connection.conn, self._welcome(connection, frame, row.peer_id))
        if connection.session is not None:
            self._parking.arrive(connection.session)
        return True

    def _join(self, connection: Connection, frame: Register, row: RowBytes) -> None:
        row.stall(is_stalled=connection.is_stalled)
        connection.session = Session(
            connection.conn,
            row.peer_id,
            row.session,
            row,
            frame.dialect,
            connection.has_ext,
            connection.has_guard,
            is_one(frame.receipt_reads),
        )
        self._parking.make_way(row.peer_id)
        self._state.roster.join(connection.session)

    def leave(self, connection: Connection) -> None:
        """The session or observer of a connection ends; those who could see a session hear of it once."""
        session, connection.session, connection.observer = connection.session, None, None
        if session is None:
            return
        roster = self._state.roster
        roster.leave(session)
        is_parked = self._parking.expects(session)
        self._on_leave(session)
        self._parking.leave(session)
        if is_parked:
            # It is listed on: for the others it did not leave.
            return
        # One frame for all: whoever writes it encodes it once.
        farewell = SessionLeft(session_id=session.peer_id)
        for other in roster.hearers_of(session):
            self._state.turn.write(other.conn, farewell)

    def change(self, session: Session, presence: Presence) -> bool:
        """Merge a presence into the row; False when the merged row would be invalid (the old one stays)."""
        labels = labels_of(presence, session.dialect)
        if label_fault(labels):
            return False
        # A null clears what may be cleared; elsewhere it never passed the rules.
        given = {name: ABSENT if value is None else value for name, value in presence.present().items()}
        if not session.has_guard:
            # Without guarded delivery the member means nothing.
            given.pop("application_guard", None)
        registered = session.registered.replace(**{**given, **labels})
        has_guard, at_ms = session.has_guard, self._state.turn.at_ms
        trial = RowBytes(session.peer_id, registered, session.row.epoch, at_ms, has_guard=has_guard)
        if trial.size_bytes() > self._state.limits.max_row_bytes:
            return False
        self._state.roster.change(session, registered)
        if presence.last_intercom_activity is not None:
            session.row.correct_activity(presence.last_intercom_activity)
        return True

    def _choose_id(self, frame: Register, fresh_id: str) -> str:
        """The wanted ID when it has the right form and is not live, else a fresh one, silently (wire.md 14.4)."""
        wanted = frame.session_id if frame.dialect == SIBLING else frame.requested_id
        if not isinstance(wanted, str) or wanted in self._state.roster.sessions:
            return fresh_id
        if not self._parking.may_be(wanted, frame.session):
            return fresh_id
        if frame.dialect == NATIVE and _REQUESTED_ID.fullmatch(wanted) is None:
            return fresh_id
        return wanted if is_label(wanted) else fresh_id

    def _refuse(self, connection: Connection, frame: Register, reason: str, code: str) -> bool:
        if is_one(frame.ext) or frame.dialect == SIBLING:
            # Other clients would take an unknown first frame for a broken broker.
            self._state.turn.write(connection.conn, ErrorAnswer(error=f"registration refused: {reason}", code=code))
        self._state.turn.add(Close(connection.conn, f"registration refused: {reason}", is_after_flush=True))
        connection.is_closing = True
        return False

    def _welcome(self, connection: Connection, frame: Register, peer_id: str) -> Registered:
        echoed = {
            "observer": connection.observer is not None,
            "guarded_delivery": connection.has_guard,
            "receipt_reads": is_one(frame.receipt_reads),
        }
        members: dict[str, Any] = {name: 1 for name, is_told in echoed.items() if is_told}
        if connection.has_ext:
            members.update(ext=1, broker=self._state.hello, limits=_told_limits(self._state.limits))
        return Registered(session_id=peer_id, **members)


def _told_limits(limits: Limits) -> dict[str, Any]:
    return {
        "maxFrameBytes": MAX_FRAME_BYTES,
        "maxSessions": limits.max_sessions,
        "recipientBytes": limits.recipient_bytes,
        "recipientMessages": limits.recipient_messages,
        "sendBurst": limits.send_burst,
        "sendsPerSecond": limits.sends_per_s,
        "inputBytesPerSecond": limits.input_bytes_per_s,
        "pairMessagesPerMinute": limits.pair_messages,
    }
