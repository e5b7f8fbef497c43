"""Connections that never register, more than fit, and no descriptors left: who is inside is not harmed.

Owns these clients and what must hold: accepting pauses, nobody is closed for queueing, honest ones behind them are
served in the end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from intercomd.core.limits import Limits
from tests.support import sayings as say
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.stage import Load, Stage, stage

if TYPE_CHECKING:
    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

# The ordinary time to register is 5 s.
_REGISTER_S = 0.5
# What a busy machine may be late.
_LATE_S = 10.0
_HONEST = 20
# Accepted in one turn of the loop before the core hears of it.
_ACCEPTS_PER_TURN = 16
# Descriptors in the second trial: enough for the broker, the others and some.
_DESCRIPTORS = 160
_GUESTS = 150
# Processor time in a second of waiting for descriptors: it looks again once a second and must not turn in circles.
_BUSY_SHARE = 0.2


def crowd_the_door(report: Report, scale: Scale) -> None:
    """Silent strangers, honest ones behind them."""
    with stage(report, register_timeout_s=_REGISTER_S) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        calm, pressed = [at.pair.measure(scale.pair_messages)], []
        most_inside = 0

        def work(load: Load) -> None:
            nonlocal most_inside
            began_s = time.monotonic()
            strangers = [peers.connect(at.path) for _ in range(scale.strangers)]
            honest = [peers.connect(at.path, say.register(f"honest{number}")) for number in range(_HONEST)]
            load.has_begun.set()
            waves = 1 + len(strangers) / Limits().max_unregistered
            deadline_s = waves * _REGISTER_S + _LATE_S
            lives: dict[Peer, float] = {}
            while not all(peer.session_id for peer in honest) or len(lives) < len(strangers):
                assert time.monotonic() < began_s + deadline_s, f"the door stays crowded: {len(lives)} ended"
                peers.turn()
                gauges = at.observe()["gauges"]
                # The observer is a connection without a session too.
                most_inside = max(most_inside, gauges["connections"] - gauges["sessions"] - 1)
                for peer in strangers:
                    if peer.has_ended:
                        lives.setdefault(peer, time.monotonic() - began_s)
            report.say(f"{len(strangers)} strangers ended within {max(lives.values()):.1f} s, {waves:.1f} waves")
            shortest_s = min(lives.values())
            report.expect(shortest_s >= _REGISTER_S, f"a stranger was closed after {shortest_s:.2f} s")
            _judge_honest(report, honest)

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        bar = Limits().max_unregistered + _ACCEPTS_PER_TURN
        report.figure("strangers inside at once", most_inside, "connections", bar=bar)
        at.judge_pair(calm, pressed[0], "strangers")
        _leave_all(at, peers, descriptors)


def run_out(report: Report, scale: Scale) -> None:
    """More guests than descriptors: those inside go on, the others come in as they leave."""
    lowered = ("sh", "-c", f'ulimit -n {_DESCRIPTORS}; exec "$@"', "sh")
    with stage(report, prefix=lowered) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        calm, pressed = [at.pair.measure(scale.pair_messages)], []

        def work(load: Load) -> None:
            guests = [peers.connect(at.path, say.register(f"guest{number}")) for number in range(_GUESTS)]
            peers.turn_until(lambda: _paused_for_descriptors(at), "accepting to pause for want of descriptors")
            used_s, began_s = at.vitals.processor_s, time.monotonic()
            while time.monotonic() < began_s + 1:
                peers.turn()
            inside = sum(bool(guest.session_id) for guest in guests)
            share = (at.vitals.processor_s - used_s) / (time.monotonic() - began_s)
            report.figure("out of descriptors: processor", share, "of one", bar=_BUSY_SHARE, margin=2.0)
            load.has_begun.set()
            _judge_honest(report, guests, is_all=False)
            served = 0
            while not all(guest.session_id for guest in guests):
                guest = next(guest for guest in guests if guest.session_id and guest.fd in peers)
                peers.drop(guest)
                served += 1
                goal = min(_GUESTS, inside + served)
                peers.turn_until(
                    lambda goal=goal: sum(bool(guest.session_id) for guest in guests) >= goal,
                    "the next guest to be let in",
                )
            report.say(f"{_GUESTS} guests for {_DESCRIPTORS} descriptors: {inside} at once, the others as they left")

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        at.judge_pair(calm, pressed[0], "out of descriptors")
        _leave_all(at, peers, descriptors)


def _paused_for_descriptors(at: Stage) -> bool:
    return any(record.get("reason") == "descriptors" for record in at.daemon.log_records())


def _judge_honest(report: Report, honest: list[Peer], *, is_all: bool = True) -> None:
    ended = sum(peer.has_ended for peer in honest)
    report.expect(not ended, f"{ended} honest clients were closed while they waited")
    if is_all:
        report.expect(all(peer.session_id for peer in honest), "an honest client was not let in")


def _leave_all(at: Stage, peers: Peers, descriptors: int) -> None:
    for peer in peers:
        peers.drop(peer)
    at.judge_settled(descriptors)
    at.judge_balance()
    at.judge_log()
