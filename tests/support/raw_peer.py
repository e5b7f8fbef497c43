"""One end of a connection to a real broker that says exactly what a test wants, byte for byte if need be.

Owns the socket, the frames and waiting for one with a deadline. Does not own plausible frames (``sayings``) nor
comparing what came (``matching``).
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from libintercom.wire.frames import FrameReader, decode_json, encode_json, frame
from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from typing import Self

    Json = Any

_READ_BYTES = 65_536


class RawPeer:
    """A blocking connection; every wait ends at ``DEADLINE_S``."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(DEADLINE_S)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self._reader = FrameReader()
        self._heard: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        self.socket.close()

    def say(self, *objects: Json) -> None:
        """Send frames, all in one write."""
        self.say_bytes(b"".join(frame(encode_json(value)) for value in objects))

    def say_payload(self, payload: bytes) -> None:
        """Send one frame with exactly this payload."""
        self.say_bytes(frame(payload))

    def say_bytes(self, raw: bytes) -> None:
        self.socket.sendall(raw)

    def hear_payload(self) -> bytes:
        """The next frame's payload; empty when the connection ended instead."""
        while not self._heard:
            received = self._receive()
            if not received:
                return b""
            self._heard += self._reader.feed(received)
        return self._heard.pop(0)

    def hear(self) -> Json:
        """The next frame's value."""
        payload = self.hear_payload()
        assert payload, "the broker closed the connection"
        return decode_json(payload)

    def hear_type(self, kind: str) -> Json:
        """The next frame of a type; frames of other types before it are dropped."""
        while True:
            value = self.hear()
            if value["type"] == kind:
                return value

    def hears_end(self) -> bool:
        """Whether the connection ends without another frame."""
        return not self.hear_payload()

    def join(self, register: Json) -> Json:
        """Register; the answer."""
        self.say(register)
        answer = self.hear()
        assert answer["type"] == "registered", answer
        return answer

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(_READ_BYTES)
        except ConnectionResetError:
            return b""
