"""How much passes: pipelined messages of eight pairs, and frames of nearly 1 MiB one way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.brokers import ECHO, OURS, running
from bench.figures.latency import TEXT_BYTES
from bench.generating import generate
from bench.rounds import Bench, Rounds, interleave
from bench.rows import Goal, Row, missing
from bench.spreads import spread

if TYPE_CHECKING:
    from bench.brokers import Subject
    from bench.generating import Run

PAIRS = 8
# Messages that each sender has on the way: enough that nobody waits, few enough that sockets do not fill.
WINDOW = 128
# Unmeasured time before the count begins.
_WARM_MS = 200
# The largest text that still fits one frame of 1 MiB with the sender's row around it.
BULK_BYTES = 1024 * 1024 - 2048
_BULK_WARM = 5


def measure(bench: Bench) -> list[Row]:
    bench.say(f"throughput, placement split, {PAIRS} senders to {PAIRS} receivers, {WINDOW} on the way each")
    rounds = interleave(bench, bench.subjects(), lambda subject: _flow(bench, subject))
    for name, runs in rounds.found.items():
        bench.note("messages/s", "/s", name, spread(runs, lambda run: run.rate_per_s))
        bench.note("CPU/message", "µs", name, spread(runs, lambda run: run.broker_us_per_message))
        bench.note("generator's share", "%", name, spread(runs, lambda run: run.generator_share))
    return [*_flow_rows(rounds), _bulk_row(bench)]


def _flow(bench: Bench, subject: Subject) -> Run:
    with running(subject, bench.split.broker) as broker:
        shape = {"pairs": PAIRS, "window": WINDOW, "text": TEXT_BYTES}
        return generate(
            bench.programs, broker, bench.split, "flow", ms=bench.choose(1_500, 500), warm=_WARM_MS, **shape
        )


def _flow_rows(rounds: Rounds[Run]) -> list[Row]:
    rate, cost = Goal(2.5, "x echo", 5.0, is_floor=True), Goal(6.0, "µs CPU", 3.0)
    figure = f"throughput, split, {PAIRS} to {PAIRS} pipelined"
    if rounds.why_not(OURS, ECHO):
        reason = rounds.why_not(OURS, ECHO)
        return [missing(figure, rate, reason), missing(f"{figure}: broker's CPU per message", cost, reason)]
    mine, yours = (spread(rounds.found[name], lambda run: run.rate_per_s) for name in (OURS, ECHO))
    used = spread(rounds.found[OURS], lambda run: run.broker_us_per_message)
    share = spread(rounds.found[OURS], lambda run: run.generator_share)
    note = f"{mine.text('/s')} against {yours.text('/s')}; generator busy {share.text('%')}"
    return [
        Row(figure, rate, mine.over(yours), "x", note),
        Row(f"{figure}: broker's CPU per message", cost, used, "µs"),
    ]


def _bulk_row(bench: Bench) -> Row:
    bench.say("frames of 1 MiB one way, placement same")
    figure, goal = "1 MiB frame one way, same", Goal(3.0, "x echo")
    rounds = interleave(bench, bench.subjects(), lambda subject: _bulk(bench, subject))
    for name, runs in rounds.found.items():
        bench.note("1 MiB one way", "ms", name, spread(runs, lambda run: run.at_us(0.5) / 1000))
    if rounds.why_not(OURS, ECHO):
        return missing(figure, goal, rounds.why_not(OURS, ECHO))
    mine, yours = (spread(rounds.found[name], lambda run: run.at_us(0.5) / 1000) for name in (OURS, ECHO))
    return Row(figure, goal, mine.over(yours), "x", f"{mine.text('ms')} against {yours.text('ms')}")


def _bulk(bench: Bench, subject: Subject) -> Run:
    with running(subject, bench.same.broker) as broker:
        count = bench.choose(60, 20)
        return generate(bench.programs, broker, bench.same, "bulk", count=count, warm=_BULK_WARM, text=BULK_BYTES)
