"""A listener without sockets: it keeps what would be written and behaves as a scripted kernel would.

Owns the fake of ``intercomd.ports.Listener``. Does not own the conversation around it (``conversation``).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from intercomd.core import effects, events
from libintercom.wire import codec
from libintercom.wire.frames import HEADER_BYTES, decode_json, encode_json
from tests.support.spelling import spell_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from intercomd.ports import Report
    from tests.support.matching import Json


class FakeSocket:
    """One connection. ``room_bytes`` is what its kernel still takes (None: everything that comes)."""

    def __init__(self) -> None:
        self.room_bytes: int | None = None
        self.is_reset = False
        # Why the broker closed it, "" while it did not.
        self.close_reason = ""
        self.is_gone = False
        self.is_paused = False
        # What the peer can read: whole payloads only.
        self.arrived: list[bytes] = []
        self._output: deque[tuple[bytes, int | None]] = deque()
        self._untried: list[int] = []
        self._head_taken_bytes = 0
        self._reported_bytes = 0

    @property
    def is_readable(self) -> bool:
        return not (self.is_paused or self.close_reason or self.is_gone)

    @property
    def waiting_bytes(self) -> int:
        return sum(HEADER_BYTES + len(payload) for payload, _token in self._output) - self._head_taken_bytes

    @property
    def has_deliveries(self) -> bool:
        return any(token is not None for _payload, token in self._output)

    def append(self, payload: bytes, token: int | None = None) -> None:
        self._output.append((payload, token))
        if token is not None:
            self._untried.append(token)

    def discard(self) -> None:
        self._output.clear()
        self._untried.clear()
        self._head_taken_bytes = 0

    def write(self) -> tuple[list[int], list[int], bool]:
        """Let the kernel take what it has room for: tokens taken, tokens newly held, whether bytes moved."""
        before = self.waiting_bytes
        taken = [token for token in self._take() if token is not None]
        held = [token for token in self._untried if token not in taken]
        self._untried.clear()
        return taken, held, self.waiting_bytes < before

    def progress(self, has_moved: bool) -> int | None:
        """The bytes that wait, when that is worth a report."""
        waiting = self.waiting_bytes
        if not waiting and not self._reported_bytes:
            return None
        if waiting == self._reported_bytes and not has_moved:
            return None
        self._reported_bytes = waiting
        return waiting

    def _take(self) -> list[int | None]:
        taken = []
        while self._output:
            payload, token = self._output[0]
            rest = HEADER_BYTES + len(payload) - self._head_taken_bytes
            if self.room_bytes is not None and self.room_bytes < rest:
                self._head_taken_bytes += self.room_bytes
                self.room_bytes = 0
                break
            if self.room_bytes is not None:
                self.room_bytes -= rest
            self._head_taken_bytes = 0
            self._output.popleft()
            self.arrived.append(payload)
            taken.append(token)
        return taken


class FakeListener:
    """Fake of the listener edge. ``sockets`` are the scripted connections by number."""

    def __init__(self) -> None:
        self.sockets: dict[int, FakeSocket] = {}
        self.is_accepting = True
        self.has_stopped = False
        self._closing: list[tuple[int, str]] = []

    def start(self, report: Report) -> None:
        self.report = report

    def accept(self, conn: int) -> None:
        self.sockets[conn] = FakeSocket()

    def action(self, _kind: type[Effect]) -> Callable[[Any], None]:
        return self.apply

    def apply(self, effect: Effect) -> None:
        match effect:
            case effects.Deliver(conn, token, sender, message):
                self._put(conn, codec.join_incoming(sender, message), token)
            case effects.Write(conn, frame):
                self._put(conn, codec.encode(frame))
            case effects.DeliverAll() | effects.Acknowledge():
                for one in spell_out(effect):
                    self.apply(one)
            case effects.WriteRows():
                self._put(effect.conn, _join_rows(effect))
            case effects.Close(conn, reason, is_after_flush):
                self._close(conn, reason, is_after_flush=is_after_flush)
            case effects.PauseReading(conn) | effects.ResumeReading(conn):
                self.sockets[conn].is_paused = isinstance(effect, effects.PauseReading)
            case effects.PauseAccepting() | effects.ResumeAccepting():
                self.is_accepting = isinstance(effect, effects.ResumeAccepting)
            case effects.StopAccepting():
                self.has_stopped = True

    def flush(self) -> list[Event]:
        observed: list[Event] = []
        recipients_first = sorted(self.sockets, key=lambda conn: not self.sockets[conn].has_deliveries)
        for conn in recipients_first:
            observed += self._flush_one(conn, self.sockets[conn])
        for conn, reason in self._closing:
            if not self.sockets[conn].is_gone:
                self.drop(conn)
                observed.append(events.ConnectionClosed(conn, reason))
        self._closing.clear()
        return observed

    def close(self) -> None:
        for conn, socket in self.sockets.items():
            if not socket.close_reason:
                self._close(conn, "the listener closed", is_after_flush=False)

    def drop(self, conn: int) -> None:
        """The peer ended the connection: nothing is written to it any more."""
        self.sockets[conn].is_gone = True

    def _flush_one(self, conn: int, socket: FakeSocket) -> list[Event]:
        if socket.is_gone or not socket.waiting_bytes:
            return []
        if socket.is_reset:
            self.drop(conn)
            return [events.ConnectionClosed(conn, "reset by peer")]
        taken, held, has_moved = socket.write()
        observed: list[Event] = [events.DeliveriesTaken(tuple(taken))] if taken else []
        observed += [events.DeliveriesHeld(tuple(held))] if held else []
        return observed + self._progress(conn, socket, has_moved=has_moved)

    @staticmethod
    def _progress(conn: int, socket: FakeSocket, *, has_moved: bool) -> list[Event]:
        waiting = socket.progress(has_moved)
        return [] if waiting is None else [events.OutputProgressed(conn, waiting, has_moved)]

    def _put(self, conn: int, payload: bytes, token: int | None = None) -> None:
        # An answer may become due in the turn in which its connection was closed; it goes nowhere.
        if not self.sockets[conn].close_reason:
            self.sockets[conn].append(payload, token)

    def _close(self, conn: int, reason: str, *, is_after_flush: bool) -> None:
        socket = self.sockets[conn]
        assert not socket.close_reason, f"connection {conn} closed twice"
        socket.close_reason = reason or "closed"
        if not is_after_flush:
            socket.discard()
        self._closing.append((conn, socket.close_reason))


def decode_arrived(payload: bytes) -> Json:
    """The JSON value of a payload that arrived."""
    return decode_json(payload)


def _join_rows(effect: effects.WriteRows) -> bytes:
    tail: dict[str, Any] = {}
    if effect.more is not None:
        tail["more"] = effect.more
    if effect.omitted is not None:
        tail["omitted"] = effect.omitted
    head = encode_json({"type": "sessions", "requestId": effect.request_id})[:-1]
    rest = b"," + encode_json(tail)[1:] if tail else b"}"
    return head + b',"sessions":[' + b",".join(effect.rows) + b"]" + rest
