"""A live ``intercomd`` as a target of conversations: raw sockets, nothing of the client library.

Owns the sockets and knowing when everything said has had its effects: each connection asks for its health and what
came before the answer came in order. Does not own the process (``tests.support.daemon``).
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import TYPE_CHECKING

from libintercom.errors import InvalidFrame
from libintercom.wire.frames import FrameReader, encode_json, frame

if TYPE_CHECKING:
    from tests.support.daemon import Daemon

# A broker that does not answer in this time has failed; far above any answer on a busy machine.
_ANSWER_S = 10.0
# An acknowledgement follows its delivery within a turn, so it may come after the first health answer.
_ROUNDS = 2
_MARK = "barrier-"
# How long nothing must come where a vector lets time pass and expects nothing; longer than the stage's quiet time.
_QUIET_S = 0.9


class _Peer:
    """One raw connection."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(_ANSWER_S)
        self.socket.connect(path)
        self.reader = FrameReader()
        # What was written, so that nothing is asked in the middle of a frame.
        self.written = FrameReader()
        self.arrived: list[bytes] = []
        self.is_closed = False

    @property
    def is_within_frame(self) -> bool:
        return self.written.partial_bytes > 0

    def write(self, written: bytes) -> None:
        # The broker ends a connection that broke the framing; nothing after it matters.
        with contextlib.suppress(InvalidFrame):
            for _payload in self.written.feed(written):
                pass
        try:
            self.socket.sendall(written)
        except (BrokenPipeError, ConnectionResetError):
            # The broker ended it; what it said before that is still to be read.
            while not self.is_closed:
                self.read()

    def read(self) -> None:
        """Take what is there; the caller knows that something is, or the end."""
        try:
            received = self.socket.recv(1 << 20)
        except TimeoutError:
            message = f"the broker neither answered within {_ANSWER_S} s nor ended the connection"
            raise AssertionError(message) from None
        except ConnectionResetError:
            received = b""
        self.is_closed = not received
        self.arrived.extend(self.reader.feed(received))


class LiveTarget:
    """Connections to one running broker."""

    name = "live"
    is_scripted = False

    def __init__(self, daemon: Daemon) -> None:
        self._path = daemon.socket_path
        self._peers: dict[str, _Peer] = {}
        self._barriers = 0
        self._quiet_s = 0.0

    def connect(self, conn: str) -> None:
        self._peers[conn] = _Peer(self._path)

    def write(self, conn: str, written: bytes) -> None:
        """Write, and wait until the broker has read it: what other connections then write comes later."""
        self._peers[conn].write(written)
        self._barrier(self._peers[conn])

    def hang_up(self, conn: str) -> None:
        self._peers.pop(conn).socket.close()

    def after(self, seconds: float) -> None:
        """Time passes by itself; what is to come, or that nothing comes, is seen in ``settle``."""
        self._quiet_s = min(seconds, _QUIET_S)

    def settle(self, wanted: dict[str, int], closing: set[str], within_s: float) -> None:
        for _round in range(_ROUNDS):
            for peer in list(self._peers.values()):
                self._barrier(peer)
        if not wanted and not closing:
            within_s, self._quiet_s = self._quiet_s, 0.0
            self._watch(within_s)
            return
        end = time.monotonic() + within_s
        while self._is_wanting(wanted, closing) and self._watch(end - time.monotonic()):
            pass

    def _is_wanting(self, wanted: dict[str, int], closing: set[str]) -> bool:
        short = any(len(self._peers[conn].arrived) < count for conn, count in wanted.items() if conn in self._peers)
        return short or not all(map(self.is_closed, closing))

    def _watch(self, seconds: float) -> bool:
        """Read what comes first within a time; False when nothing did."""
        open_peers = [peer for peer in self._peers.values() if not peer.is_closed]
        sockets = [peer.socket for peer in open_peers]
        readable, _, _ = select.select(sockets, [], [], max(0.0, seconds))
        for peer in open_peers:
            if peer.socket in readable:
                peer.read()
        return bool(readable)

    def take(self, conn: str) -> list[bytes]:
        peer = self._peers[conn]
        arrived, peer.arrived = peer.arrived, []
        return arrived

    def is_closed(self, conn: str) -> bool:
        return conn not in self._peers or self._peers[conn].is_closed

    def close(self) -> None:
        """End every connection, and wait until the broker has noticed."""
        for peer in self._peers.values():
            peer.socket.close()
        self._peers.clear()
        observer = _Peer(self._path)
        observer.write(frame(encode_json({"type": "register", "observer": 1, "session": {"cwd": "/", "model": "m"}})))
        end = time.monotonic() + _ANSWER_S
        while time.monotonic() < end:
            observer.write(frame(encode_json({"type": "list", "requestId": "rest"})))
            rows = self._read_until(observer, b'"requestId":"rest"')
            if b'"sessions":[]' in rows:
                observer.socket.close()
                return
            # Those who left together end one after the other: the next answer says something else.
            observer.arrived.clear()
        raise AssertionError("sessions stayed after their sockets were closed")

    def _barrier(self, peer: _Peer) -> None:
        """Ask for health and read until it is answered; the answer itself is not kept."""
        if peer.is_closed or peer.is_within_frame:
            return
        self._barriers += 1
        mark = f"{_MARK}{self._barriers}"
        peer.write(frame(encode_json({"type": "health", "requestId": mark})))
        answer = self._read_until(peer, b'"requestId":"%s"' % mark.encode())
        if answer:
            peer.arrived.remove(answer)

    @staticmethod
    def _read_until(peer: _Peer, words: bytes) -> bytes:
        """The payload that holds ``words``; empty when the connection ended before."""
        while True:
            found = next((payload for payload in reversed(peer.arrived) if words in payload), b"")
            if found or peer.is_closed:
                return found
            peer.read()
