"""The loop's clock and the wall clock."""

from __future__ import annotations

import asyncio
import time

from intercomd.edges.clock import LoopClock, wall_ms


def test_it_is_the_loops_time_and_its_timers() -> None:
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop)
        called: list[str] = []
        done = loop.create_future()
        assert abs(clock.now() - loop.time()) < 1.0
        clock.call_at(clock.now() - 1, lambda: called.append("cancelled")).cancel()
        clock.call_at(clock.now(), lambda: called.append("timer"))
        clock.call_soon(lambda: called.append("soon"))
        clock.call_at(clock.now() + 0.01, lambda: done.set_result(None))
        await done
        return called

    assert sorted(asyncio.run(run())) == ["soon", "timer"]


def test_soon_is_behind_a_whole_round_of_the_loop() -> None:
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        called: list[str] = []
        done = loop.create_future()
        LoopClock(loop).call_soon(lambda: done.set_result(called.append("soon")))  # type: ignore[func-returns-value]
        loop.call_soon(lambda: called.append("this round"))
        await done
        return called

    assert asyncio.run(run()) == ["this round", "soon"]


def test_wall_time_is_unix_milliseconds() -> None:
    assert abs(wall_ms() - time.time() * 1000) < 10_000
    assert isinstance(wall_ms(), int)
