"""A session that says as much as it can: sends, lists, presence, health and the rest; frames of no type, over and over.

Owns what each greedy session says and what must hold. Nobody is disconnected for speed alone.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from intercomd.core.limits import Limits
from libintercom.wire.frames import encode_json, frame
from tests.support import sayings as say
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.refusals import untruth
from tests.trials.load.stage import Load, Stage, stage
from tests.trials.load.vitals import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

_MB = 1_000_000
# One write of a greedy session: a little more than the broker reads of it in one turn.
_BATCH_BYTES = 80 * 1024
# What a greedy session may have in memory: its input, and answers up to what may wait for one recipient (4 MiB) beyond
# which it is read no further.
_INPUT_BYTES = 3 * 64 * 1024
_SPARE_BYTES = 2 * _MB
# Lists that may be unanswered: each answer is some 30 KB, and waiting for thousands of them shows nothing more.
_LISTS_AT_ONCE, _LIST_BYTES = 600, 8 * 1024
# Until everything that was said is read: at the slowest rate for input, 16 MiB a second, with much to spare.
_SETTLED_S = 60.0
# Connections that a session of nonsense has at once.
_NONSENSE_AT_ONCE = 8
_NAME = "greedy"


def _sends(number: int) -> say.Object:
    return say.send("greed-target", f"g{number}", "x")


# What is said -> one frame of it. All of them keep the connection.
TALK: dict[str, Callable[[int], say.Object]] = {
    "sends": _sends,
    "sends to nobody": lambda number: say.send(f"nobody at all {number}", f"g{number}"),
    "broken sends": lambda number: {"type": "send", "to": "greed-target", "message": {"id": f"g{number}"}},
    "asks": lambda number: say.ask("greed-target", f"g{number}", timeoutMs=60_000),
    "replaceable": lambda number: say.replace("greed-target", f"g{number}", f"thread {number % 200}"),
    "lists": lambda number: say.list_sessions(f"l{number}"),
    "presence": lambda number: say.presence(status=f"tool:{number}"),
    "health": lambda number: {"type": "health", "requestId": f"h{number}"},
    "stats": lambda number: say.stats(f"s{number}"),
    "dead letters": lambda number: {"type": "dead_letters", "requestId": f"d{number}"},
    "receipts": lambda number: {
        "type": "message_receipt",
        "receipt": {"messageId": f"g{number}", "status": "injected", "timestamp": 1},
    },
    "takes back": lambda number: {"type": "cancel_message", "messageId": f"g{number}"},
    "ignored": lambda number: {"type": "extension_publish", "number": number},
}


class Greedy:
    """One greedy session and what it was told."""

    def __init__(self, path: str, peers: Peers, report: Report, kind: str) -> None:
        self._peers, self._report, self._kind, self._make = peers, report, kind, TALK[kind]
        (self.target,) = peers.join(path, [say.register("target", id="greed-target", status="idle")])
        (self.peer,) = peers.join(path, [say.register(_NAME, id=_NAME, ext=1)], on_frame=self._hear)
        self.said = 0
        self.refusals: list[say.Object] = []

    def turn(self) -> None:
        is_waiting = self._kind == "lists" and self.said - self.peer.heard["sessions"] > _LISTS_AT_ONCE
        if not self.peer.is_writing and not is_waiting:
            batch = b""
            while len(batch) < (_LIST_BYTES if self._kind == "lists" else _BATCH_BYTES):
                self.said += 1
                batch += frame(encode_json(self._make(self.said)))
            self.peer.say_bytes(batch)
        self._peers.turn()

    def settle(self) -> None:
        """Health behind the last frame: then everything before it was read and answered, but what comes late."""
        before = self.peer.heard["health_ok"]
        self.peer.say({"type": "health", "requestId": "last"})
        self._peers.turn_until(
            lambda: self.peer.has_ended or self.peer.heard["health_ok"] > before, "the end of the greed", _SETTLED_S
        )

    def _hear(self, _peer: Peer, value: say.Object) -> None:
        if value["type"] == "delivery_failed" and value["code"] in ("rate_limited", "recipient_full"):
            wrong = untruth(value)
            self._report.expect(not wrong, f"a sender was told an untruth: {wrong}")
            self.refusals = [value]


def be_greedy(report: Report, scale: Scale) -> None:
    """Each kind of greed on a broker of its own; at a reduced scale some kinds, by dice."""
    kinds = sorted(random.Random(scale.seed).sample(list(TALK), min(scale.greeds, len(TALK))), key=list(TALK).index)
    report.say(f"{len(kinds)} of {len(TALK)} kinds: {', '.join(kinds)}")
    for kind in kinds:
        with stage(report, dedupe_per_sender=16) as at, Peers() as peers:
            _press_with(at, peers, scale, kind)


def _press_with(at: Stage, peers: Peers, scale: Scale, kind: str) -> None:
    report = at.report
    calm = at.pair.measure(scale.pair_messages)
    greedy = Greedy(at.path, peers, report, kind)
    at.vitals.reset_peak()
    before_bytes = at.vitals.resident_bytes
    pressed = []

    def work(load: Load) -> None:
        end = time.monotonic() + scale.flood_s
        while not load.is_over.is_set() or time.monotonic() < end:
            greedy.turn()
            if greedy.peer.written_bytes > _BATCH_BYTES:
                load.has_begun.set()
        greedy.settle()

    at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
    grown_bytes = at.vitals.peak_bytes - before_bytes
    told = ", ".join(f"{count:,} {word}" for word, count in sorted(greedy.peer.heard.items()))
    report.say(f"{kind}: {greedy.said:,} frames, {greedy.peer.written_bytes / _MB:.0f} MB; told {told}")
    report.expect(not greedy.peer.has_ended, f"{kind}: disconnected for speed")
    bar = Limits().recipient_bytes + _INPUT_BYTES + _SPARE_BYTES
    report.figure(f"{kind}: growth (peak RSS)", grown_bytes / MIB, "MiB", bar=bar / MIB)
    at.judge_pair([calm], pressed[0], kind)
    at.judge_balance()
    at.judge_log()


def talk_nonsense(report: Report, scale: Scale) -> None:
    """Frames of no type, which end a connection, from one that comes back at once, over and over."""
    with stage(report) as at, Peers() as peers:
        descriptors, calm = at.vitals.descriptors, [at.pair.measure(scale.pair_messages)]
        nonsense = frame(encode_json({"type": "nonsense"}))
        pressed, count = [], 0

        def work(load: Load) -> None:
            nonlocal count
            end = time.monotonic() + scale.flood_s
            while not load.is_over.is_set() or time.monotonic() < end:
                while len(peers) < _NONSENSE_AT_ONCE:
                    peers.connect(at.path).say_bytes(nonsense)
                    count += 1
                peers.turn()
                load.has_begun.set()
                for peer in peers:
                    if peer.has_ended:
                        peers.drop(peer)

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        report.say(f"{count:,} connections of nonsense")
        at.judge_pair(calm, pressed[0], "nonsense")
        for peer in peers:
            peers.drop(peer)
        at.judge_settled(descriptors)
        at.judge_balance()
        at.judge_log()
