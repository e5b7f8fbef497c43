"""Frames of nearly 1 MiB that are as hard to read as JSON can be, from one session to one that reads.

Usage: ``python -m bench.load.hostile <socket path> <frames a second, 0: no pause> <frames at most> <kind> ...``. Runs
until standard input ends or so many frames went out; says one line of JSON: frames, seconds, answers by kind.
"""

from __future__ import annotations

import collections
import json
import select
import sys
import time
from typing import TYPE_CHECKING

from bench.load import pressing
from bench.load.pressing import Presser
from bench.sessions import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

# What of a frame's 1 MiB is left beside the members around the hostile one.
_ROOM_BYTES = 1024 * 1024 - 1024
_LOOK_S = 0.05
# The ID in a prebuilt message, and where it stands.
_ZEROS, _HEAD_BYTES = "0" * 36, 256
_TARGET = "bench-target"


def deep(size: int) -> str:
    """Brackets in brackets."""
    return "[" * (size // 2) + "]" * (size // 2)


def wide(size: int) -> str:
    """An object of as many members as fit."""
    members = ",".join(f'"m{number:06}":0' for number in range(size // 12))
    return "{" + members + "}"


def untyped(size: int) -> str:
    """Many small objects: what costs most memory when it is decoded without a type."""
    return "[" + ",".join(['{"a":[]}'] * (size // 9)) + "]"


def surrogates(size: int) -> str:
    """Text of escapes of half characters, which need a scanner of their own."""
    return '"' + "\\ud83d" * (size // 6) + '"'


def numbers(size: int) -> str:
    """Floating-point numbers with many digits."""
    return "[" + ",".join(["1.7976931348623157e308"] * (size // 23)) + "]"


def message(more: str) -> str:
    """A message in which something large stands in a member that nobody knows; its ID is numbered in place."""
    head = f'{{"type":"send","to":"{_TARGET}","message":{{"id":"{_ZEROS}","timestamp":1,"content":{{"text":"x"}},'
    return f'{head}"more":{more}}}}}'


# Kind -> the payload of one frame. The last two never form a message.
KINDS: dict[str, Callable[[], str]] = {
    "deep": lambda: message(deep(_ROOM_BYTES)),
    "wide": lambda: message(wide(_ROOM_BYTES)),
    "untyped": lambda: message(untyped(_ROOM_BYTES)),
    "surrogates": lambda: message(surrogates(_ROOM_BYTES)),
    "numbers": lambda: message(numbers(_ROOM_BYTES)),
    "ignored": lambda: f'{{"type":"extension_publish","payload":{untyped(_ROOM_BYTES)}}}',
    "typeless": lambda: f'{{"payload":{untyped(_ROOM_BYTES)}}}',
}


class Attack:
    """One session that sends and one that reads what of it arrives."""

    def __init__(self, path: str) -> None:
        self.answers: collections.Counter[str] = collections.Counter()
        self.arrived: collections.Counter[str] = collections.Counter()
        self.target = Presser(path, _TARGET, self.arrived)
        self.presser = Presser(path, "bench-hostile", self.answers)

    def turn(self, wait_s: float) -> None:
        """Write and read what can be; wait at most so long for it."""
        writers = [self.presser] if self.presser.is_writing else []
        readable, writable, _ = select.select([self.presser, self.target], writers, [], wait_s)
        for one in readable:
            one.read()
        if writable and self.presser.is_writing:
            self.presser.write()

    def settle(self) -> None:
        """Ask for health behind the last frame and wait for the answer or the end: then every frame was read."""
        end_s = time.monotonic() + PATIENCE_S
        while self.presser.is_writing and time.monotonic() < end_s:
            self.turn(_LOOK_S)
        before = self._ends
        self.presser.begin(frame(b'{"type":"health","requestId":"last"}'))
        while self._ends == before and time.monotonic() < end_s:
            self.turn(_LOOK_S)

    @property
    def _ends(self) -> int:
        return self.answers["health_ok"] + self.answers["dropped"]


def main(path: str, rate: float, most: int, kinds: list[str]) -> None:
    payloads = {kind: KINDS[kind]().encode() for kind in kinds}
    pressing.step_aside()
    attack, count, began_s = Attack(path), 0, time.monotonic()
    while count < most and not pressing.is_told_to_end():
        left_s = began_s + count / rate - time.monotonic() if rate else 0.0
        if left_s <= 0 and not attack.presser.is_writing:
            attack.presser.begin(frame(numbered(payloads[kinds[count % len(kinds)]], count)))
            count += 1
        attack.turn(min(max(left_s, 0.0), _LOOK_S) if not attack.presser.is_writing else _LOOK_S)
    attack.settle()
    found = {"frames": count, "seconds": time.monotonic() - began_s, "answers": attack.answers}
    sys.stdout.write(json.dumps({**found, "arrived": attack.arrived}) + "\n")


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def numbered(payload: bytes, number: int) -> bytes:
    """The payload with a message ID of its own, where it is a message."""
    at = payload.find(_ZEROS.encode(), 0, _HEAD_BYTES)
    return payload if at < 0 else payload[:at] + b"%036d" % number + payload[at + len(_ZEROS) :]


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] or list(KINDS))
