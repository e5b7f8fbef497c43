"""Iterating over messages: placed before given, consumed by asking on, and nothing lost to an interruption."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session.errors import JournalStopped
from libintercom.session.feed import Feed
from libintercom.session.happenings import TurnEnded, TurnStarted
from libintercom.session.host import QueueHost
from tests.support.arrivals import host_input
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Desk:
    """A feed, its queue, and what was told and recorded; ``record`` may be replaced."""

    def __init__(self) -> None:
        self.host, self.told, self.recorded = QueueHost(), list[Any](), list[str]()
        self.feed = Feed(self.host, self.told.append, self.place)
        self.record: Callable[[str], Awaitable[bool]] = self.record_at_once

    async def place(self, message_id: str) -> bool:
        return await self.record(message_id)

    async def record_at_once(self, message_id: str) -> bool:
        self.recorded.append(message_id)
        return True

    def offer(self, *message_ids: str) -> None:
        self.host.place([host_input(one) for one in message_ids])

    async def take(self, timeout_s: float | None = 5.0) -> str:
        arrival = await self.feed.take(timeout_s)
        if arrival is None:
            return ""
        self.feed.note_received(arrival.message.id)
        return arrival.message.id

    def ends(self) -> list[tuple[str, ...]]:
        return [one.consumed_ids for one in self.told if isinstance(one, TurnEnded)]


def run(story: Callable[[Desk], Awaitable[None]]) -> Desk:
    async def told() -> Desk:
        desk = Desk()
        await asyncio.wait_for(story(desk), 10)
        return desk

    return asyncio.run(told())


def test_each_is_placed_then_given_then_consumed_by_asking_on() -> None:
    async def story(desk: Desk) -> None:
        desk.offer("m1", "m2")
        assert await desk.take() == "m1"
        assert (desk.recorded, desk.ends()) == (["m1"], [])
        assert await desk.take() == "m2"
        assert desk.ends() == [("m1",)]
        assert await desk.take(0.0) == ""
        assert desk.ends() == [("m1",), ("m2",)]

    desk = run(story)
    assert [type(one) for one in desk.told] == [TurnStarted, TurnEnded] * 2


def test_a_reader_waits_for_what_comes() -> None:
    async def story(desk: Desk) -> None:
        reading = asyncio.ensure_future(desk.take())
        # It waits by now, whatever the loop does first.
        asyncio.get_running_loop().call_soon(desk.offer, "m1")
        assert await reading == "m1"

    run(story)


def test_an_interrupted_reader_gets_the_same_again() -> None:
    async def story(desk: Desk) -> None:
        going = asyncio.Event()

        async def slowly(message_id: str) -> bool:
            await going.wait()
            return await desk.record_at_once(message_id)

        desk.record = slowly
        desk.offer("m1")
        reading = asyncio.ensure_future(desk.feed.take())
        await wait_until_async(lambda: desk.told, "the turn")
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        going.set()
        # Given, and its reader never got it.
        assert (await desk.feed.take()).message.id == "m1"  # type: ignore[union-attr]
        assert await desk.take() == "m1"
        assert desk.recorded == ["m1"]
        assert await desk.take(0.0) == ""

    assert run(story).ends() == [("m1",)]


def test_what_cannot_be_recorded_is_not_given_and_stays_first() -> None:
    async def story(desk: Desk) -> None:
        async def fail(message_id: str) -> bool:
            raise JournalStopped(message_id, "the disk is full.")

        desk.record = fail
        desk.offer("m1", "m2")
        for _ in range(2):
            with pytest.raises(JournalStopped, match="message m1 waits: the disk is full"):
                await desk.take()
        desk.record = desk.record_at_once
        assert await desk.take() == "m1"

    assert run(story).ends() == [(), ()]


def test_what_is_not_this_sessions_any_more_is_skipped() -> None:
    async def story(desk: Desk) -> None:
        async def judge(message_id: str) -> bool:
            return message_id != "m1"

        desk.record = judge
        desk.offer("m1", "m2")
        assert await desk.take() == "m2"

    run(story)


def test_an_explicit_word_consumes_what_is_given_and_nothing_else() -> None:
    async def story(desk: Desk) -> None:
        desk.offer("m1")
        await desk.take()
        desk.feed.finish(("another",))
        assert desk.ends() == []
        desk.feed.finish(("m1", "another"))
        assert desk.ends() == [("m1",)]
        assert await desk.take(0.0) == ""

    assert run(story).ends() == [("m1",)]


def test_closing_ends_readers() -> None:
    async def story(desk: Desk) -> None:
        reading = asyncio.ensure_future(desk.take(None))
        asyncio.get_running_loop().call_soon(desk.feed.close)
        assert await reading == ""
        desk.offer("m1")
        assert await desk.take() == ""

    run(story)


def test_closing_with_a_failure_tells_readers() -> None:
    async def story(desk: Desk) -> None:
        desk.feed.close(ValueError("a bug"))
        with pytest.raises(ValueError, match="a bug"):
            await desk.take()

    run(story)


def test_stopping_waits_for_the_placement_under_way() -> None:
    async def story(desk: Desk) -> None:
        going = asyncio.Event()

        async def slowly(message_id: str) -> bool:
            await going.wait()
            return await desk.record_at_once(message_id)

        desk.record = slowly
        desk.offer("m1", "m2")
        reading = asyncio.ensure_future(desk.take())
        await wait_until_async(lambda: desk.told, "the turn")
        stopping = asyncio.ensure_future(desk.feed.stop())
        asyncio.get_running_loop().call_soon(going.set)
        await stopping
        assert desk.recorded == ["m1"]
        # What was placed is given all the same.
        assert await reading == "m1"
        assert desk.host.withdraw() == ("m2",)

    run(story)
