"""Clients that connect at given moments, and what each of them was told.

Owns raw connections that register at once, many at a time in one loop, and the word for how each one fared. Does not
own when they come (``generations``) nor what they do after being sent away (the library's client does that).
"""

from __future__ import annotations

import heapq
import select
import socket
import time
from typing import Any

from libintercom.wire.frames import FrameReader, decode_json, encode_json, frame

# What an arrival may be told. The first three are fine; the others mean that an accepted client was lost.
REGISTERED, SENT_AWAY, NOBODY = "registered", "sent away", "nobody there"
HALF, SILENCE = "half an answer", "no answer"

# A local broker answers in a millisecond; a machine with a hundred programs needs some more.
_ANSWER_S = 8.0
_READ_BYTES = 65_536


class Arrival:
    """One client. ``found`` is the word for how it fared; ``session_id`` and ``incarnation`` when it registered."""

    def __init__(self, name: str, at: float) -> None:
        self.name, self.at, self.found = name, at, ""
        self.session_id = self.incarnation = ""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._reader = FrameReader()
        self._has_heard = False

    def __lt__(self, other: Arrival) -> bool:
        return self.at < other.at

    def connect(self, path: str) -> None:
        """Connect and register without waiting."""
        session = {"cwd": "/", "model": "none", "name": self.name}
        self.socket.setblocking(False)
        try:
            self.socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            self.found = NOBODY
            return
        try:
            self.socket.send(frame(encode_json({"type": "register", "ext": 1, "session": session})))
        except (BrokenPipeError, ConnectionResetError):
            self.found = SENT_AWAY

    def hear(self) -> list[dict[str, Any]]:
        """What came; the connection's end sets ``found``."""
        try:
            received = self.socket.recv(_READ_BYTES)
        except ConnectionResetError:
            received = b""
        if not received:
            self.found = HALF if self._has_heard else SENT_AWAY
            return []
        self._has_heard = True
        answers = [decode_json(payload) for payload in self._reader.feed(received)]
        for answer in answers:
            if answer["type"] == "registered":
                self.found = REGISTERED
                self.session_id, self.incarnation = answer["sessionId"], answer["broker"]["incarnation"]
        return answers

    def is_served(self) -> bool:
        """Whether this registered client gets a list in which it stands itself."""
        self.socket.settimeout(_ANSWER_S)
        try:
            self.socket.sendall(frame(encode_json({"type": "list", "requestId": "l"})))
            while True:
                for answer in self.hear():
                    if answer["type"] == "sessions":
                        return self.session_id in {row["id"] for row in answer["sessions"]}
                if self.found != REGISTERED:
                    return False
        except OSError:
            return False

    def close(self) -> None:
        self.socket.close()


def arrive(path: str, arrivals: list[Arrival]) -> None:
    """Let every one connect at its moment, and wait until each has its word."""
    coming = list(arrivals)
    heapq.heapify(coming)
    waiting: dict[int, Arrival] = {}
    poller = select.poll()
    end = max(arrival.at for arrival in arrivals) + _ANSWER_S
    while time.monotonic() < end:
        while coming and coming[0].at <= time.monotonic():
            arrival = heapq.heappop(coming)
            arrival.connect(path)
            if not arrival.found:
                waiting[arrival.socket.fileno()] = arrival
                poller.register(arrival.socket, select.POLLIN)
        if not coming and not waiting:
            return
        pause_s = (coming[0].at if coming else end) - time.monotonic()
        for fd, _ready in poller.poll(max(0.0, pause_s) * 1000.0):
            waiting[fd].hear()
            if waiting[fd].found:
                poller.unregister(fd)
                del waiting[fd]
    for arrival in waiting.values():
        arrival.found = SILENCE
