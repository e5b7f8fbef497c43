"""Sessions on raw sockets, for what a figure needs around its generator: one that only stands there, or thousands.

Owns their frames. Does not own measuring with them (``load``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# The length before each payload.
HEADER_BYTES = 4
# No broker here needs so long for one answer.
PATIENCE_S = 20.0
# Registrations on the way at once; a broker stops accepting at 64 unregistered connections.
_CROWD_STEP = 32
# How often a broker that is starting is asked again: small against the start itself.
_RETRY_S = 0.0005
# So many projects in a crowd.
_PROJECTS = 50


def frame(value: dict[str, Any]) -> bytes:
    payload = json.dumps(value, separators=(",", ":")).encode()
    return len(payload).to_bytes(4, "big") + payload


def registration(peer_id: str, **parts: Any) -> bytes:
    """A ``register`` frame that every dialect of the wire understands."""
    session = {"cwd": "/home/someone/bench", "model": "bench", "name": peer_id, "status": "idle", "acceptsAsks": True}
    session |= {"pid": os.getpid(), "startedAt": 1700000000000, "lastActivity": 1700000000000, **parts}
    return frame({"type": "register", "requestedId": peer_id, "session": session, "sessionId": peer_id, "ext": 1})


class Session:
    """One registered session. ``answer`` is what the broker said to its registration."""

    def __init__(self, path: str, peer_id: str, **parts: Any) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self._received = b""
        try:
            self.socket.connect(path)
            self.socket.sendall(registration(peer_id, **parts))
            self.answer = self.hear("registered")
        except BaseException:
            self.socket.close()
            raise
        self.id: str = self.answer["sessionId"]

    def say(self, **members: Any) -> None:
        self.socket.sendall(frame(members))

    def hear(self, kind: str) -> dict[str, Any]:
        """The next frame of that type; others are passed over. Raises ConnectionError at the end of the stream."""
        while True:
            length = int.from_bytes(self._read(4), "big")
            found: dict[str, Any] = json.loads(self._read(length))
            if found["type"] == kind:
                return found

    def close(self) -> None:
        self.socket.close()

    def _read(self, length: int) -> bytes:
        while len(self._received) < length:
            received = self.socket.recv(65536)
            if not received:
                raise ConnectionError("the broker closed the connection")
            self._received += received
        taken, self._received = self._received[:length], self._received[length:]
        return taken


def await_session(path: str, peer_id: str, deadline_s: float = PATIENCE_S) -> Session:
    """A session at a broker that may still be starting."""
    end = time.monotonic() + deadline_s
    while True:
        try:
            return Session(path, peer_id)
        except (FileNotFoundError, ConnectionError):
            if time.monotonic() > end:
                raise
        time.sleep(_RETRY_S)


class Crowd:
    """Idle sessions that only stand there. Each is a project's worker with a row like a real one's."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._sockets: list[socket.socket] = []

    def grow(self, count: int) -> None:
        """Let more join until there are so many."""
        while len(self._sockets) < count:
            numbers = range(len(self._sockets), min(count, len(self._sockets) + _CROWD_STEP))
            joined = [self._join(number) for number in numbers]
            for one in joined:
                self._await_answer(one)

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def _join(self, number: int) -> socket.socket:
        joining = socket.socket(socket.AF_UNIX)
        self._sockets.append(joining)
        joining.settimeout(PATIENCE_S)
        joining.connect(self._path)
        project = number % _PROJECTS
        place = f"/home/someone/projects/project-{project}"
        digest = hashlib.sha256(place.encode()).hexdigest()
        joining.sendall(registration(f"crowd-{number:05}", cwd=place, model="vendor/model-7", projectId=digest))
        return joining

    @staticmethod
    def _await_answer(joining: socket.socket) -> None:
        """The answer is one frame, and nothing else comes to an idle session before it."""
        received = b""
        while len(received) < HEADER_BYTES or len(received) < HEADER_BYTES + int.from_bytes(received[:4], "big"):
            part = joining.recv(65536)
            if not part:
                raise ConnectionError("the broker closed a session of the crowd")
            received += part


@contextlib.contextmanager
def crowd(path: str) -> Iterator[Crowd]:
    """A crowd that is gone afterwards. Stop the broker first: thousands that leave are told to thousands."""
    one = Crowd(path)
    try:
        yield one
    finally:
        one.close()
