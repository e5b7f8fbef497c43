"""Frames that are as hard to read as JSON can be, at the rate a session is allowed: memory, the others, no hang.

Owns sending each kind (``hostile_frames``) and what must hold. A frame that ends its connection costs a new one.
"""

from __future__ import annotations

import collections
import random
import time
from typing import TYPE_CHECKING

from intercomd.core.limits import Limits
from libintercom.wire.frames import MAX_FRAME_BYTES, frame
from tests.support import sayings as say
from tests.trials.load.hostile_frames import KINDS, TARGET
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.stage import Load, Stage, stage
from tests.trials.load.vitals import MIB

if TYPE_CHECKING:
    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

# What one frame may take while it is looked at, beyond itself: invalid UTF-8 becomes three times as long, its text,
# its message and what goes out are copies of that, and text that Python keeps takes two bytes a character.
_WORK_BYTES = 12 * MAX_FRAME_BYTES
_SPARE_BYTES = 2_000_000
# Until the broker has read and judged one frame.
_DEADLINE_S = 10.0


class Attack:
    """One session that says hostile frames and one that reads what of them arrives."""

    def __init__(self, at: Stage, peers: Peers) -> None:
        self._at, self._peers = at, peers
        (self.target,) = peers.join(at.path, [say.register("target", id=TARGET, ext=1)])
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.cost_s: collections.Counter[str] = collections.Counter()
        self.peak_bytes: dict[str, int] = {}
        self._attacker = self._join()

    def say(self, kind: str, number: int) -> None:
        """One frame and health behind it: its end, or health's answer and its own, which may come behind that."""
        peer, payload, vitals = self._attacker, KINDS[kind](number), self._at.vitals
        is_send = payload.startswith(b'{"type":"send"')
        before_s = vitals.processor_s
        vitals.reset_peak()
        peer.say_bytes(frame(payload))
        peer.say({"type": "health", "requestId": "behind"})
        self._peers.turn_until(lambda: _has_outcome(peer, is_send=is_send), f"an end of {kind}", _DEADLINE_S)
        self.cost_s[kind] += vitals.processor_s - before_s
        self.peak_bytes[kind] = max(self.peak_bytes.get(kind, 0), vitals.peak_bytes)
        words = [word for word in peer.heard if word.startswith("deliver")]
        self.outcomes[f"{kind}: {'dropped' if peer.has_ended else ', '.join(sorted(words)) or 'accepted'}"] += 1
        peer.heard.clear()
        if peer.has_ended:
            self._peers.drop(peer)
            self._attacker = self._join()

    def _join(self) -> Peer:
        (peer,) = self._peers.join(self._at.path, [say.register("hostile", ext=1)])
        peer.heard.clear()
        return peer


def _has_outcome(peer: Peer, *, is_send: bool) -> bool:
    answers = sum(count for word, count in peer.heard.items() if word.startswith("deliver"))
    return peer.has_ended or (peer.heard["health_ok"] > 0 and answers >= is_send)


def be_hostile(report: Report, scale: Scale) -> None:
    """Every kind in turn, at sixteen megabytes a second."""
    with stage(report, dedupe_per_sender=16) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        calm, pressed = [at.pair.measure(scale.pair_messages)], []
        attack = Attack(at, peers)
        before_bytes = at.vitals.resident_bytes
        pace_s = MAX_FRAME_BYTES / Limits().input_bytes_per_s
        kinds = list(KINDS)
        random.Random(scale.seed).shuffle(kinds)
        said = 0

        def work(load: Load) -> None:
            nonlocal said
            began_s = time.monotonic()
            while said < scale.hostile_frames or not load.is_over.is_set():
                attack.say(kinds[said % len(kinds)], said)
                said += 1
                load.has_begun.set()
                while time.monotonic() < began_s + said * pace_s:
                    peers.turn(began_s + said * pace_s - time.monotonic())

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        grown_bytes = max(attack.peak_bytes.values()) - before_bytes
        shown = f"{min(said, len(KINDS))} of {len(KINDS)} kinds"
        report.say(f"{said:,} frames of {shown}; processor time each, the others' messages included:")
        for outcome, count in sorted(attack.outcomes.items()):
            kind = outcome.partition(":")[0]
            of_kind = sum(number for name, number in attack.outcomes.items() if name.startswith(f"{kind}:"))
            grown = (attack.peak_bytes[kind] - before_bytes) / MIB
            report.say(f"  {outcome}: {count}; {attack.cost_s[kind] / of_kind * 1000:.1f} ms, +{grown:.1f} MiB")
        bar = Limits().recipient_bytes + MAX_FRAME_BYTES + _WORK_BYTES + _SPARE_BYTES
        report.figure("growth (peak RSS)", grown_bytes / MIB, "MiB", bar=bar / MIB)
        at.judge_pair(calm, pressed[0], "hostile frames")
        for peer in peers:
            peers.drop(peer)
        at.judge_settled(descriptors)
        at.judge_balance()
        at.judge_log()
