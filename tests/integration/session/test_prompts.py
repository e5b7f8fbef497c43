"""A host that reads at prompts: what waits, what is handed over, and what it gives back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from libintercom.identity import make_uuid
from libintercom.paths import find_places
from libintercom.profile import profile_from_environment
from libintercom.session.aio import AsyncSession
from libintercom.session.host import CannotTell, EmptyHistory, Placement
from libintercom.wire.messages import Host as Abilities
from tests.support.ctl import Ctl
from tests.support.daemon import running_daemon
from tests.support.waiting import DEADLINE_S, wait_until_async

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from libintercom.session.host import HostInput


class Prompt:
    """Takes in what a prompt hands over, and places nothing by itself."""

    abilities = Abilities(steer=False, wake=False, turn_end=False, prompt_only=True)
    reply_call = ""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.has_taken = asyncio.Event()

    def can_accept_asks(self) -> bool:
        return True

    def place(self, batch: Sequence[HostInput]) -> Placement:
        self.taken += [one.message_id for one in batch]
        self.has_taken.set()
        return Placement(entries={})

    def find_placement(self, _message_id: str) -> CannotTell:
        return CannotTell(reason="test")

    def wake(self) -> None:
        raise AssertionError("a prompt is not woken")

    def last_response(self, _entry: str | None, _offset: int, _limit: int) -> EmptyHistory:
        return EmptyHistory()

    async def prompt(self, session: AsyncSession) -> list[str]:
        """What one prompt is given."""
        await session.settle()
        self.has_taken.clear()
        session.turn_started()
        await asyncio.wait_for(self.has_taken.wait(), DEADLINE_S)
        taken, self.taken = self.taken, []
        return taken


@pytest.fixture
def ctl() -> Iterator[Ctl]:
    with running_daemon("--idle-exit-s", "600") as daemon:
        yield Ctl(daemon.directory)


def test_what_is_given_back_waits_in_its_order(ctl):
    async def run() -> None:
        native_id, prompt, places = make_uuid(), Prompt(), find_places(ctl.environment)
        profile = profile_from_environment(name="prompted", native_id=native_id, environ={}, cwd="/")
        session = await AsyncSession.join(profile, native_id=native_id, host=prompt, places=places, spawn=False)
        async with session:
            assert session.broker is not None
            for number in range(3):
                sending = ctl.run, "send", "prompted", "x", "--message-id", f"m{number}", "--delivery", "passive"
                assert (await asyncio.to_thread(*sending)).status == 0
            await wait_until_async(lambda: len(session.waiting()) == 3, "the messages to be on record")
            assert await prompt.prompt(session) == ["m0", "m1", "m2"]
            assert session.waiting() == ("m0", "m1", "m2")
            session.placed({"m0": "entry-0"})
            session.returned(["m1", "m2"], "no room")
            assert session.waiting() == ("m1", "m2")
            session.turn_ended(ok=True)
            assert await prompt.prompt(session) == ["m1", "m2"]
            session.placed({"m1": "entry-1", "m2": "entry-2"})
            session.turn_ended(ok=True)
            assert session.waiting() == ()

    asyncio.run(run())
