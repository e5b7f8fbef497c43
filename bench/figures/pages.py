"""A page of another session's last response, against an acknowledgement.

Both ends are sessions of the library, for both figures: a page is also made, written, read and checked by them. Broker,
reader and owner share one processor (placement same).
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING

from bench import actors, machine
from bench.brokers import ours, running
from bench.figures.latency import TEXT_BYTES
from bench.generating import Failed
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

_FIGURE = f"last: a page of {MAX_PAGE_UNITS:,} units, against an ack, same"
_GOAL = Goal(5.0, "x ack")
_OWNER, _RECEIVER, _READER = "bench-owner", "bench-receiver", "bench-reader"
# The page is one of several.
_RESPONSE_UNITS = 3 * MAX_PAGE_UNITS
# Pairs of a message and a page before the clock runs.
_WARM = 100
_TEXT = "x" * TEXT_BYTES


def measure(bench: Bench) -> list[Row]:
    bench.say("pages of a last response, placement same, library clients on both sides")
    try:
        found = [_round(bench, turn) for turn in range(bench.rounds)]
    except (Failed, IntercomError, OSError) as failure:
        return [missing(_FIGURE, _GOAL, str(failure))]
    ack, page = spread(found, lambda one: one[0]), spread(found, lambda one: one[1])
    note = f"{page.text('µs')} against {ack.text('µs')}, library sessions on both sides of both"
    return [Row(_FIGURE, _GOAL, page.over(ack), "x", note)]


def _round(bench: Bench, turn: int) -> tuple[float, float]:
    """The median microseconds of an acknowledgement and of a page, at a fresh broker."""
    bench.say(f"  round {turn + 1} of {bench.rounds}")
    with running(ours("--limits", "bench"), bench.same.broker) as broker, machine.pinned(bench.same.generator):
        around = actors.environment(broker.folder, broker.folder)
        with actors.playing("page_owner.py", [_OWNER, _RECEIVER, str(_RESPONSE_UNITS)], around):
            return asyncio.run(_in_turns(broker, bench.choose(2_000, 300)))


async def _in_turns(broker: Broker, count: int) -> tuple[float, float]:
    acks, pages = [], []
    places = find_places(actors.environment(broker.folder, broker.folder))
    profile = Profile(cwd="/", model="bench", name=_READER)
    joining = AsyncSession.join(profile, native_id=_READER, spawn=False, journal=False, places=places)
    async with await joining as reader:
        for _turn in range(_WARM + count):
            acks.append(await _time_us(lambda: _send(reader)))
            pages.append(await _time_us(lambda: _read(reader)))
    return statistics.median(acks[_WARM:]), statistics.median(pages[_WARM:])


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
