"""A reader that stops in a flood of 200 MB: memory, the others, what the senders are told, and what becomes of it all.

Owns two trials: the stopped reader that reads on later, and one that never does (stalled, then disconnected).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from intercomd.core.limits import Limits
from libintercom.wire.frames import encode_json, frame
from tests.support import sayings as say
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.refusals import untruth
from tests.trials.load.stage import Load, stage
from tests.trials.load.vitals import MIB

if TYPE_CHECKING:
    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

# Large enough that bytes, not messages, are what floods; small against every limit on one frame.
_TEXT = "x" * (64 * 1024)
_FLOODERS = 4
_MB = 1_000_000
# What of a flooder may be in memory as input: what one turn reads, the frame it completes, and the frame's message.
_INPUT_BYTES = 3 * 64 * 1024
# bars.md: growth beyond what is held for the recipient.
_SPARE_BYTES = 2 * _MB
# Times of the second trial; the ordinary ones are 20 s and 120 s.
_STALLED_S, _DISCONNECT_S = 0.6, 1.6
_PATIENCE_S = 20.0
# A flood that is read more slowly than this, by a broker that is allowed 16 MiB a second of each sender, has stopped.
_SLOWEST_MB_PER_S = 1.0
# The kernel has it, or the broker.
_ACCEPTED = ("delivered", "delivery_queued")


class Flood:
    """Senders that write as fast as they are read, to one that does not read."""

    def __init__(self, path: str, peers: Peers, report: Report) -> None:
        self._peers, self._report = peers, report
        self.arrived: dict[str, list[str]] = {}
        self.accepted: dict[str, list[str]] = {}
        self.refused = 0
        # Whether the reader may be disconnected for reading nothing.
        self.may_vanish = False
        # Held by the broker when they were answered, and what it said had died of them.
        self.queued: set[str] = set()
        self.letters: set[str] = set()
        self._number = 0
        (self.reader,) = peers.join(path, [say.register("reader", id="flood-reader", ext=1)], on_frame=self._arrive)
        self.reader.stop_reading()
        senders = [say.register(f"flooder{number}", id=f"flooder-{number}", ext=1) for number in range(_FLOODERS)]
        self.senders = peers.join(path, senders, on_frame=self._answer)

    @property
    def written_bytes(self) -> int:
        return sum(sender.written_bytes for sender in self.senders)

    @property
    def is_answered(self) -> bool:
        """Whether every message had its word."""
        return self.refused + sum(map(len, self.accepted.values())) == self._number

    def turn(self) -> None:
        """Give every sender that wrote everything one more message."""
        for sender in self.senders:
            if not sender.is_writing:
                self._number += 1
                value = say.send("flood-reader", f"{sender.session_id}.{self._number}", _TEXT)
                sender.say_bytes(frame(encode_json(value)))
        self._peers.turn()

    def go_on_until(self, word: str) -> None:
        """Until somebody is told so."""
        end = time.monotonic() + _PATIENCE_S
        while not any(sender.heard[word] for sender in self.senders):
            assert time.monotonic() < end, f"nobody was told {word} within {_PATIENCE_S:g} s"
            self.turn()

    def settle(self) -> None:
        """Wait for the words that are still to come."""
        self._peers.turn_until(lambda: self.is_answered, "a word about every message")

    def judge_arrival(self) -> None:
        """Everything accepted arrives, once, in its sender's order, and nothing else."""
        wanted = sum(map(len, self.accepted.values()))
        self.reader.read_on()
        self._peers.turn_until(lambda: sum(map(len, self.arrived.values())) >= wanted, "what was accepted to arrive")
        self._report.say(f"the reader reads on: {wanted:,} accepted messages arrived, {self.refused:,} were refused")
        self._report.expect(self.arrived == self.accepted, f"accepted {self.accepted}, arrived {self.arrived}")

    def _arrive(self, _reader: Peer, value: say.Object) -> None:
        if value["type"] == "message":
            self.arrived.setdefault(value["from"]["id"], []).append(value["message"]["id"])

    def _answer(self, sender: Peer, value: say.Object) -> None:
        if value["type"] in _ACCEPTED:
            self.accepted.setdefault(sender.session_id, []).append(value["messageId"])
            if value["type"] == "delivery_queued":
                self.queued.add(value["messageId"])
        elif value["type"] == "delivery_failed":
            self.refused += 1
            wrong = "" if value["code"] == "not_found" and self.may_vanish else untruth(value)
            self._report.expect(not wrong, f"a sender was told an untruth: {wrong}")
        elif value["type"] == "dead_letter":
            self.letters.add(value["messageId"])


def stop_reading(report: Report, scale: Scale) -> None:
    """A flood to a reader that stopped, and later reads on."""
    with stage(report, dedupe_per_sender=16) as at, Peers() as peers:
        calm = [at.pair.measure(scale.pair_messages)]
        flood = Flood(at.path, peers, report)
        at.vitals.reset_peak()
        before_bytes = at.vitals.resident_bytes
        pressed = []

        def work(load: Load) -> None:
            end = time.monotonic() + _PATIENCE_S + scale.flood_mb / _SLOWEST_MB_PER_S
            while not load.is_over.is_set() or flood.written_bytes < scale.flood_mb * _MB:
                assert time.monotonic() < end, f"the broker read {flood.written_bytes / _MB:.0f} MB and no more"
                flood.turn()
                load.has_begun.set()
            flood.settle()

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        grown_bytes = at.vitals.peak_bytes - before_bytes
        calm.append(at.pair.measure(scale.pair_messages))
        _tell(report, flood)
        bar = Limits().recipient_bytes + _FLOODERS * _INPUT_BYTES + _SPARE_BYTES
        report.figure("growth (peak RSS)", grown_bytes / MIB, "MiB", bar=bar / MIB)
        at.judge_pair(calm, pressed[0], "flood")
        at.judge_balance()
        flood.judge_arrival()
        at.judge_balance()
        at.judge_log()


def never_read(report: Report, scale: Scale) -> None:
    """A flood to a reader that never reads again: said to be stalled, then disconnected, its messages dead letters."""
    with stage(report, stalled_after_s=_STALLED_S, disconnect_after_s=_DISCONNECT_S) as at, Peers() as peers:
        calm = [at.pair.measure(scale.pair_messages)]
        flood = Flood(at.path, peers, report)
        flood.may_vanish, pressed = True, []

        def work(load: Load) -> None:
            load.has_begun.set()
            for word in ("recipient_stalled", "not_found"):
                flood.go_on_until(f"delivery_failed {word}")
            flood.settle()
            peers.turn_until(lambda: flood.letters >= flood.queued, "a dead letter for everything that was queued")

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        _tell(report, flood)
        letters = sum(sender.heard["dead_letter"] for sender in flood.senders)
        report.say(f"queued {len(flood.queued)}, dead letters {letters}")
        report.expect(flood.letters == flood.queued, f"queued {flood.queued}, dead {flood.letters}")
        report.expect(letters == len(flood.letters), f"{letters} notices of {len(flood.letters)} dead letters")
        at.judge_pair(calm, pressed[0], "stalled")
        at.judge_balance()
        at.judge_log()


def _tell(report: Report, flood: Flood) -> None:
    report.say(f"{flood.written_bytes / _MB:.0f} MB from {_FLOODERS} senders to a reader that reads nothing")
    for kind in sorted(set().union(*(sender.heard for sender in flood.senders))):
        report.say(f"  told {kind}: {sum(sender.heard[kind] for sender in flood.senders):,}")
