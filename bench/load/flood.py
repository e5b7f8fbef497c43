"""A flood towards a session that has stopped reading.

Usage: ``python -m bench.load.flood <socket path> <senders> <MB at most>``. Runs until standard input ends or so much
was written; says one line of JSON: bytes, seconds, answers by kind.
"""

from __future__ import annotations

import collections
import json
import select
import sys
import time

from bench.load import pressing
from bench.sessions import Session, frame

# Large enough that bytes, not messages, are what floods; small against every limit on one frame.
_TEXT_BYTES = 64 * 1024
# How long to wait for a socket before looking whether the flood shall end.
_LOOK_S = 0.05
_STALLED = "bench-stalled"


def main(path: str, senders: int, most_mb: int) -> None:
    pressing.step_aside()
    answers: collections.Counter[str] = collections.Counter()
    # It registers, and never reads again.
    stalled = Session(path, _STALLED)
    flooders = [pressing.Presser(path, f"bench-flooder-{number}", answers) for number in range(senders)]
    frames, written, began_s = Frames(), 0, time.monotonic()
    while written < most_mb * 1_000_000 and not pressing.is_told_to_end():
        for flooder in flooders:
            if not flooder.is_writing:
                flooder.begin(frames.make())
        readable, writable, _ = select.select(flooders, flooders, [], _LOOK_S)
        for flooder in readable:
            flooder.read()
        written += sum(flooder.write() for flooder in writable)
    found = {"bytes": written, "seconds": time.monotonic() - began_s, "answers": answers}
    sys.stdout.write(json.dumps(found) + "\n")
    stalled.close()


class Frames:
    """Messages to the stalled session, each with an ID of its own."""

    def __init__(self) -> None:
        content = {"text": "x" * _TEXT_BYTES}
        message = {"id": "%036d", "timestamp": 1700000000000, "delivery": "steer", "content": content}
        self._form = frame({"type": "send", "to": _STALLED, "message": message})[4:]
        self._head = len(self._form % 0).to_bytes(4, "big")
        self._number = 0

    def make(self) -> bytes:
        self._number += 1
        return self._head + self._form % self._number


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
