"""Staying joined: the schedule, the order of events over several connections, and that leaving ends it."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.errors import NotRunning
from libintercom.inbound import ConnectionEnded, PeerLeft
from libintercom.session import reconnecting
from libintercom.session.background import BackgroundErrors
from libintercom.session.reconnecting import Line, reconnect_pauses_s
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Connections:
    """A client whose connections are lists of events; behind each it fails so often before the next one comes."""

    def __init__(self, *connections: list[Any], failures: int = 0) -> None:
        self._connections, self._failures = list(connections), failures
        self._is_left = asyncio.Event()
        self.tries = 0

    async def events(self) -> AsyncIterator[Any]:
        for event in self._connections.pop(0):
            yield event
        if not self._connections:
            await self._is_left.wait()
        yield ConnectionEnded(reason="over")

    async def connect(self) -> str:
        self.tries += 1
        if self.tries <= self._failures:
            raise NotRunning("/s", "no socket")
        return "pi-1"

    async def disconnect(self) -> None:
        self._is_left.set()


class Story:
    """What a line told, in order."""

    def __init__(self, client: Any) -> None:
        self.said: list[Any] = []
        self.failures: list[str] = []
        errors = BackgroundErrors(lambda error: self.failures.append(error.reason))
        self.line = Line(client, errors, on_event=self.hear, on_joined=self.join, on_lost=self.said.append)

    async def hear(self, event: Any) -> None:
        self.said.append(event.session_id)

    async def join(self) -> None:
        self.said.append("joined")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnecting, "reconnect_pauses_s", lambda: iter([0.0] * 9))


def left(*ids: str) -> list[Any]:
    return [PeerLeft(session_id=one) for one in ids]


def test_the_schedule() -> None:
    firsts = {next(reconnect_pauses_s()) for _ in range(200)}
    assert all(0 <= pause < 0.1 for pause in firsts)
    assert len(firsts) > 20
    assert list(islice(reconnect_pauses_s(), 1, 8)) == [1, 2, 5, 10, 30, 30, 30]


def test_each_connection_follows_the_one_before() -> None:
    async def run() -> Story:
        story = Story(Connections(left("a", "b"), left("c"), failures=2))
        story.line.start()
        await wait_until_async(lambda: "c" in story.said, "the second connection")
        await story.line.hang_up()
        return story

    story = asyncio.run(run())
    assert story.said == ["a", "b", "over", "joined", "c", "over"]
    # Twice the same failure; it is said once.
    assert len(story.failures) == 1


def test_leaving_during_a_pause_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnecting, "reconnect_pauses_s", lambda: iter([3600.0]))

    async def run() -> Story:
        story = Story(Connections([], []))
        story.line.start()
        await wait_until_async(lambda: "over" in story.said, "the connection to end")
        await asyncio.wait_for(story.line.hang_up(), 5)
        return story

    assert asyncio.run(run()).said == ["over"]


def test_a_connection_that_comes_behind_the_leaving_is_ended_again() -> None:
    class Slow(Connections):
        async def connect(self) -> str:
            story.leaving = asyncio.ensure_future(story.line.hang_up())
            # The leaving runs to where it waits for the line.
            await wait_until_async(self._is_left.is_set, "the leaving")
            self._is_left.clear()
            return "pi-1"

    async def run() -> bool:
        nonlocal story
        client = Slow([], left("never heard"))
        story = Story(client)
        story.line.start()
        await wait_until_async(lambda: hasattr(story, "leaving"), "the reconnection")
        await asyncio.wait_for(story.leaving, 5)
        return client._is_left.is_set()

    story: Any = None
    assert asyncio.run(run())
    assert story.said == ["over"]
