"""The endpoint's connections: read when a socket is readable, written when the shell flushes or a socket is writable.

Owns every connection's socket and the order of writing. Does not own who is accepted (``accepting``), what bytes mean
(``codec``) nor any decision about a connection.

Sockets are raw and non-blocking, so that it is known what the kernel took (``output``). A half-closed connection has
ended: what waits for it is offered once more, then it is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from intercomd.core import effects
from intercomd.core.events import (
    ConnectionAccepted,
    ConnectionClosed,
    ConnectionsLost,
    DeliveriesTaken,
    OutputProgressed,
)
from intercomd.edges.listener.codec import LastAnswer, frame_delivered, join_rows
from intercomd.edges.listener.connection import READ_BYTES, SHORT_READ_BYTES, Connection
from intercomd.edges.listener.departures import Departures
from intercomd.edges.listener.nonces import Nonces
from intercomd.edges.listener.rounds import Rounds
from intercomd.edges.listener.seen import Seen
from libintercom.wire.frames import frame

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable

    from intercomd.core.events import Event
    from intercomd.edges.listener.accepting import Acceptor
    from intercomd.edges.listener.connection import MakeIds
    from intercomd.edges.listener.polling import Poller
    from intercomd.ports import Report


class SocketListener:
    """The real edge behind ``intercomd.ports.Listener``."""

    def __init__(
        self,
        acceptor: Acceptor,
        poller: Poller,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        make_ids: MakeIds,
        partial_bytes: int,
    ) -> None:
        self.acceptor, self._poller, self._loop = acceptor, poller, loop
        self._wall_ms, self._make_ids = wall_ms, make_ids
        self.nonces = Nonces()
        self._last_number = 0
        self._connections: dict[int, Connection] = {}
        self._by_fd: dict[int, Connection] = {}
        self._rounds = Rounds(loop, self._read_on)
        self._departures = Departures(loop, self._hear_on)
        # Bytes of all incomplete frames, and from how many on each connection is read in short pieces.
        self._held_bytes, self._partial_bytes = 0, partial_bytes
        # Written to since the last flush: those with a message to deliver, and the others.
        self._recipients: dict[int, Connection] = {}
        self._others: dict[int, Connection] = {}
        # Connections to close at the next flush, and why.
        self._closing: dict[int, str] = {}
        self._last_answer = LastAnswer()
        self._apply: dict[type, Callable[[Any], None]] = {
            effects.PauseAccepting: acceptor.pause,
            effects.ResumeAccepting: acceptor.resume,
            effects.StopAccepting: acceptor.stop,
            **{kind: action.__get__(self) for kind, action in self._ON_CONNECTION.items()},
        }

    def start(self, report: Report) -> None:
        """Begin to accept and read."""
        self._report = report
        self._poller.start(self._loop, self._turn, self._find_gone)
        self.acceptor.start(self._admit, report)

    def action(self, kind: type[effects.Effect]) -> Callable[[Any], None]:
        """What carries out effects of a kind; one for a connection that has ended meanwhile is nothing."""
        return self._apply[kind]

    def apply(self, effect: effects.Effect) -> None:
        """Carry out one effect."""
        self._apply[type(effect)](effect)

    def flush(self) -> list[Event]:
        """Write what was queued, recipients of messages first; what was observed."""
        recipients, others = self._recipients, self._others
        if not (recipients or others or self._closing):
            return []
        taken: list[int] = []
        seen: Seen | None = None
        if recipients:
            self._recipients = {}
            seen = self._write_all(recipients, taken, seen)
        if others:
            self._others = {}
            seen = self._write_all(others, taken, seen)
        if seen is None and not self._closing:
            return [DeliveriesTaken(tuple(taken))] if taken else []
        seen = seen or Seen(taken)
        closing, self._closing = self._closing, {}
        for number, reason in closing.items():
            if number in self._connections:
                seen.rest.append(self._end(self._connections[number], reason))
        return seen.events()

    @property
    def is_accepting(self) -> bool:
        return self.acceptor.is_accepting

    def expect(self, nonce: bytes, seen: Callable[[], None]) -> None:
        """Call ``seen`` once when a probe of our own path with ``nonce`` arrives here."""
        self.nonces.expect(nonce, seen)

    def forget(self, nonce: bytes) -> None:
        self.nonces.forget(nonce)

    def replace(self, listening: socket.socket) -> None:
        """Serve another socket at the same path."""
        self.acceptor.replace(listening)

    def close(self) -> None:
        """Close the endpoint and every connection."""
        self.acceptor.close()
        for connection in list(self._connections.values()):
            self._end(connection, "the broker ends")
        self._poller.close()

    # -- reading -------------------------------------------------------------------------------------

    def _admit(self, connected: socket.socket) -> Event:
        self._last_number += 1
        connection = Connection(self._last_number, connected)
        self._watch(connection)
        self._connections[connection.number] = self._by_fd[connection.fd] = connection
        return ConnectionAccepted(connection.number, self._wall_ms())

    def _turn(self, fd: int, is_readable: bool, is_writable: bool) -> None:
        """One connection's turn: a blocked output first, since it may be what its peer waits for."""
        connection = self._by_fd[fd]
        if is_writable:
            self._write_more(connection)
        if is_readable and not (connection.is_paused or connection.lost):
            self._read(connection)

    def _find_gone(self, fds: list[int]) -> None:
        """Peers that closed: one alone has its turn; of several it is known at once that nothing reaches them."""
        gone = [self._by_fd[fd] for fd in fds]
        if len(gone) == 1 and self._departures.is_free:
            self._turn(fds[0], not gone[0].has_more, gone[0].output.is_blocked)
            return
        for connection in gone:
            connection.lose("closed by its peer", is_silent=True)
            self._depart(connection)
        self._report([ConnectionsLost(tuple(connection.number for connection in gone))])

    def _read(self, connection: Connection) -> None:
        has_room = self._held_bytes < self._partial_bytes
        received = connection.receive(READ_BYTES if has_room else SHORT_READ_BYTES)
        observed: list[Event] = []
        if received and not connection.is_new:
            observed = self._look(connection, received)
            if observed and not (connection.ended or connection.has_more):
                # The usual case: nothing is left over, and it is watched as before.
                self._report(observed)
                return
        elif received:
            observed = self._look_first(connection, received)
        if connection.ended and not connection.is_rejected:
            observed += self._finish(connection) if self._departures.claim(connection) else []
        self._settle_read(connection, observed)

    def _read_on(self, connection: Connection) -> None:
        """Look at more of what was read before."""
        self._settle_read(connection, self._look(connection))

    def _look_first(self, connection: Connection, received: bytes) -> list[Event]:
        """The events in what a new connection says first."""
        if not self.nonces.recognize(received):
            return self._look(connection, received)
        connection.ended = "a self-check's probe"
        return []

    def _look(self, connection: Connection, received: bytes = b"") -> list[Event]:
        """The events in the first frames of what was received, or in the next ones of what was received before."""
        before, at_ms = connection.held_bytes, self._wall_ms()
        if received:
            observed = connection.cut(received, at_ms, self._make_ids)
        else:
            observed = connection.cut_on(at_ms, self._make_ids)
        self._held_bytes += connection.held_bytes - before
        return observed

    def _settle_read(self, connection: Connection, observed: list[Event]) -> None:
        """What comes next from this connection: nothing, the frames left over, or what its socket brings."""
        if connection.number in self._connections:
            connection.is_paused = connection.is_paused or bool(connection.ended)
            if connection.has_more:
                self._rounds.add(connection)
            self._watch(connection)
        if observed:
            self._report(observed)

    def _finish(self, connection: Connection) -> list[Event]:
        """A peer's end: offer once more what waits for it, then close."""
        seen = Seen()
        try:
            connection.output.write(seen.taken)
        except OSError:
            # The peer is gone altogether; what was not taken is lost either way.
            pass
        seen.rest.append(self._end(connection, connection.ended))
        return seen.events()

    def _pause(self, effect: effects.PauseReading) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None and not connection.lost:
            connection.is_paused = True
            self._rounds.remove(connection)
            self._watch(connection)

    def _resume(self, effect: effects.ResumeReading) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None and not connection.ended:
            connection.is_paused = False
            if connection.has_more:
                self._rounds.add(connection)
            self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        """Watch a socket for what it waits for now."""
        is_reading = not (connection.is_paused or connection.has_more or connection.lost)
        is_writing = connection.output.is_blocked and not connection.lost
        self._poller.watch(connection.fd, reading=is_reading, writing=is_writing)

    # -- writing -------------------------------------------------------------------------------------

    def _deliver(self, effect: effects.Deliver) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None and not connection.lost and effect.conn not in self._closing:
            connection.output.append_message(effect.sender, effect.message, effect.token)
            self._recipients[effect.conn] = connection

    def _deliver_all(self, effect: effects.DeliverAll) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None and not connection.lost and effect.conn not in self._closing:
            connection.output.append_messages(effect.sender, effect.messages, effect.tokens)
            self._recipients[effect.conn] = connection

    def _acknowledge(self, effect: effects.Acknowledge) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None and not connection.lost and effect.conn not in self._closing:
            ids = effect.message_ids
            framed = frame_delivered(ids[0]) if len(ids) == 1 else b"".join(map(frame_delivered, ids))
            connection.output.append(framed)
            self._others[effect.conn] = connection

    def _answer(self, effect: effects.Write) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None and not connection.lost and effect.conn not in self._closing:
            connection.output.append(self._last_answer.frame(effect.frame))
            self._others[effect.conn] = connection

    def _answer_rows(self, effect: effects.WriteRows) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None and not connection.lost and effect.conn not in self._closing:
            connection.output.append(frame(join_rows(effect)))
            self._others[effect.conn] = connection

    def _write_all(self, connections: dict[int, Connection], taken: list[int], seen: Seen | None) -> Seen | None:
        """Write to each; what is seen beside tokens taken is made when there is something."""
        for connection in connections.values():
            if connection.lost or not connection.output.write_at_once(taken):
                seen = seen or Seen(taken)
                self._write(connection, seen)
        return seen

    def _write(self, connection: Connection, seen: Seen) -> None:
        """Offer a connection's output to the kernel, unless it is known to take nothing now."""
        output, already = connection.output, len(seen.taken)
        if connection.number not in self._connections or connection.lost:
            return
        if output.is_blocked:
            seen.held += output.pop_held([])
            # What comes on top counts: a client that never reads must not be answered into our memory for ever.
            seen.rest.append(OutputProgressed(connection.number, output.waiting_bytes, has_moved=False))
            return
        try:
            is_done = output.write(seen.taken)
        except OSError as error:
            self._lose_peer(connection, error, seen)
            return
        if is_done:
            output.forget_fresh()
            return
        self._watch(connection)
        seen.held += output.pop_held(seen.taken[already:])
        seen.rest.append(OutputProgressed(connection.number, output.waiting_bytes, has_moved=False))

    def _write_more(self, connection: Connection) -> None:
        """A blocked socket takes bytes again."""
        output, before = connection.output, connection.output.waiting_bytes
        seen = Seen()
        try:
            if output.write(seen.taken):
                self._watch(connection)
        except OSError as error:
            self._lose_peer(connection, error, seen)
        else:
            if output.waiting_bytes < before:
                seen.rest.append(OutputProgressed(connection.number, output.waiting_bytes, has_moved=True))
        observed = seen.events()
        if observed:
            self._report(observed)

    # -- the end of a connection ---------------------------------------------------------------------

    def _close(self, effect: effects.Close) -> None:
        connection = self._connections.get(effect.conn)
        if connection is None:
            return
        connection.is_paused = True
        self._rounds.remove(connection)
        self._departures.remove(connection)
        self._watch(connection)
        connection.ended = connection.ended or effect.reason or "closed"
        self._closing[effect.conn] = effect.reason
        if not effect.is_after_flush:
            self._recipients.pop(effect.conn, None)
            self._others.pop(effect.conn, None)

    def _lose_peer(self, connection: Connection, error: OSError, seen: Seen) -> None:
        """A peer that left before it heard everything may have said something before that: hear it, then close."""
        connection.lose(f"writing failed ({error.strerror})")
        seen.lost.append(connection.number)
        if self._departures.claim(connection):
            seen.rest += self._hear_last(connection)
            while connection.number in self._connections and not connection.has_more:
                seen.rest += self._hear_last(connection)
        if connection.number in self._connections:
            # It said much, or others are gone too: in turns, like anybody.
            self._depart(connection)

    def _depart(self, connection: Connection) -> None:
        """A lost connection waits for its turns until it is heard to its end."""
        self._rounds.remove(connection)
        self._watch(connection)
        self._departures.add(connection)

    def _hear_on(self, connection: Connection) -> bool:
        """A little more of a connection whose peer is gone, or its end; whether there is more."""
        observed = self._hear_last(connection) if connection.lost else self._finish(connection)
        if observed:
            self._report(observed)
        return connection.number in self._connections

    def _hear_last(self, connection: Connection) -> list[Event]:
        """A little more of a connection whose peer is gone; when there is nothing more, its end."""
        observed: list[Event] = []
        if connection.has_more:
            observed = self._look(connection)
        elif not connection.ended and (received := connection.receive_last()):
            look = self._look_first if connection.is_new else self._look
            observed = look(connection, received)
        else:
            connection.ended = connection.ended or connection.lost
        return [*observed, self._end(connection, connection.lost)] if connection.ended else observed

    def _end(self, connection: Connection, reason: str) -> Event:
        """Close a socket for good; what waited for it is lost."""
        del self._connections[connection.number], self._by_fd[connection.fd]
        connection.is_paused = True
        self._held_bytes -= connection.held_bytes
        self._rounds.remove(connection)
        self._departures.remove(connection)
        self._poller.watch(connection.fd, reading=False, writing=False)
        connection.socket.close()
        return ConnectionClosed(connection.number, reason)

    _ON_CONNECTION: ClassVar[dict[type, Any]] = {
        effects.Deliver: _deliver,
        effects.DeliverAll: _deliver_all,
        effects.Acknowledge: _acknowledge,
        effects.Write: _answer,
        effects.WriteRows: _answer_rows,
        effects.Close: _close,
        effects.PauseReading: _pause,
        effects.ResumeReading: _resume,
    }
