"""``python -m tests.trials.witness.path SOCKET SEEN SEED``: who answers at the path, from outside.

Owns connecting again and again as an observer (which has no row, so the witness keeps no broker from leaving by
itself), registering, and noting which broker answered: its pid and incarnation, as its hello says. It keeps one
connection to each broker it met and goes on asking there, since a broker that lost the path may still serve. Knows no
record and reads no log. Writes one JSON object per question to SEEN, until its input ends.
"""

from __future__ import annotations

import json
import random
import select
import socket
import sys
import time
from typing import Any

from libintercom.wire.frames import FrameReader, decode_json, encode_json, frame
from tests.trials.namespaces import hurry

# Longer than any starter waits: who is accepted and then hears nothing for so long hangs.
ANSWER_S = 10.0
# Pauses between two attempts are drawn from these bounds, so that no broker can keep in step with them.
_PAUSES_S = (0.002, 0.015)
_READ_BYTES = 65_536

REGISTERED, HEALTHY = "registered", "health_ok"
TIMED_OUT, ENDED = "timed out", "ended"

_REGISTER = {"type": "register", "ext": 1, "observer": 1, "session": {"cwd": "/", "model": "none", "name": "witness"}}
_HEALTH = {"type": "health", "requestId": "h"}


class Peer:
    """One connection of the witness; ``who`` is the broker at its other end, once it registered."""

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(answer_s)
        self._reader = FrameReader()
        self.who: dict[str, Any] = {}

    def connect(self, path: str) -> dict[str, Any]:
        """Connect and register: ``begun``, ``ended`` (monotonic seconds), ``found``, and who answered."""
        begun = time.monotonic()
        try:
            self._socket.connect(path)
        except OSError as error:
            return {"begun": begun, "ended": time.monotonic(), "found": type(error).__name__}
        return {**self._ask(_REGISTER), "begun": begun}

    def check(self) -> dict[str, Any]:
        """Ask whether it is well."""
        return self._ask(_HEALTH)

    def close(self) -> None:
        self._socket.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        begun = time.monotonic()
        try:
            self._socket.sendall(frame(encode_json(request)))
            found = self._hear()
        except TimeoutError:
            found = TIMED_OUT
        except OSError as error:
            found = type(error).__name__
        return {"begun": begun, "ended": time.monotonic(), "found": found, **self.who}

    def _hear(self) -> str:
        while received := self._socket.recv(_READ_BYTES):
            for payload in self._reader.feed(received):
                answer = decode_json(payload)
                if answer["type"] == REGISTERED:
                    broker = answer["broker"]
                    self.who = {"pid": broker["pid"], "incarnation": broker["incarnation"]}
                return str(answer["type"])
        return ENDED


class PathWitness:
    """Asks at the path and at every broker it met that still answers."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._held: dict[str, Peer] = {}

    def look(self) -> list[dict[str, Any]]:
        """One question at the path, then one at each broker known."""
        peer = Peer()
        asked = [peer.connect(self._path)]
        incarnation = peer.who.get("incarnation")
        if incarnation is None or incarnation in self._held:
            peer.close()
        else:
            self._held[incarnation] = peer
        for known, held in list(self._held.items()):
            asked.append(held.check())
            if asked[-1]["found"] != HEALTHY:
                self._held.pop(known).close()
        return asked


def main() -> int:
    path, seen_path, seed = sys.argv[1:]
    dice, witness = random.Random(int(seed)), PathWitness(path)
    hurry()
    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN)
    sys.stdout.write("looking\n")
    sys.stdout.flush()
    with open(seen_path, "w", encoding="ascii") as file:
        while not poller.poll(dice.uniform(*_PAUSES_S) * 1000.0):
            file.writelines(json.dumps(asked) + "\n" for asked in witness.look())
    return 0


if __name__ == "__main__":
    sys.exit(main())
