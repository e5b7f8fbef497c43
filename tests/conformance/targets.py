"""What conversations run against: the pure router between fakes, or a live broker process.

Owns the shape both have and the fake one. Does not own the live one (``live_target``) nor what is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from intercomd.core import events
from libintercom.errors import InvalidFrame
from libintercom.wire.frames import FrameReader
from tests.support.conversation import Conversation

if TYPE_CHECKING:
    from tests.conformance.codec_runs import Decode


class Target(Protocol):
    """A broker that several named connections talk to."""

    name: str
    # Whether time is moved by hand and kernels can be scripted.
    is_scripted: bool

    def connect(self, conn: str) -> None:
        """Open a connection."""

    def write(self, conn: str, written: bytes) -> None:
        """Write bytes on a connection, in one piece."""

    def hang_up(self, conn: str) -> None:
        """Close a connection from the client's side."""

    def after(self, seconds: float) -> None:
        """Let time pass."""

    def settle(self, wanted: dict[str, int], closing: set[str], within_s: float) -> None:
        """Return when all that was said had its effects and ``wanted`` and ``closing`` came true, or time is over."""

    def take(self, conn: str) -> list[bytes]:
        """The payloads that came since the last call."""

    def is_closed(self, conn: str) -> bool:
        """Whether the broker ended the connection."""

    def close(self) -> None:
        """End every connection."""


class RouterTarget:
    """The router between a fake listener and a fake spool; frames are decoded by one of the codecs."""

    is_scripted = True

    def __init__(self, codec: str, decode: Decode, limits: dict[str, Any]) -> None:
        self.name = f"router, {codec}"
        # The listener's way of decoding brings the listener's way of telling.
        self.talk = Conversation(decode=decode, gathers=codec == "usual", **limits)
        self._readers: dict[str, FrameReader] = {}
        # What was written and not yet read: its connection is paused.
        self._unread: dict[str, bytes] = {}

    def connect(self, conn: str) -> None:
        self.talk.connects(conn)
        self._readers[conn] = FrameReader()
        self._unread[conn] = b""

    def write(self, conn: str, written: bytes) -> None:
        self._unread[conn] += written
        self._pump()

    def _pump(self) -> None:
        """Read from every connection that is not paused, until nothing more can be read."""
        while True:
            readable = [conn for conn, unread in self._unread.items() if unread and self.talk.is_reading(conn)]
            if not readable:
                return
            for conn in readable:
                unread, self._unread[conn] = self._unread[conn], b""
                self._read(conn, unread)

    def _read(self, conn: str, received: bytes) -> None:
        reader, number = self._readers[conn], self.talk.number(conn)
        payloads: list[bytes] = []
        had_partial = reader.partial_bytes > 0
        try:
            for payload in reader.feed(received):
                payloads.append(payload)  # noqa: PERF402 - what came before a bad frame is kept
        except InvalidFrame as error:
            self.talk.says(conn, *payloads)
            self.talk.happens(events.FrameRejected(number, error.reason))
            return
        self.talk.says(conn, *payloads)
        if had_partial or reader.partial_bytes:
            self.talk.happens(events.FrameBegun(number, reader.partial_bytes))

    def hang_up(self, conn: str) -> None:
        del self._unread[conn]
        self.talk.hangs_up(conn)
        self._pump()

    def after(self, seconds: float) -> None:
        self.talk.after(seconds)
        self._pump()

    def settle(self, wanted: dict[str, int], closing: set[str], within_s: float) -> None:
        """Everything happens at once here."""

    def take(self, conn: str) -> list[bytes]:
        return self.talk.receives_bytes(conn) if self.talk.is_accepted(conn) else []

    def is_closed(self, conn: str) -> bool:
        return self.talk.is_accepted(conn) and self.talk.is_closed(conn)

    def close(self) -> None:
        """Nothing of it outlives the test."""

    def holds(self, conn: str, room_bytes: int) -> None:
        self.talk.holds(conn, room_bytes)

    def reads(self, conn: str) -> None:
        self.talk.reads(conn)

    def resets(self, conn: str) -> None:
        self.talk.resets(conn)

    def happens(self, name: str) -> None:
        """One of the events without a connection."""
        known = {"stop": events.StopRequested("SIGTERM"), "descriptors": events.DescriptorsExhausted()}
        self.talk.happens(known[name])
