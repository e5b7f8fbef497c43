"""tests.support.waiting: what was seen is returned, and what never comes fails with a reason."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.waiting import NotSeen, wait_until, wait_until_async


def test_what_is_seen_is_returned() -> None:
    answers = iter(["", 0, "here"])
    assert wait_until(lambda: next(answers), "an answer") == "here"


def test_what_never_comes_fails_with_what_was_seen_last() -> None:
    with pytest.raises(NotSeen, match=r"waited 0\.01 s in vain for a file; seen last: \[\]"):
        wait_until(list, "a file", deadline_s=0.01)


def test_it_is_asked_even_when_the_deadline_has_passed() -> None:
    assert wait_until(lambda: True, "anything", deadline_s=0)


def test_a_loop_goes_on_while_it_waits() -> None:
    async def waits() -> int:
        seen: list[int] = []
        asyncio.get_running_loop().call_soon(seen.append, 1)
        return len(await wait_until_async(lambda: seen, "the loop to run"))

    assert asyncio.run(waits()) == 1


def test_a_loop_waits_no_longer_than_its_deadline() -> None:
    with pytest.raises(NotSeen):
        asyncio.run(wait_until_async(lambda: False, "nothing", deadline_s=0.01))
