"""What a broker costs that has nothing to do: memory, processor time, wake-ups."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import watching
from bench.brokers import ECHO, OURS, C, ours, running
from bench.rows import Goal, Row
from bench.sessions import Session
from bench.spreads import Spread, spread

if TYPE_CHECKING:
    from bench.brokers import Broker
    from bench.rounds import Bench

# What a broker loads after its start must be over before it counts as idle.
_SETTLE_S = 3.0
_MINUTE_S = 60


@dataclass(frozen=True)
class Idle:
    """One broker's idleness. ``busy_percent`` of one processor."""

    resident_bytes: int
    busy_percent: float
    wakeups_per_minute: float


def measure(bench: Bench) -> list[Row]:
    """Several brokers at once, each with two sessions that say nothing: one waiting for all."""
    seconds = bench.choose(_MINUTE_S, 10)
    bench.say(f"idle for {seconds} s, {bench.rounds} brokers at once")
    chosen = [one for one in bench.subjects() if one.name in (C, ECHO)]
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(running(ours())) for _round in range(bench.rounds)]
        brokers += [stack.enter_context(running(subject)) for subject in chosen]
        for broker in brokers:
            stack.enter_context(contextlib.closing(Session(broker.path, "bench-idle")))
        bench.limits["intercomd serve"] = brokers[0].limits
        found = _watch(brokers, seconds)
    for broker, idle in zip(brokers, found, strict=True):
        bench.note("idle RSS", "MB", broker.name, Spread((idle.resident_bytes / 1e6,)))
    mine = found[: bench.rounds]
    memory = spread(mine, lambda idle: idle.resident_bytes / 1e6)
    busy = spread(mine, lambda idle: idle.busy_percent)
    woken = spread(mine, lambda idle: idle.wakeups_per_minute)
    bench.note("idle RSS", "MB", OURS, memory)
    return [
        Row("memory of an idle broker (RSS)", Goal(40.0, "MB", 30.0), memory, "MB"),
        # Less than a tenth of a percent is what "0 %" can mean for a program that may wake twice a minute.
        Row(f"idle processor time over {seconds} s", Goal(0.1, "%"), busy, "%"),
        Row(f"wake-ups in {seconds} s", Goal(2.0, "a minute"), woken, "a minute", _extrapolated(seconds)),
    ]


def _extrapolated(seconds: int) -> str:
    return "" if seconds >= _MINUTE_S else f"extrapolated: the check of each minute counts {_MINUTE_S // seconds} times"


def _watch(brokers: list[Broker], seconds: int) -> list[Idle]:
    time.sleep(_SETTLE_S)
    before = [(watching.cpu_ns(one.pid), watching.wakeups(one.pid)) for one in brokers]
    time.sleep(seconds)
    return [
        Idle(
            watching.resident_bytes(one.pid),
            (watching.cpu_ns(one.pid) - cpu) / seconds / 1e7,
            (watching.wakeups(one.pid) - woken) * _MINUTE_S / seconds,
        )
        for one, (cpu, woken) in zip(brokers, before, strict=True)
    ]
