"""What others feel while somebody misbehaves: a stopped reader in a flood, and hostile frames. Default limits.

Placement split; the load shares the generator's processor at the lowest priority, so the pair never waits for it. The
pair's messages go through 64 pairs in turns, so that no budget of a pair or a session is what is measured.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import pressing, watching
from bench.brokers import ECHO, OURS, ours, running
from bench.figures.latency import TEXT_BYTES
from bench.generating import generate
from bench.load.hostile import KINDS
from bench.rounds import Bench, Rounds, interleave
from bench.rows import Goal, Row, missing
from bench.spreads import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.brokers import Broker, Subject
    from bench.pressing import Load

_PAIRS = 64
_WARM = 200
# Messages a second of the pair that sends at fixed times.
_RATE = 1_000
_FLOODERS = 4
_FLOOD_MB = 200
# More megabytes or frames than any run takes: such a load ends when the pair was measured.
_ENDLESS = 100_000
# The allowed rate: 16 MiB of input a second and session (the default limit), so as many frames of 1 MiB.
_HOSTILE_RATE = 16
# Each of the seven kinds a few times.
_HOSTILE_FRAMES = 35
# Frames of one kind when only their cost is measured; within the burst that a session may send.
_COST_FRAMES = 6
# One recipient's quota (4 MiB) and what bars.md allows beside it; a hostile session's burst (8 MiB) and the same.
_FLOOD_GROWTH = Goal((4 * 2**20 + 2e6) / 1e6, "MB")
_HOSTILE_GROWTH = Goal((8 * 2**20 + 2e6) / 1e6, "MB")
_TWICE = Goal(2.0, "x its unloaded p99")


@dataclass(frozen=True)
class Tails:
    """The pair's p99 in microseconds: sending one after the other, and sending at fixed times."""

    closed: float
    paced: float


@dataclass(frozen=True)
class Pressed:
    """What one round showed. ``growth``: the peak of the load alone, in bytes; ``report``: what it said."""

    calm: Tails
    pressed: Tails
    growth: int
    report: str


def measure(bench: Bench) -> list[Row]:
    return [*_flood_rows(bench), *_hostile_rows(bench)]


@dataclass(frozen=True)
class _Kind:
    """A load: its program, the words before and behind how much of it there shall be, how much is enough alone."""

    name: str
    words: tuple[int, ...]
    enough: int
    cpu: int

    def start(self, broker: Broker, amount: int) -> Load:
        return pressing.start(self.name, broker.path, *self.words, amount, cpu=self.cpu)


def _flood_rows(bench: Bench) -> list[Row]:
    bench.say(f"a stopped reader in a flood of {_FLOOD_MB} MB")
    load = _Kind("flood", (_FLOODERS,), _FLOOD_MB, bench.split.generator)
    rounds = interleave(bench, [ours()], functools.partial(_press, bench, load))
    bench.note("growth in a 200 MB flood", "MB", ECHO, _naive_growth(bench))
    if OURS in rounds.found:
        growth = spread(rounds.found[OURS], lambda one: one.growth / 1e6)
        bench.note("growth in a 200 MB flood", "MB", OURS, growth)
    return _rows(rounds, f"stopped reader in a {_FLOOD_MB} MB flood", _FLOOD_GROWTH)


def _naive_growth(bench: Bench) -> Spread:
    """What a broker without quotas grows by; once, since it takes as much memory as it is given."""
    subject = next(one for one in bench.subjects() if one.name == ECHO)
    with running(subject, bench.split.broker) as broker:
        before = watching.resident_bytes(broker.pid)
        pressing.start("flood", broker.path, _FLOODERS, _FLOOD_MB, cpu=bench.split.generator).wait()
        return Spread(((watching.peak_bytes(broker.pid) - before) / 1e6,))


def _hostile_rows(bench: Bench) -> list[Row]:
    bench.say(f"hostile frames of 1 MiB, {_HOSTILE_RATE} a second")
    load = _Kind("hostile", (_HOSTILE_RATE,), _HOSTILE_FRAMES, bench.split.generator)
    rounds = interleave(bench, [ours()], functools.partial(_press, bench, load))
    rows = _rows(rounds, f"hostile 1 MiB frames, {_HOSTILE_RATE} a second", _HOSTILE_GROWTH)
    return [*rows, *_cost_rows(bench)]


def _cost_rows(bench: Bench) -> list[Row]:
    """What one frame of each kind costs the broker: no goal of its own, it explains the tails."""
    bench.say("hostile frames, cost of each kind")
    rows = []
    for kind in KINDS:
        rounds = interleave(bench, [ours()], functools.partial(_cost_ms, bench, kind))
        figure = f"broker's CPU per hostile frame: {kind}"
        found = Spread(tuple(rounds.found[OURS])) if OURS in rounds.found else None
        rows.append(Row(figure, None, found, "ms") if found else missing(figure, None, rounds.why_not(OURS)))
    return rows


def _cost_ms(bench: Bench, kind: str, subject: Subject) -> float:
    with running(subject, bench.split.broker) as broker:
        used = watching.cpu_ns(broker.pid)
        pressing.start("hostile", broker.path, 0, _COST_FRAMES, kind, cpu=bench.split.generator).wait()
        return (watching.cpu_ns(broker.pid) - used) / _COST_FRAMES / 1e6


def _press(bench: Bench, load: _Kind, subject: Subject) -> Pressed:
    """The load alone, for the growth; then the pair without and with it."""
    with running(subject, bench.split.broker) as broker:
        watching.reset_peak(broker.pid)
        before = watching.resident_bytes(broker.pid)
        alone = load.start(broker, load.enough)
        alone.wait()
        growth = watching.peak_bytes(broker.pid) - before
        calm = _tails(bench, broker)
        beside = load.start(broker, _ENDLESS)
        try:
            pressed = _tails(bench, broker)
        finally:
            beside.finish()
        return Pressed(calm, pressed, growth, alone.text())


def _tails(bench: Bench, broker: Broker) -> Tails:
    options = {"pairs": _PAIRS, "warm": _WARM, "text": TEXT_BYTES}
    count = bench.choose(20_000, 10_000)
    closed = generate(bench.programs, broker, bench.split, "ack", count=count, **options)
    count = bench.choose(3_000, 2_000)
    paced = generate(bench.programs, broker, bench.split, "pace", count=count, rate=_RATE, **options)
    return Tails(closed.at_us(0.99), paced.at_us(0.99))


def _rows(rounds: Rounds[Pressed], what: str, growth: Goal) -> list[Row]:
    names = (
        f"{what}: growth (peak RSS)",
        f"{what}: p99 of a pair that sends when it is answered",
        f"{what}: p99 of pairs that send {_RATE:,} a second, answered or not",
    )
    goals = (growth, _TWICE, _TWICE)
    if OURS not in rounds.found:
        return [missing(name, goal, rounds.why_not(OURS)) for name, goal in zip(names, goals, strict=True)]
    found = rounds.found[OURS]
    grown = Row(names[0], growth, spread(found, lambda one: one.growth / 1e6), "MB", f"last round {found[-1].report}")
    return [
        grown,
        _tail_row(names[1], found, lambda tails: tails.closed),
        _tail_row(names[2], found, lambda tails: tails.paced),
    ]


def _tail_row(figure: str, found: list[Pressed], value: Callable[[Tails], float]) -> Row:
    calm, pressed = spread(found, lambda one: value(one.calm)), spread(found, lambda one: value(one.pressed))
    return Row(figure, _TWICE, pressed.over(calm), "x", f"{pressed.text('µs')} against {calm.text('µs')}")
