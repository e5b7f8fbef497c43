"""What the loads have in common: sessions that never wait, at the lowest priority, until standard input ends.

Owns their sockets and the count of what the broker answered. Does not own what is sent (``flood``, ``hostile``).
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import TYPE_CHECKING

from bench.sessions import HEADER_BYTES, Session

if TYPE_CHECKING:
    import collections

_READ_BYTES = 256 * 1024


class Presser:
    """One session that writes as fast as its socket takes it and counts the answers by kind and code."""

    def __init__(self, path: str, peer_id: str, answers: collections.Counter[str]) -> None:
        self._path, self._id, self._answers = path, peer_id, answers
        self._waiting = memoryview(b"")
        self._received = b""
        self._join()

    def fileno(self) -> int:
        return self.session.socket.fileno()

    @property
    def is_writing(self) -> bool:
        return bool(self._waiting)

    def begin(self, frame: bytes) -> None:
        self._waiting = memoryview(frame)

    def write(self) -> int:
        """How many bytes the socket took."""
        try:
            taken = self.session.socket.send(self._waiting)
        except BlockingIOError:
            return 0
        except OSError:
            self._rejoin()
            return 0
        self._waiting = self._waiting[taken:]
        return taken

    def read(self) -> None:
        try:
            received = self.session.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._rejoin()
            return
        self._received += received
        self._count()

    def _count(self) -> None:
        start = 0
        while len(self._received) - start >= HEADER_BYTES:
            behind = start + 4 + int.from_bytes(self._received[start : start + 4], "big")
            if behind > len(self._received):
                break
            found = json.loads(self._received[start + 4 : behind])
            self._answers[" ".join(filter(None, (found["type"], found.get("code"))))] += 1
            start = behind
        self._received = self._received[start:]

    def _join(self) -> None:
        self.session = Session(self._path, self._id)
        self.session.socket.setblocking(False)

    def _rejoin(self) -> None:
        """The broker dropped this session, as it may: join again, the frame on the way is gone."""
        self._answers["dropped"] += 1
        self.session.close()
        self._waiting, self._received = memoryview(b""), b""
        self._join()


def step_aside() -> None:
    """Run only when nobody else wants the processor: the pair that is measured must not wait for a load."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def is_told_to_end() -> bool:
    """Whether whoever started this closed its standard input."""
    return bool(select.select([sys.stdin], [], [], 0)[0])
