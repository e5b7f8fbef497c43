"""Connections of a load: non-blocking, many at once, what they heard counted.

Owns their sockets and one waiting for all of them. Does not own what is said on them.
"""

from __future__ import annotations

import collections
import select
import socket
import time
from typing import TYPE_CHECKING

from libintercom.wire.frames import FrameReader, decode_json, encode_json, frame
from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from tests.support.sayings import Object

    Hear = Callable[["Peer", Object], None]

_READ_BYTES = 256 * 1024
# How often a condition is looked at when no socket says anything.
_LOOK_S = 0.05
# Registrations on the way at once; the broker stops accepting at 64 unregistered connections.
_JOIN_STEP = 32


class Peer:
    """One connection. ``heard`` counts frames by type and code; ``has_ended`` when the broker closed it."""

    def __init__(self, path: str, on_frame: Hear | None = None, changed: set[Peer] | None = None) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.fd = self.socket.fileno()
        self.heard: collections.Counter[str] = collections.Counter()
        self.has_ended = False
        self.is_deaf = False
        # Where to say that what this waits for may be something else now.
        self._changed: set[Peer] = set() if changed is None else changed
        self.session_id = ""
        self.written_bytes = 0
        self._on_frame = on_frame
        self._waiting = memoryview(b"")
        self._reader = FrameReader()

    @property
    def is_writing(self) -> bool:
        return bool(self._waiting)

    def say(self, *values: Object) -> None:
        """Queue frames behind what still waits for the socket."""
        self.say_bytes(b"".join(frame(encode_json(value)) for value in values))

    def say_bytes(self, raw: bytes) -> None:
        self._waiting = memoryview(bytes(self._waiting) + raw if self._waiting else raw)
        self.write()
        self._changed.add(self)

    def stop_reading(self) -> None:
        self.is_deaf = True
        self._changed.add(self)

    def read_on(self) -> None:
        self.is_deaf = False
        self._changed.add(self)

    def write(self) -> None:
        """Give the socket what it takes."""
        while self._waiting and not self.has_ended:
            try:
                taken = self.socket.send(self._waiting)
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._waiting = memoryview(b"")
                return
            self.written_bytes += taken
            self._waiting = self._waiting[taken:]

    def read(self) -> None:
        """Take what came, once."""
        try:
            received = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            received = b""
        self.has_ended = not received
        for payload in self._reader.feed(received):
            self._hear(decode_json(payload))

    def close(self) -> None:
        self.socket.close()

    def _hear(self, value: Object) -> None:
        self.heard[" ".join(filter(None, (value["type"], value.get("code"))))] += 1
        if value["type"] == "registered":
            self.session_id = value["sessionId"]
        if self._on_frame is not None:
            self._on_frame(self, value)


class Peers:
    """Many connections under one wait."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._by_fd: dict[int, Peer] = {}
        self._watched: dict[int, int] = {}
        self._changed: set[Peer] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        for peer in list(self._by_fd.values()):
            self.drop(peer)
        self._epoll.close()

    def __iter__(self) -> Iterator[Peer]:
        return iter(list(self._by_fd.values()))

    def __len__(self) -> int:
        return len(self._by_fd)

    def __contains__(self, fd: int) -> bool:
        return fd in self._by_fd

    def connect(self, path: str, *first: Object, on_frame: Hear | None = None) -> Peer:
        """A new connection that says ``first`` at once; waits where the backlog is full."""
        peer = self._dial(path, on_frame)
        self._by_fd[peer.fd] = peer
        if first:
            peer.say(*first)
        self._watch(peer)
        return peer

    def drop(self, peer: Peer) -> None:
        """Close a connection and forget it."""
        if self._by_fd.pop(peer.fd, None) is not None:
            if self._watched.pop(peer.fd, 0):
                self._epoll.unregister(peer.fd)
            peer.close()

    def turn(self, wait_s: float = _LOOK_S) -> None:
        """Wait for any socket, then write and read whatever can be."""
        while self._changed:
            self._watch(self._changed.pop())
        for fd, ready in self._epoll.poll(wait_s):
            peer = self._by_fd.get(fd)
            if peer is None:
                continue
            if ready & select.EPOLLOUT:
                peer.write()
            if ready & ~select.EPOLLOUT and not peer.is_deaf:
                peer.read()
            self._watch(peer)

    def turn_until(self, is_reached: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
        """Turn until something holds.

        Raises:
            AssertionError: it did not within ``deadline_s`` seconds.
        """
        end = time.monotonic() + deadline_s
        while not is_reached():
            assert time.monotonic() < end, f"waited {deadline_s:g} s in vain for {what}"
            self.turn()

    def join(self, path: str, registrations: Iterable[Object], *, on_frame: Hear | None = None) -> list[Peer]:
        """Let sessions join, not more at once than the broker takes unregistered."""
        joined = []
        for registration in registrations:
            joined.append(self.connect(path, registration, on_frame=on_frame))
            if len(joined) % _JOIN_STEP == 0:
                self._await_joined(joined[-_JOIN_STEP:])
        self._await_joined(joined)
        return joined

    def _await_joined(self, peers: list[Peer]) -> None:
        self.turn_until(lambda: all(peer.session_id or peer.has_ended for peer in peers), f"{len(peers)} to register")

    def _dial(self, path: str, on_frame: Hear | None) -> Peer:
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                return Peer(path, on_frame, self._changed)
            except BlockingIOError:
                # connect(2): the backlog of a Unix socket is full.
                assert time.monotonic() < end, f"the backlog was full for {DEADLINE_S:g} s"
                self.turn()

    def _watch(self, peer: Peer) -> None:
        if peer.fd not in self._by_fd:
            return
        wanted = 0 if peer.has_ended or peer.is_deaf else select.EPOLLIN
        wanted |= select.EPOLLOUT if peer.is_writing and not peer.has_ended else 0
        before = self._watched.get(peer.fd, 0)
        if wanted == before:
            return
        if not before:
            self._epoll.register(peer.fd, wanted)
        elif not wanted:
            self._epoll.unregister(peer.fd)
        else:
            self._epoll.modify(peer.fd, wanted)
        self._watched[peer.fd] = wanted
