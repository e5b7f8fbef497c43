"""The others: sessions in a program of their own that exchange messages while somebody misbehaves.

Usage: ``python -m tests.trials.load.pair <socket path>``; says one line when everybody has joined. Each line on
standard input, ``<pause ms> <messages at most, 0: no end>``, is a run: a message is sent and its word and its arrival
are awaited before the next one. The next line, whatever it says, ends a run that has no end. Each run answers with one
line of JSON: count, the latencies' median, p99 and most in microseconds, and everything that was lost.

The messages go round so many ordered pairs that no budget of a pair or a session is what is measured.
"""

from __future__ import annotations

import json
import select
import sys
import time

from libintercom.wire.frames import encode_json, frame
from tests.support import sayings as say
from tests.support.raw_peer import RawPeer
from tests.support.waiting import DEADLINE_S

# Ordered pairs: 1,024 with 600 messages a minute each, and 32 senders with 500 a second each.
_SENDERS, _RECIPIENTS = 32, 32
# The size of one message's text: that of a typical message (bars.md measures with it).
_TEXT = "x" * 512
_US_PER_S = 1e6
_PREFIX = "pair"


class Others:
    """Every sender and recipient."""

    def __init__(self, path: str) -> None:
        self._senders = [self._join(path, f"{_PREFIX}-sender-{number}") for number in range(_SENDERS)]
        self._recipients = [self._join(path, f"{_PREFIX}-recipient-{number}") for number in range(_RECIPIENTS)]
        self._number = 0
        self.lost: list[str] = []

    def exchange(self) -> float:
        """One message there and its word back; how long the word took, in seconds."""
        self._number += 1
        message_id = f"{_PREFIX}-{self._number}"
        sender = self._senders[self._number % _SENDERS]
        at = (self._number // _SENDERS + self._number) % _RECIPIENTS
        raw = frame(encode_json(say.send(f"{_PREFIX}-recipient-{at}", message_id, _TEXT)))
        began_s = time.perf_counter()
        sender.say_bytes(raw)
        try:
            word = _await(sender, ("delivered", "delivery_queued", "delivery_failed"), message_id)
            took_s = time.perf_counter() - began_s
            if word["type"] == "delivery_failed":
                self.lost.append(f"{message_id}: {word}")
            else:
                _await(self._recipients[at], ("message",), message_id)
        except (AssertionError, OSError) as error:
            self.lost.append(f"{message_id}: {type(error).__name__} {error} (deadline {DEADLINE_S:g} s)")
            return DEADLINE_S
        return took_s

    @staticmethod
    def _join(path: str, name: str) -> RawPeer:
        peer = RawPeer(path)
        peer.join(say.register(name, id=name, ext=1))
        return peer


def _await(peer: RawPeer, kinds: tuple[str, ...], message_id: str) -> say.Object:
    """The frame about a message; what others said to this session is passed over."""
    while True:
        heard: say.Object = peer.hear()
        about = heard["message"]["id"] if heard["type"] == "message" else heard.get("messageId")
        if heard["type"] in kinds and about == message_id:
            return heard


def run(others: Others, pause_s: float, most: int) -> dict[str, object]:
    """Exchange messages until there were enough, or something was said on standard input."""
    latencies: list[float] = []
    others.lost.clear()
    while not most or len(latencies) < most:
        if select.select([sys.stdin], [], [], pause_s)[0] and not most:
            sys.stdin.readline()
            break
        latencies.append(others.exchange() * _US_PER_S)
        if others.lost:
            break
    latencies.sort()
    return {"count": len(latencies), **_spread(latencies), "lost": others.lost}


def _spread(latencies: list[float]) -> dict[str, float]:
    if not latencies:
        return {"p50": 0.0, "p99": 0.0, "most": 0.0}
    count = len(latencies)
    return {"p50": latencies[count // 2], "p99": latencies[count * 99 // 100], "most": latencies[-1]}


def main() -> None:
    others = Others(sys.argv[1])
    _answer({"joined": _SENDERS + _RECIPIENTS})
    while line := sys.stdin.readline():
        pause_ms, most = line.split()
        _answer(run(others, float(pause_ms) / 1000, int(most)))


def _answer(found: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
