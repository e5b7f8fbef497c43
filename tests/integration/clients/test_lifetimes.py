"""One client's connections in turn, at a fork, at the edges of its timeouts: none is left behind, none is shared."""

from __future__ import annotations

import asyncio
import math
import os
import select
from typing import Any

import pytest

from libintercom.aio import AsyncClient
from libintercom.client import Client
from libintercom.inbound import ConnectionEnded, Inbound
from libintercom.profile import Profile
from tests.support.desk import incoming, row
from tests.support.driven import connected
from tests.support.scripted_broker import Peer, scripted, stay
from tests.support.waiting import DEADLINE_S, wait_until

PROFILE = Profile(cwd="/work", model="model-a", name="me")
SENDER = row("pi-peer0001", "peer")


def join_and_stay(peer: Peer) -> None:
    peer.register()
    stay(peer)


def speak_when_told(peer: Peer) -> None:
    """A message comes after everything that joining reads."""
    peer.register()
    assert peer.hear()["type"] == "presence"
    peer.say(incoming(SENDER, "m1", "hello"))
    stay(peer)


def test_looking_without_waiting_sees_what_has_arrived(kind: Any) -> None:
    """``events(0)`` is a program's way to look in between; it reads the socket once."""
    with scripted(speak_when_told) as broker, connected(kind, broker.path) as client:
        client.presence(status="idle")
        seen: list[Any] = []
        wait_until(lambda: seen.extend(client.events(timeout_s=0)) or seen, "the message that is there")
        assert [event.message.id for event in seen if isinstance(event, Inbound)] == ["m1"]
        assert list(client.events(timeout_s=0)) == []


@pytest.mark.parametrize("timeout_s", [math.inf, 1e9])
def test_a_wait_may_be_as_long_as_one_likes(kind: Any, timeout_s: float) -> None:
    with scripted(speak_when_told) as broker, connected(kind, broker.path) as client:
        client.presence(status="idle")
        assert isinstance(next(client.events(timeout_s)), Inbound)


def test_connecting_behind_unregister_leaves_no_connection_open(kind: Any) -> None:
    with scripted(join_and_stay, join_and_stay) as broker:
        with connected(kind, broker.path) as client:
            client.unregister()
            # The scripted end takes the second connection only when the first has been closed.
            client.connect()
            assert client.is_connected
        broker.finish()
    assert [heard["type"] for heard in broker.said] == ["register", "unregister", "register", "unregister"]


def test_a_forked_child_neither_speaks_nor_leaves_for_its_parent() -> None:
    with scripted(join_and_stay) as broker:
        with Client(PROFILE, path=broker.path) as client:
            child = os.fork()
            if not child:
                outcome = client.send("peer", "from the child").outcome
                client.disconnect()
                os._exit(0 if (outcome, client.is_connected) == ("not_sent", False) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            client.presence(status="idle")
            assert client.is_connected
        broker.finish()
    assert [heard["type"] for heard in broker.said] == ["register", "presence", "unregister"]


def test_a_cancelled_leaving_still_closes() -> None:
    """The broker's end hangs: it does not close. The wait for it is cancelled half-way."""

    async def main(path: str) -> None:
        client = AsyncClient(PROFILE, path=path)
        await client.connect()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.disconnect(), 0.1)
        events = [event async for event in client.events(timeout_s=1)]
        assert events == [ConnectionEnded(reason="this program disconnected")]

    def hang(peer: Peer) -> None:
        join_and_stay(peer)
        # Closed for both ways; its leaving had closed one.
        poller = select.poll()
        poller.register(peer.connection, 0)
        assert [ready for _, ready in poller.poll(DEADLINE_S * 1000)] == [select.POLLHUP]

    with scripted(hang) as broker:
        asyncio.run(main(broker.path))
        broker.finish()


def test_tasks_that_connect_at_once_join_once() -> None:
    async def main(path: str) -> None:
        client = AsyncClient(PROFILE, path=path)
        assert await asyncio.gather(client.connect(), client.connect()) == ["pi-client01"] * 2
        await client.disconnect()

    with scripted(join_and_stay) as broker:
        asyncio.run(main(broker.path))
        broker.finish()
    assert [heard["type"] for heard in broker.said] == ["register", "unregister"]
