"""Frames that never end: half a frame from many, a byte now and then, half a header.

Owns these clients and what must hold: memory within what half-received frames may take in all, everybody ended in
time and not before, and an honest client's large message served in between.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from intercomd.core.limits import Limits
from libintercom.wire.frames import HEADER_BYTES, MAX_FRAME_BYTES, encode_json, frame
from tests.support import sayings as say
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.stage import Load, Stage, stage
from tests.trials.load.vitals import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

# For slow clients; the ordinary time for a frame is 30 s.
_FRAME_S = 2.0
# What a busy machine may be late.
_LATE_S = 10.0
# wire.md 14.6: the budget for half-received frames holds however many they are, and 2 MB.
_SPARE_BYTES = 2_000_000
_SLOW, _HEADERS = 30, 30
# Between two bytes of a slow client: a frame of more than a hundred bytes would take it three times too long.
_BYTE_S = 0.05
# As a frame, as a message and on its way out it is in memory three times.
_HONEST_TEXT = "x" * 900_000


def hold_halves(report: Report, scale: Scale) -> None:
    """More half frames than fit the budget, an honest large message between them."""
    with stage(report, frame_timeout_s=scale.frame_s, dedupe_per_sender=16) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        calm = [at.pair.measure(scale.pair_messages)]
        holders = _join(at, peers, "holder", scale.half_frames)
        sender, recipient = _join(at, peers, "honest", 2)
        at.vitals.reset_peak()
        before_bytes, pressed = at.vitals.resident_bytes, []
        limit = Limits().partial_bytes
        waves = 1 + len(holders) * MAX_FRAME_BYTES / limit

        def work(load: Load) -> None:
            began_s = time.monotonic()
            for holder in holders:
                holder.say_bytes(MAX_FRAME_BYTES.to_bytes(HEADER_BYTES, "big") + b" " * (MAX_FRAME_BYTES - 1))
            peers.turn()
            sender.say(say.send(recipient.session_id, "large", _HONEST_TEXT))
            load.has_begun.set()
            _await_ends(peers, holders, waves * scale.frame_s + _LATE_S)
            took_s = time.monotonic() - began_s
            report.say(f"{len(holders)} half frames: all ended in {took_s:.1f} s, {waves:.1f} waves")
            report.expect(not sender.has_ended, "an honest sender was ended among half frames")
            peers.turn_until(lambda: recipient.heard["message"], "the honest message", waves * scale.frame_s + _LATE_S)

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        grown_bytes = at.vitals.peak_bytes - before_bytes
        asked_bytes = len(holders) * MAX_FRAME_BYTES
        bar = min(limit, asked_bytes) + 3 * len(_HONEST_TEXT) + _SPARE_BYTES
        report.figure("half frames: growth (peak RSS)", grown_bytes / MIB, "MiB", bar=bar / MIB)
        report.expect(not sender.has_ended, "an honest sender was ended among half frames")
        at.judge_pair(calm, pressed[0], "half frames")
        _leave(peers, (sender, recipient))
        at.judge_settled(descriptors)
        at.judge_balance()
        at.judge_log()


def be_slow(report: Report, scale: Scale) -> None:
    """A byte now and then, or half a header and silence; one that is slow and still in time."""
    with stage(report, frame_timeout_s=_FRAME_S) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        calm = [at.pair.measure(scale.pair_messages)]
        slow, silent = _join(at, peers, "slow", _SLOW), _join(at, peers, "silent", _HEADERS)
        (patient,) = _join(at, peers, "patient", 1)
        pressed = []

        def work(load: Load) -> None:
            load.has_begun.set()
            began_s = time.monotonic()
            for number, peer in enumerate(silent):
                peer.say_bytes(b"\x00" * (1 + number % (HEADER_BYTES - 1)))
            ended_s = _drip(peers, [*slow, *silent], patient, began_s)
            report.say(f"{len(ended_s)} slow clients ended after {min(ended_s):.2f} to {max(ended_s):.2f} s")
            report.expect(min(ended_s) >= _FRAME_S, f"ended before their time: {min(ended_s):.3f} s")

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        report.expect(patient.heard["health_ok"] and not patient.has_ended, "one that was slow and in time was ended")
        at.judge_pair(calm, pressed[0], "slow clients")
        _leave(peers, (patient,))
        at.judge_settled(descriptors)
        at.judge_log()


def _drip(peers: Peers, doomed: list[Peer], patient: Peer, began_s: float) -> list[float]:
    """One byte at a time on each, until the doomed have ended; how long each of them lived."""
    said = {peer: frame(encode_json({"type": "health", "requestId": "x" * 100})) for peer in doomed[:_SLOW]}
    in_time = frame(encode_json({"type": "health", "requestId": ""}))
    # In ten steps, together a quarter of the time that it has.
    step = -(-len(in_time) // 10)
    said_to = dict.fromkeys(said, 0)
    ended_s: dict[Peer, float] = {}
    told = 0
    while len(ended_s) < len(doomed):
        assert time.monotonic() < began_s + _FRAME_S + _LATE_S, f"{len(doomed) - len(ended_s)} slow clients live on"
        for peer, raw in said.items():
            if not peer.has_ended:
                peer.say_bytes(raw[said_to[peer] : said_to[peer] + 1])
                said_to[peer] += 1
        patient.say_bytes(in_time[told : told + step])
        told += step
        _turn_for(peers, _BYTE_S)
        for peer in doomed:
            if peer.has_ended:
                ended_s.setdefault(peer, time.monotonic() - began_s)
    return list(ended_s.values())


def _turn_for(peers: Peers, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left_s := end - time.monotonic()) > 0:
        peers.turn(left_s)


def _join(at: Stage, peers: Peers, name: str, count: int) -> list[Peer]:
    return peers.join(at.path, [say.register(f"{name}{number}", ext=1) for number in range(count)])


def _await_ends(peers: Peers, ending: list[Peer], deadline_s: float) -> None:
    peers.turn_until(lambda: all(peer.has_ended for peer in ending), f"{len(ending)} connections to end", deadline_s)


def _leave(peers: Peers, leaving: Iterable[Peer]) -> None:
    for peer in leaving:
        peers.drop(peer)
