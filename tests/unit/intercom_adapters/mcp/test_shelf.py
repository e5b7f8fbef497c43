"""The host of an agent that reads when it looks: nothing is placed by coming in."""

from __future__ import annotations

import asyncio

import pytest

from intercom_adapters.mcp.shelf import Shelf
from libintercom.session.host import CannotTell, HostFailed
from libintercom.texts import TOOL_REPLY_CALL
from tests.unit.intercom_adapters.mcp.test_showing import waiting


def test_it_says_what_it_can() -> None:
    shelf = Shelf()
    abilities = shelf.abilities
    assert (abilities.prompt_only, abilities.wake, abilities.steer, abilities.turn_end) == (True, False, False, False)
    assert shelf.can_accept_asks()
    assert shelf.reply_call == TOOL_REPLY_CALL


def test_what_comes_in_is_not_placed_and_is_collected_once() -> None:
    async def look() -> None:
        shelf = Shelf()
        assert shelf.place([waiting("a", "one")]).entries == {}
        assert shelf.place([waiting("b", "two")]).entries == {}
        assert [one.message_id for one in await shelf.collect(1.0)] == ["a", "b"]
        assert await shelf.collect(0.0) == []

    asyncio.run(look())


def test_a_call_waits_for_what_is_handed_over() -> None:
    async def look() -> None:
        shelf = Shelf()
        collecting = asyncio.ensure_future(shelf.collect(10.0))
        asyncio.get_running_loop().call_soon(shelf.place, [waiting("a", "one")])
        assert [one.message_id for one in await collecting] == ["a"]

    asyncio.run(look())


def test_the_pages_of_a_message_are_of_one_text() -> None:
    async def look() -> None:
        shelf = Shelf()
        shelf.keep(waiting("a", "the first frame"))
        shelf.place([waiting("a", "a frame of its own"), waiting("b", "two")])
        assert [one.text for one in await shelf.collect(1.0)] == ["the first frame", "two"]
        shelf.drop(["a"])
        shelf.place([waiting("a", "a frame of its own")])
        assert [one.text for one in await shelf.collect(1.0)] == ["a frame of its own"]

    asyncio.run(look())


def test_what_an_earlier_server_showed_is_not_known() -> None:
    assert isinstance(Shelf().find_placement("a"), CannotTell)


def test_responses_are_not_known() -> None:
    with pytest.raises(HostFailed):
        asyncio.run(Shelf().last_response(None, 0, 1))  # type: ignore[arg-type]
