"""What others see: merged, only when it changed, and kept for the next registration while there is no connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from libintercom.errors import Disconnected
from libintercom.session.presenting import Presenting
from tests.support.fake_host import FakeHost
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Client:
    """Takes presences; without a connection each is refused as a real client refuses it."""

    def __init__(self) -> None:
        self.has_guard, self.is_connected = True, True
        self.published: list[dict[str, Any]] = []

    async def presence(self, **members: Any) -> None:
        if not self.is_connected:
            raise Disconnected("presence", "gone")
        self.published.append(members)


class Inbox:
    def __init__(self) -> None:
        self.tracker: list[str] = []


class Rig:
    def __init__(self) -> None:
        self.client, self.inbox, self.host = Client(), Inbox(), FakeHost()
        client: Any = self.client
        inbox: Any = self.inbox
        self.presenting = Presenting(client, inbox, self.host)

    async def note(self) -> None:
        self.presenting.note()
        await wait_until_async(lambda: self.presenting._publishing is None, "the presence")


def play(story: Callable[[Rig], Awaitable[None]]) -> list[dict[str, Any]]:
    async def run() -> Rig:
        rig = Rig()
        await asyncio.wait_for(story(rig), 10)
        return rig

    return asyncio.run(run()).client.published


PLAIN = {"pending_asks": 0, "accepts_asks": True, "application_guard": None}


def test_only_changes_are_said() -> None:
    async def story(rig: Rig) -> None:
        for _ in range(3):
            await rig.note()
        rig.inbox.tracker.append("q")
        await rig.note()
        rig.host.accepts_asks = False
        await rig.note()

    assert play(story) == [
        PLAIN,
        {**PLAIN, "pending_asks": 1},
        {**PLAIN, "pending_asks": 1, "accepts_asks": False},
    ]


def test_what_changes_at_once_is_said_once() -> None:
    async def story(rig: Rig) -> None:
        rig.presenting.note()
        rig.inbox.tracker += ["q", "r"]
        rig.presenting.application_guard = "g"
        rig.presenting.note_activity(7)
        await rig.note()

    assert play(story) == [
        {"pending_asks": 2, "accepts_asks": True, "application_guard": "g", "last_intercom_activity": 7}
    ]


def test_the_programs_word_is_above_its_hosts() -> None:
    async def story(rig: Rig) -> None:
        for word in (False, None):
            rig.presenting.accepts_asks = word
            await rig.note()

    assert [one["accepts_asks"] for one in play(story)] == [False, True]


def test_without_guarded_delivery_there_is_no_consent_to_say() -> None:
    async def story(rig: Rig) -> None:
        rig.client.has_guard = False
        rig.presenting.application_guard = "g"
        await rig.note()

    assert play(story) == [{"pending_asks": 0, "accepts_asks": True}]


def test_without_a_connection_nothing_fails() -> None:
    async def story(rig: Rig) -> None:
        rig.client.is_connected = False
        await rig.note()

    assert play(story) == []
