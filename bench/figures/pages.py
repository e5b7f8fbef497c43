"""A page of another session's last response, against an acknowledgement.

Once with sessions of the library at both ends of both: a page is also cut, written, read and checked by them. Once by
the generator, whose frames are built beforehand: what the broker alone needs. Each against its own acknowledgement.
Broker, reader and owner share one processor (placement same).
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import actors, machine
from bench.brokers import ours, running
from bench.figures.latency import TEXT_BYTES
from bench.generating import Failed, generate
from bench.rows import Goal, Row, missing
from bench.spreads import spread
from libintercom.errors import IntercomError
from libintercom.paths import find_places
from libintercom.profile import Profile
from libintercom.session.aio import AsyncSession
from libintercom.wire.reads import MAX_PAGE_UNITS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench.brokers import Broker
    from bench.rounds import Bench

_WHAT = f"last: a page of {MAX_PAGE_UNITS:,} units, against an ack, same"
_FIGURES = (f"{_WHAT}, library sessions", f"{_WHAT}, raw sockets")
_GOAL = Goal(5.0, "x ack")
_OWNER, _RECEIVER, _READER = "bench-owner", "bench-receiver", "bench-reader"
# The page is one of several.
_RESPONSE_UNITS = 3 * MAX_PAGE_UNITS
# Pairs of a message and a page before the clock runs.
_WARM = 100
_TEXT = "x" * TEXT_BYTES


@dataclass(frozen=True)
class _Found:
    """One round, at one broker: median microseconds of an acknowledgement and of a page."""

    ack_us: float
    page_us: float


def measure(bench: Bench) -> list[Row]:
    bench.say("pages of a last response, placement same")
    try:
        found = [_round(bench, turn) for turn in range(bench.rounds)]
    except (Failed, IntercomError, OSError) as failure:
        return [missing(figure, _GOAL, str(failure)) for figure in _FIGURES]
    return [_row(figure, list(ones)) for figure, ones in zip(_FIGURES, zip(*found, strict=True), strict=True)]


def _row(figure: str, found: list[_Found]) -> Row:
    ack, page = spread(found, lambda one: one.ack_us), spread(found, lambda one: one.page_us)
    return Row(figure, _GOAL, page.over(ack), "x", f"{page.text('µs')} against {ack.text('µs')}")


def _round(bench: Bench, turn: int) -> tuple[_Found, _Found]:
    """Between the library's sessions, and between raw sockets."""
    bench.say(f"  round {turn + 1} of {bench.rounds}")
    with running(ours("--limits", "bench"), bench.same.broker) as broker:
        raw = [_generate(bench, broker, what, text) for what, text in (("ack", TEXT_BYTES), ("last", MAX_PAGE_UNITS))]
        around = actors.environment(broker.folder, broker.folder)
        with (
            machine.pinned(bench.same.generator),
            actors.playing("page_owner.py", [_OWNER, _RECEIVER, str(_RESPONSE_UNITS)], around),
        ):
            return asyncio.run(_in_turns(broker, bench.choose(2_000, 300))), _Found(*raw)


def _generate(bench: Bench, broker: Broker, what: str, text: int) -> float:
    count = bench.choose(10_000, 2_000)
    return generate(bench.programs, broker, bench.same, what, count=count, warm=_WARM, text=text).at_us(0.5)


async def _in_turns(broker: Broker, count: int) -> _Found:
    acks, pages = [], []
    places = find_places(actors.environment(broker.folder, broker.folder))
    profile = Profile(cwd="/", model="bench", name=_READER)
    joining = AsyncSession.join(profile, native_id=_READER, spawn=False, journal=False, places=places)
    async with await joining as reader:
        for _turn in range(_WARM + count):
            acks.append(await _time_us(lambda: _send(reader)))
            pages.append(await _time_us(lambda: _read(reader)))
    return _Found(statistics.median(acks[_WARM:]), statistics.median(pages[_WARM:]))


async def _time_us(once: Callable[[], Awaitable[None]]) -> float:
    began_s = time.perf_counter()
    await once()
    return 1e6 * (time.perf_counter() - began_s)


async def _send(reader: AsyncSession) -> None:
    outcome = await reader.send(_RECEIVER, _TEXT)
    if not outcome.is_accepted:
        raise Failed(f"a message was not taken: {outcome.reason}")


async def _read(reader: AsyncSession) -> None:
    page = await reader.last(_OWNER)
    if len(page.text) != MAX_PAGE_UNITS:
        raise Failed(f"a page had {len(page.text):,} units")
