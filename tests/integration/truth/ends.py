"""The two ends of a trial: a sender whose answers are collected, a recipient that never reads until it is examined.

Owns what each kernel has. The recipient is examined only while the broker is stopped or dead, so that taking bytes
out of its socket cannot make room for more.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING, Any

from libintercom.wire.frames import FrameReader, decode_json, encode_json, frame
from tests.support.waiting import DEADLINE_S, wait_until

if TYPE_CHECKING:
    from tests.support.daemon import Daemon

_READ_BYTES = 1 << 20


class End:
    """A registered raw connection; ``frames`` is everything examined or heard so far."""

    def __init__(self, daemon: Daemon, name: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(daemon.socket_path)
        self.frames: list[dict[str, Any]] = []
        self.has_ended = False
        self._reader = FrameReader()
        self.say({"type": "register", "ext": 1, "session": {"cwd": "/", "model": "test", "name": name}})
        self.session_id = self.wait_for("registered")["sessionId"]
        self.socket.setblocking(False)

    def say(self, *values: dict[str, Any]) -> None:
        """Write frames; a broker that dies meanwhile is part of the trial."""
        self.socket.setblocking(True)
        try:
            self.socket.sendall(b"".join(frame(encode_json(value)) for value in values))
        except (BrokenPipeError, ConnectionResetError):
            self.has_ended = True
        self.socket.setblocking(False)

    def examine(self) -> list[dict[str, Any]]:
        """Take everything that the kernel holds for this end; all whole frames so far."""
        while not self.has_ended:
            try:
                received = self.socket.recv(_READ_BYTES)
            except BlockingIOError:
                break
            except ConnectionResetError:
                self.has_ended = True
                break
            self.has_ended = not received
            self.frames += [decode_json(payload) for payload in self._reader.feed(received)]
        return self.frames

    def wait_for(self, kind: str) -> dict[str, Any]:
        """The first frame of a type."""
        self.socket.setblocking(False)

        def find() -> list[dict[str, Any]]:
            return [value for value in self.examine() if value["type"] == kind]

        return wait_until(find, f"a {kind} frame")[0]

    def close(self) -> None:
        self.socket.close()


def words_of(frames: list[dict[str, Any]]) -> dict[str, str]:
    """The sender's first word about each message: delivered, delivery_queued or delivery_failed."""
    words: dict[str, str] = {}
    for value in frames:
        if value["type"] in ("delivered", "delivery_queued", "delivery_failed"):
            words.setdefault(value["messageId"], value["type"])
    return words


def received_ids(frames: list[dict[str, Any]]) -> list[str]:
    """The ids of the whole messages that an end has, in order."""
    return [value["message"]["id"] for value in frames if value["type"] == "message"]


def stop(daemon: Daemon) -> None:
    """SIGSTOP, and wait until the kernel says that it stands still."""
    os.kill(daemon.pid, signal.SIGSTOP)
    wait_until(lambda: _state_of(daemon.pid) == "T", "the broker to stand still")


def resume(daemon: Daemon) -> None:
    os.kill(daemon.pid, signal.SIGCONT)


def _state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def message(message_id: str, size_bytes: int) -> dict[str, Any]:
    """One message of about ``size_bytes``."""
    return {"id": message_id, "timestamp": 1, "content": {"text": "x" * size_bytes}}


def sends(to: str, count: int, size_bytes: int, prefix: str) -> list[dict[str, Any]]:
    """``count`` sends with ids ``prefix0``, ``prefix1`` and so on."""
    return [{"type": "send", "to": to, "message": message(f"{prefix}{number}", size_bytes)} for number in range(count)]
