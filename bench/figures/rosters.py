"""What many sessions cost: lists, presence and memory. A peer is left out: it belongs to somebody.

One broker per round takes a crowd of 1,000, then 5,000, then 10,000 idle sessions.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import machine, watching
from bench.brokers import OURS, PEER, running
from bench.generating import generate
from bench.rounds import Bench, Rounds, interleave
from bench.rows import Goal, Row, missing
from bench.sessions import crowd
from bench.spreads import spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.brokers import Broker, Subject

# The session that keeps the broker and the two that measure make up the last number, which is also the broker's limit.
_MEASURING = 3
_SMALL, _MIDDLE, _LARGE = 1_000, 5_000, machine.CROWD - _MEASURING
# Presences in one sample; divided by it, the message behind them weighs nothing.
_BATCH = 2_000
_LISTS_WARM, _PRESENCES_WARM = 3, 1
_MB = 1_000_000

_LIST_SMALL = ("list of 1,000 sessions, streamed, same", Goal(0.5, "ms", 0.3))
_LIST_LARGE = ("list of 10,000 sessions, streamed, same", Goal(8.0, "ms", 3.0))
# "Independent of the number" with room for a processor cache that 10,000 sessions leave colder.
_PRESENCE = ("presence by one of 10,000 sessions, against by one of 3", Goal(1.25, "x"))
_PER_SESSION = ("memory per idle session at 5,000 (RSS)", Goal(5.0, "KB", 3.0))


@dataclass(frozen=True)
class Populated:
    """What one broker showed. Times in nanoseconds, memory in bytes."""

    list_small: float
    list_large: float
    list_bytes: int
    presence_few: float
    presence_many: float
    per_session: float


def measure(bench: Bench) -> list[Row]:
    bench.say(f"a crowd of {_SMALL:,}, {_MIDDLE:,} and {machine.CROWD:,} sessions")
    if machine.descriptors_short():
        rows = (_LIST_SMALL, _LIST_LARGE, _PRESENCE, _PER_SESSION)
        return [missing(figure, goal, machine.descriptors_short()) for figure, goal in rows]
    chosen = [one for one in bench.subjects() if one.name != PEER and (one.name == OURS or not bench.is_quick)]
    rounds = interleave(bench, chosen, lambda subject: _populate(bench, subject))
    for name, found in rounds.found.items():
        bench.note("list of 10,000", "ms", name, spread(found, lambda one: one.list_large / 1e6))
        bench.note("KB/session", "KB", name, spread(found, lambda one: one.per_session / 1000))
    return _rows(rounds)


def _rows(rounds: Rounds[Populated]) -> list[Row]:
    return [
        _row(rounds, *_LIST_SMALL, "ms", lambda one: one.list_small / 1e6),
        _row(rounds, *_LIST_LARGE, "ms", lambda one: one.list_large / 1e6, _size_note(rounds)),
        _row(rounds, *_PRESENCE, "x", lambda one: one.presence_many / one.presence_few, _presence_note(rounds)),
        _row(rounds, *_PER_SESSION, "KB", lambda one: one.per_session / 1000),
    ]


def _row(
    rounds: Rounds[Populated], figure: str, goal: Goal, unit: str, value: Callable[[Populated], float], note: str = ""
) -> Row:
    if OURS not in rounds.found:
        return missing(figure, goal, rounds.why_not(OURS))
    return Row(figure, goal, spread(rounds.found[OURS], value), unit, note)


def _size_note(rounds: Rounds[Populated]) -> str:
    return f"{rounds.found[OURS][0].list_bytes / _MB:.1f} MB of rows" if OURS in rounds.found else ""


def _presence_note(rounds: Rounds[Populated]) -> str:
    if OURS not in rounds.found:
        return ""
    few, many = (
        spread(rounds.found[OURS], lambda one: one.presence_few / 1000),
        spread(rounds.found[OURS], lambda one: one.presence_many / 1000),
    )
    return f"{many.text('µs')} against {few.text('µs')}"


def _populate(bench: Bench, subject: Subject) -> Populated:
    with contextlib.ExitStack() as after, running(subject, bench.same.broker) as broker:
        few = _presence(bench, broker)
        before = watching.resident_bytes(broker.pid)
        standing = after.enter_context(crowd(broker.path))
        standing.grow(_SMALL)
        list_small, _bytes = _list(bench, broker, bench.choose(200, 50))
        standing.grow(_MIDDLE)
        per_session = (watching.resident_bytes(broker.pid) - before) / _MIDDLE
        standing.grow(_LARGE)
        list_large, list_bytes = _list(bench, broker, bench.choose(40, 10))
        return Populated(list_small, list_large, list_bytes, few, _presence(bench, broker), per_session)


def _list(bench: Bench, broker: Broker, count: int) -> tuple[float, int]:
    """The median of a list's time in nanoseconds, and its size in bytes."""
    run = generate(bench.programs, broker, bench.same, "list", count=count, warm=_LISTS_WARM)
    return run.at_us(0.5) * 1000, run.messages


def _presence(bench: Bench, broker: Broker) -> float:
    """The median time of one presence in nanoseconds."""
    options = {"count": bench.choose(9, 3), "warm": _PRESENCES_WARM, "batch": _BATCH}
    return generate(bench.programs, broker, bench.same, "presence", **options).at_us(0.5) * 1000 / _BATCH
