"""Answering ``list`` (wire.md 14.10): the visible rows, in order, cut or streamed at the frame limit.

Owns composing the answer. Row bytes are cached by their sessions.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, count
from operator import add
from typing import TYPE_CHECKING

from intercomd.core.effects import WriteRows
from libintercom.wire.frames import MAX_FRAME_BYTES, encode_json

if TYPE_CHECKING:
    from intercomd.core.roster import Connection, Session
    from intercomd.core.state import State
    from libintercom.wire.messages import Registration
    from libintercom.wire.requests import ListSessions

# What a sessions frame holds beside its rows and its request id.
_FRAME_RESERVE_BYTES = 128


def write_list(state: State, connection: Connection, frame: ListSessions) -> int:
    """Ask for the answer to one ``list``; returns its size in bytes."""
    viewer = _viewer(connection)
    room_bytes = MAX_FRAME_BYTES - _FRAME_RESERVE_BYTES - len(encode_json(frame.request_id))
    rows = state.roster.rows_for(viewer, (connection.has_ext, connection.has_guard))
    size_bytes = sum(map(len, rows)) + len(rows)
    if size_bytes <= room_bytes:
        state.turn.add(WriteRows(connection.conn, frame.request_id, rows))
    elif frame.stream is True:
        _stream(state, connection, frame.request_id, rows, room_bytes)
    else:
        _cut(state, connection, frame.request_id, viewer, room_bytes)
    return size_bytes


def _row(session: Session, reader: Connection) -> bytes:
    return session.row.render(is_extended=reader.has_ext, is_guarded=reader.has_guard)


def _viewer(connection: Connection) -> Registration:
    if connection.session is not None:
        return connection.session.registered
    if connection.observer is None:
        raise ValueError(f"connection {connection.conn} has no visible set")
    return connection.observer


def _stream(state: State, connection: Connection, request_id: str, rows: list[bytes], room_bytes: int) -> None:
    # Where each row ends, with the comma behind it: the last that still fits is found without walking there.
    ends = list(map(add, accumulate(map(len, rows)), count(1)))
    start, begun_bytes = 0, 0
    while ends[-1] - begun_bytes > room_bytes:
        stop = max(start + 1, bisect_right(ends, begun_bytes + room_bytes))
        state.turn.add(WriteRows(connection.conn, request_id, rows[start:stop], more=True))
        start, begun_bytes = stop, ends[stop - 1]
    state.turn.add(WriteRows(connection.conn, request_id, rows[start:], more=False))


def _cut(state: State, connection: Connection, request_id: str, viewer: Registration, room_bytes: int) -> None:
    """The rows that fit, mains first, and how many did not."""
    sessions = list(state.roster.visible_to(viewer))
    fitting: set[int] = set()
    for is_child in (False, True):
        for at, session in enumerate(sessions):
            if session.is_child is not is_child:
                continue
            size_bytes = len(_row(session, connection)) + 1
            if size_bytes > room_bytes:
                continue
            room_bytes -= size_bytes
            fitting.add(at)
    rows = [_row(session, connection) for at, session in enumerate(sessions) if at in fitting]
    state.turn.add(WriteRows(connection.conn, request_id, rows, omitted=len(sessions) - len(rows)))
