"""One accepted socket: bytes in, events out.

Owns reading at most 64 KiB and looking at some frames of it per turn, cutting and decoding them, and saying how much
of an incomplete frame is held. Does not own when it is read (``listener``, ``rounds``) nor its writing (``output``).

A connection that the core paused is not read at all, so that its peer's end is noticed when it is resumed, or when a
write to it fails. Pauses are short (a budget refills) or end with the peer's own reading.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from intercomd.core.events import FrameBegun, FrameReceived, FrameRejected, SendsReceived
from intercomd.edges.listener.codec import decode_request
from intercomd.edges.listener.output import Output
from intercomd.edges.listener.usual import decode_usual
from libintercom.errors import InvalidFrame
from libintercom.wire.frames import HEADER_BYTES, FrameReader
from libintercom.wire.requests import Read, Register

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

    from intercomd.core.events import Event

    MakeIds = Callable[[], tuple[str, ...]]

# What one connection may bring in one turn of the loop (wire.md 14.6).
READ_BYTES = 64 * 1024
# What it may bring when half-received frames take all the room that they may: enough for ordinary frames to be whole,
# so little that thousands who begin one now do not take that room once more.
SHORT_READ_BYTES = 1024
# Frames looked at in one turn, of the two thousand that 64 KiB may hold. Whoever speaks meanwhile waits for so many at
# most: they take about as long as the round trip of one message. Fewer would cost throughput, since what a turn puts
# out is one write.
FRAMES_PER_TURN = 16
# Reads of what a peer that stopped reading left in its socket: more than the kernel buffers by default (208 KiB).
_LAST_READS = 8
# A peer that closed says nothing more, so that what it said ends by itself: such a count never reaches zero.
_READ_TO_END = -1
# What the core gives names to: a session, and a read until it is answered.
_NAMED = (Register, Read)
# A held frame is reported again when it grew or shrank by this much, so the core is behind by less for each.
_REPORT_STEP_BYTES = 8 * 1024


class Connection:
    """One connection by its number.

    ``ended`` is why nothing more comes from it, ``""`` while something may. ``is_rejected``: for a bad frame, so that
    the core is yet to close it. ``lost`` is why nothing goes to it any more; it is read ``reads_left`` times then.
    """

    __slots__ = (
        "_reader",
        "_reported_bytes",
        "_rest",
        "ended",
        "fd",
        "is_new",
        "is_paused",
        "is_rejected",
        "lost",
        "number",
        "output",
        "reads_left",
        "socket",
    )

    def __init__(self, number: int, connected: socket.socket) -> None:
        self.number, self.socket, self.fd = number, connected, connected.fileno()
        self.output = Output(connected)
        self.is_paused = False
        # Whether nothing was read from it before what is being looked at now.
        self.is_new = True
        self.is_rejected = False
        self.ended = ""
        self.lost = ""
        self.reads_left = 0
        # Only while a frame is incomplete: most connections are idle most of the time.
        self._reader: FrameReader | None = None
        self._reported_bytes = 0
        # Payloads that were read and not looked at yet.
        self._rest: Iterator[bytes] | None = None

    @property
    def has_more(self) -> bool:
        """Whether frames that were read may still have to be looked at."""
        return self._rest is not None

    @property
    def held_bytes(self) -> int:
        """Bytes in memory of a frame that is not complete."""
        return 0 if self._reader is None else self._reader.partial_bytes

    def receive(self, most_bytes: int = READ_BYTES) -> bytes:
        """What the socket has, at most so much; empty when it has nothing or has ended."""
        try:
            received = self.socket.recv(most_bytes)
        except BlockingIOError:
            return b""
        except OSError as error:
            self.ended = f"reading failed ({error.strerror})"
            return b""
        if not received:
            self.ended = "closed by its peer"
        return received

    def lose(self, reason: str, *, is_silent: bool = False) -> None:
        """Nothing goes to its peer any more; ``is_silent``: and it says nothing more."""
        self.lost, self.reads_left = reason, _READ_TO_END if is_silent else _LAST_READS

    def receive_last(self) -> bytes:
        """More of what a lost peer said; empty when that was all, or more than it may have said before."""
        if not self.reads_left:
            return b""
        self.reads_left -= 1
        return self.receive()

    def cut(self, received: bytes, at_ms: int, make_ids: MakeIds) -> list[Event]:
        """The events in the first frames of what was received; ``has_more`` says whether others follow."""
        self.is_new = False
        if self._reader is None and int.from_bytes(received[:HEADER_BYTES], "big") == len(received) - HEADER_BYTES:
            # Nearly always a read is one frame, and that a usual send.
            usual = decode_usual(received[HEADER_BYTES:])
            if usual is not None:
                return [SendsReceived(self.number, at_ms, [usual])]
        self._rest = iter(self._payloads(received))
        return self.cut_on(at_ms, make_ids)

    def cut_on(self, at_ms: int, make_ids: MakeIds) -> list[Event]:
        """The events in the next frames. A bad frame is the last one; nothing behind it is looked at."""
        observed: list[Event] = []
        count, sends = 0, None
        try:
            for payload in islice(self._rest or (), FRAMES_PER_TURN):
                count += 1
                usual = decode_usual(payload)
                if usual is None:
                    sends = None
                    observed.append(self._receive(payload, at_ms, make_ids))
                elif sends is None:
                    sends = [usual]
                    observed.append(SendsReceived(self.number, at_ms, sends))
                else:
                    sends.append(usual)
        except InvalidFrame as error:
            self._rest = None
            self.ended, self.is_rejected = f"invalid frame: {error.reason}", True
            observed.append(FrameRejected(self.number, error.reason))
            return observed
        if count < FRAMES_PER_TURN:
            self._rest = None
            self._report_partial(observed)
        return observed

    def _receive(self, payload: bytes, at_ms: int, make_ids: MakeIds) -> Event:
        frame, message = decode_request(payload)
        ids = make_ids() if not message and isinstance(frame, _NAMED) else ()
        return FrameReceived(self.number, frame, len(payload), at_ms, message, ids)

    def _payloads(self, received: bytes) -> Iterable[bytes]:
        if self._reader is None:
            # The usual case, one whole frame, needs no reader.
            if int.from_bytes(received[:HEADER_BYTES], "big") == len(received) - HEADER_BYTES > 0:
                return (received[HEADER_BYTES:],)
            self._reader = FrameReader()
        return self._reader.feed(received)

    def _report_partial(self, observed: list[Event]) -> None:
        held = self.held_bytes
        if not held:
            self._reader = None
        before = self._reported_bytes
        if held == before or (held and before and abs(held - before) < _REPORT_STEP_BYTES):
            return
        self._reported_bytes = held
        observed.append(FrameBegun(self.number, held))
