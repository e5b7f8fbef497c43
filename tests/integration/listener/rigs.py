"""A listener with connections whose peers a test plays: the real one over socket pairs, and the fake.

Owns the two rigs with one face. Does not own what is asserted of both.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any, Protocol

from intercomd.edges.listener.listener import SocketListener
from libintercom.wire.frames import FrameReader, frame
from tests.support.fake_listener import FakeListener
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from intercomd.core.events import Event
    from intercomd.edges.listener.polling import Poller

AT_MS = 1_700_000_000_000
IDS = ("id-one", "id-two")
# More than any test holds by the way.
PARTIAL_BYTES = 4 * 1024 * 1024
# A payload that stuffs the kernel's buffer and is no answer.
_STUFFING = b" "


class Rig(Protocol):
    """What the contract needs of a listener's surroundings."""

    listener: Any

    def connect(self) -> int:
        """A new connection's number."""

    def block(self, conn: int) -> None:
        """From now on the kernel takes nothing for this connection."""

    def unblock(self, conn: int) -> list[Event]:
        """Its peer reads again: what is observed until nothing waits."""

    def reset(self, conn: int) -> None:
        """Its peer is gone."""

    def arrived(self, conn: int) -> list[bytes]:
        """The whole payloads that its peer has got since it was last asked."""


class PlayedAcceptor:
    """Stands for the accepting half: a test hands in sockets itself."""

    is_accepting = True

    def start(self, admit: Callable[[socket.socket], Any], report: Callable[[Iterable[Event]], None]) -> None:
        self.admit, self.report = admit, report

    def pause(self, effect: object = None) -> None:
        self.is_accepting = False

    def resume(self, effect: object = None) -> None:
        self.is_accepting = True

    def stop(self, effect: object) -> None:
        self.is_accepting = False

    def close(self) -> None:
        self.is_accepting = False


class PlayedPeer:
    """The other end of a socket pair; ``ours`` is the listener's."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.setblocking(False)
        self._reader = FrameReader()
        self.heard: list[bytes] = []
        self.is_ended = False

    def read(self) -> None:
        """Take everything that is there now."""
        with contextlib.suppress(BlockingIOError):
            while not self.is_ended:
                try:
                    received = self.theirs.recv(1 << 20)
                except ConnectionResetError:
                    received = b""
                self.is_ended = not received
                self.heard += [payload for payload in self._reader.feed(received) if payload != _STUFFING]

    def stuff(self) -> None:
        """Fill the kernel's buffer behind the listener's back; one small frame goes in whole or not at all."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.ours.send(frame(_STUFFING))


class RealRig:
    """The socket listener on a loop of its own; ``observed`` is what it reported."""

    def __init__(self, loop: asyncio.AbstractEventLoop, poller: Poller) -> None:
        self.loop = loop
        self.acceptor = PlayedAcceptor()
        self.listener = SocketListener(self.acceptor, poller, loop, lambda: AT_MS, lambda: IDS, PARTIAL_BYTES)  # type: ignore[arg-type]
        self.observed: list[Event] = []
        self.listener.start(self.observed.extend)
        self.peers: dict[int, PlayedPeer] = {}

    def connect(self) -> int:
        peer = PlayedPeer()
        conn: int = self.acceptor.admit(peer.ours).conn
        self.peers[conn] = peer
        return conn

    def block(self, conn: int) -> None:
        self.peers[conn].stuff()

    def unblock(self, conn: int) -> list[Event]:
        output = self.listener._connections[conn].output

        def is_done() -> bool:
            self.peers[conn].read()
            return output.waiting_bytes == 0

        self.run_until(is_done, "everything to go out")
        return self.pop_observed()

    def reset(self, conn: int) -> None:
        self.peers[conn].theirs.close()

    def arrived(self, conn: int) -> list[bytes]:
        peer = self.peers[conn]
        peer.read()
        found, peer.heard = peer.heard, []
        return found

    def run_until(self, predicate: Callable[[], object], what: str) -> None:
        self.loop.run_until_complete(wait_until_async(predicate, what))

    def await_events(self, count: int) -> list[Event]:
        """Exactly so many events, once they were reported."""
        self.run_until(lambda: len(self.observed) >= count, f"{count} events, now {self.observed}")
        found = self.pop_observed()
        assert len(found) == count, found
        return found

    def pop_observed(self) -> list[Event]:
        found = list(self.observed)
        self.observed.clear()
        return found

    def close(self) -> None:
        self.listener.close()
        for peer in self.peers.values():
            peer.theirs.close()
        self.loop.close()


class FakeRig:
    """The fake listener."""

    def __init__(self) -> None:
        self.listener = FakeListener()
        self._count = 0

    def connect(self) -> int:
        self._count += 1
        self.listener.accept(self._count)
        return self._count

    def block(self, conn: int) -> None:
        self.listener.sockets[conn].room_bytes = 0

    def unblock(self, conn: int) -> list[Event]:
        self.listener.sockets[conn].room_bytes = None
        return self.listener.flush()

    def reset(self, conn: int) -> None:
        self.listener.sockets[conn].is_reset = True

    def arrived(self, conn: int) -> list[bytes]:
        arrived = self.listener.sockets[conn].arrived
        found, arrived[:] = list(arrived), []
        return found

    def close(self) -> None:
        """Nothing is held."""
