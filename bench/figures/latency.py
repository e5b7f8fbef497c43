"""How long one message takes: acknowledgement, ask and reply, with and without a history.

Placement same: on small virtual machines waking another processor costs more than the broker itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.brokers import ECHO, OURS, C, ours, running
from bench.generating import Run, generate
from bench.rounds import Bench, Rounds, interleave
from bench.rows import Goal, Row, missing
from bench.spreads import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.brokers import Subject

# Bytes of text in every message of a latency or throughput run.
TEXT_BYTES = 512
# Messages before the clock runs: connections, caches and the interpreter's own optimiser settle.
_WARM = 1_000
# The two ages of a history, in messages, and how many are then measured.
_YOUNG, _OLD, _MEASURED = 2_500, 25_000, 2_000


def measure(bench: Bench) -> list[Row]:
    rows = [*_ack(bench), _ask(bench)]
    return [*rows, _history(bench)]


def _ack(bench: Bench) -> list[Row]:
    bench.say("ack, placement same")
    rounds = interleave(bench, bench.subjects(), _timed(bench, "ack"))
    _note(bench, rounds, "ack p50", 0.5)
    _note(bench, rounds, "ack p99", 0.99)
    rows = [
        _ratio(rounds, "ack p50, same", C, Goal(2.5, "x C", 2.0)),
        _ratio(rounds, "ack p50, same", ECHO, Goal(0.9, "x echo")),
    ]
    goal = Goal(3.0, "x its own p50")
    if OURS not in rounds.found:
        return [*rows, missing("ack p99, same", goal, rounds.why_not(OURS))]
    tails = spread(rounds.found[OURS], lambda run: run.at_us(0.99))
    found = tails.over(spread(rounds.found[OURS], lambda run: run.at_us(0.5)))
    return [*rows, Row("ack p99, same", goal, found, "x", f"p99 {tails.text('µs')}")]


def _ask(bench: Bench) -> Row:
    bench.say("ask and reply, placement same")
    rounds = interleave(bench, bench.subjects(), _timed(bench, "ask"))
    _note(bench, rounds, "ask -> reply p50", 0.5)
    return _ratio(rounds, "ask -> reply p50, same", C, Goal(2.7, "x C", 2.2))


def _timed(bench: Bench, what: str) -> Callable[[Subject], Run]:
    def once(subject: Subject) -> Run:
        with running(subject, bench.same.broker) as broker:
            count = bench.choose(10_000, 2_000)
            return generate(bench.programs, broker, bench.same, what, count=count, warm=_WARM, text=TEXT_BYTES)

    return once


def _note(bench: Bench, rounds: Rounds[Run], column: str, share: float) -> None:
    for name, runs in rounds.found.items():
        bench.note(column, "µs", name, spread(runs, lambda run: run.at_us(share)))


def _ratio(rounds: Rounds[Run], figure: str, floor: str, goal: Goal) -> Row:
    """Our median against a floor's, round by round."""
    figure = f"{figure}, against {floor}"
    if rounds.why_not(OURS, floor):
        return missing(figure, goal, rounds.why_not(OURS, floor))
    mine, yours = (spread(rounds.found[name], lambda run: run.at_us(0.5)) for name in (OURS, floor))
    note = f"{mine.text('µs')} against {yours.text('µs')}"
    return Row(figure, goal, mine.over(yours), "x", note)


def _history(bench: Bench) -> Row:
    bench.say("ack after a history")
    figure, goal = f"ack p50 after {_OLD:,} messages of history, against after {_YOUNG:,}", Goal(1.1, "x")
    rounds = interleave(bench, [ours("--limits", "bench")], lambda subject: _aged(bench, subject))
    if OURS not in rounds.found:
        return missing(figure, goal, rounds.why_not(OURS))
    young = spread(rounds.found[OURS], lambda pair: pair[0])
    old = spread(rounds.found[OURS], lambda pair: pair[1])
    note = f"{old.text('µs')} against {young.text('µs')}, one broker and one pair throughout"
    return Row(figure, goal, old.over(young), "x", note)


def _aged(bench: Bench, subject: Subject) -> tuple[float, float]:
    """The median after a short and after a long history of the same pair, in microseconds."""
    total = _OLD + _MEASURED - _YOUNG
    with running(subject, bench.same.broker) as broker:
        run = generate(bench.programs, broker, bench.same, "ack", count=total, warm=_YOUNG, text=TEXT_BYTES)
    ends = (Spread(tuple(part)) for part in (run.samples[:_MEASURED], run.samples[-_MEASURED:]))
    young, old = (part.median / 1000 for part in ends)
    return young, old
