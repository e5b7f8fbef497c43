"""Trying again later: growing pauses, one attempt at a time, none after the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from libintercom.session import retrying
from libintercom.session.retrying import Retry
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_PAUSE_S", 0.001)


def play(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 10))


def test_arming_twice_is_one_attempt() -> None:
    async def story() -> None:
        tries: list[int] = []

        async def attempt() -> None:
            tries.append(1)

        retry = Retry(attempt)
        retry.arm()
        retry.arm()
        await wait_until_async(lambda: tries, "the attempt")
        assert len(tries) == 1
        retry.arm()
        await wait_until_async(lambda: len(tries) == 2, "the next one")

    play(story)


def test_an_attempt_that_wants_another_gets_it_after_a_longer_pause() -> None:
    async def story() -> None:
        tries: list[int] = []

        async def attempt() -> None:
            tries.append(1)
            if len(tries) < 4:
                retry.arm()

        retry = Retry(attempt)
        retry.arm()
        await wait_until_async(lambda: len(tries) == 4, "four attempts")
        assert retry._pause_s == pytest.approx(0.016)
        retry.reset()
        assert retry._pause_s == pytest.approx(0.001)

    play(story)


def test_pauses_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "LONGEST_PAUSE_S", 0.002)

    async def story() -> None:
        tries: list[int] = []

        async def attempt() -> None:
            tries.append(1)
            retry.arm()

        retry = Retry(attempt)
        retry.arm()
        await wait_until_async(lambda: len(tries) >= 5, "five attempts")
        assert retry._pause_s == pytest.approx(0.002)
        retry.stop()

    play(story)


def test_after_the_end_nothing_is_tried() -> None:
    async def story() -> None:
        tries: list[int] = []

        async def attempt() -> None:
            tries.append(1)
            await asyncio.get_running_loop().create_future()

        retry = Retry(attempt)
        retry.arm()
        await wait_until_async(lambda: tries, "the attempt")
        retry.stop()
        retry.arm()
        await wait_until_async(lambda: retry._trying is None, "its end")
        assert (retry._timer, len(tries)) == (None, 1)

    play(story)
