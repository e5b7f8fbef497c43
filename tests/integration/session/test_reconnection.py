"""A broker that goes and comes: everybody is back under the same identity, and nothing is lost or claimed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from libintercom.identity import peer_id
from libintercom.outcomes import NOT_SENT, REFUSED, UNKNOWN
from libintercom.session.reconnecting import FIRST_JITTER_S, PAUSES_S
from tests.support.waiting import wait_until, wait_until_async

if TYPE_CHECKING:
    import pytest

    from libintercom.session.aio import AsyncSession
    from tests.support.sessions import Site

TIMEOUT_S = 10.0
# bars.md section 2: from the broker's readiness to every session being back.
BACK_WITHIN_S = 1.2
SESSIONS = 10


async def take(session: AsyncSession) -> str:
    arrival = await session.next_inbound(TIMEOUT_S)
    assert arrival is not None
    return arrival.message.content.text


async def join_all(place: Site, stack: AsyncExitStack, count: int) -> list[AsyncSession]:
    return [await stack.enter_async_context(await place.join(f"s{number}")) for number in range(count)]


def test_every_session_is_back_soon_under_its_identity(place: Site) -> None:
    async def run() -> tuple[float, float]:
        broker = place.start_broker()
        async with AsyncExitStack() as stack:
            sessions = await join_all(place, stack, SESSIONS)
            unread = await sessions[1].send("s0", "before")
            sessions[0].set_application_guard(target_of(sessions[0]), "g1")
            await wait_until_async(lambda: sessions[0].profile.application_guard == "g1", "consent to be published")
            broker.kill()
            await wait_until_async(lambda: not any(one.is_connected for one in sessions), "everybody to notice")
            gone_at = time.monotonic()
            broker = place.start_broker()
            ready_at = time.monotonic()
            await wait_until_async(lambda: all(one.is_connected for one in sessions), "everybody to be back")
            took_s = time.monotonic() - ready_at
            try:
                assert [one.session_id for one in sessions] == [peer_id(f"native-s{n}") for n in range(SESSIONS)]
                rows = (await sessions[1].list_sessions()).rows
                assert next(row for row in rows if row.name == "s0").application_guard == "g1"
                await sessions[2].send("s0", "after")
                assert [await take(sessions[0]), await take(sessions[0])] == ["before", "after"]
                assert (await sessions[1].receipt("s0", "native-s0", unread.message_id))["nativeHandoff"]
            finally:
                await asyncio.gather(*(one.leave() for one in sessions))
                broker.kill()
        return took_s, ready_at - gone_at

    took_s, start_s = asyncio.run(run())
    # A second for the second try, when the first came before the broker was ready. On a machine so busy that the
    # broker took longer than that itself, the schedule has moved on to its longer pauses.
    assert took_s <= (BACK_WITHIN_S if start_s < PAUSES_S[0] - FIRST_JITTER_S else sum(PAUSES_S[:3]))


def target_of(session: AsyncSession) -> dict[str, Any]:
    profile = session.profile
    return {
        "rootSessionId": profile.root_session_id,
        "peerId": session.session_id,
        "incarnation": profile.incarnation,
    }


def test_what_was_under_way_ends_with_what_is_known(place: Site) -> None:
    async def run() -> None:
        broker = place.start_broker()
        async with AsyncExitStack() as stack:
            a, b = await join_all(place, stack, 2)
            asking = asyncio.ensure_future(a.ask("s1", "?", timeout_s=60))
            await take(b)
            broker.kill()
            answered = await asyncio.wait_for(asking, TIMEOUT_S)
            assert (answered.ended_by, answered.outcome.accepted) == ("disconnected", True)
            await wait_until_async(lambda: not a.is_connected, "the end to be noticed")
            outcome = await a.send("s1", "x")
            assert (outcome.outcome, outcome.accepted) == (NOT_SENT, False)
            # The question still stands with whoever was asked: its reply finds the asker once both are back.
            broker = place.start_broker()
            await wait_until_async(lambda: a.is_connected and b.is_connected, "both to be back")
            assert (await b.reply(None, "late")).outcome == "delivered"
            assert await take(a) == "late"
            broker.kill()

    asyncio.run(run())


def test_a_flood_through_a_restart_is_exactly_what_was_accepted(place: Site) -> None:
    async def run() -> None:
        broker = place.start_broker()
        async with AsyncExitStack() as stack:
            a, b = await join_all(place, stack, 2)
            accepted: list[str] = []
            doubtful: list[str] = []

            async def flood() -> None:
                for number in range(200):
                    outcome = await a.send("s1", f"m{number}")
                    if outcome.is_accepted:
                        accepted.append(f"m{number}")
                    elif outcome.outcome == UNKNOWN:
                        doubtful.append(f"m{number}")
                    else:
                        assert outcome.outcome in (NOT_SENT, REFUSED)
                        await wait_until_async(lambda: a.is_connected and b.is_connected, "both to be back")

            flooding = asyncio.ensure_future(flood())
            await wait_until_async(lambda: len(accepted) > 50, "the flood to run")
            broker.kill()
            broker = place.start_broker()
            await flooding
            got: list[str] = []
            while True:
                arrival = await b.next_inbound(0.5)
                if arrival is None:
                    break
                got.append(arrival.message.content.text)
            assert len(got) == len(set(got))
            assert [text for text in got if text not in doubtful] == accepted
            broker.kill()

    asyncio.run(run())


def test_without_leave_to_start_one_it_waits_and_says_so_once(
    place: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libintercom.session.reconnecting.PAUSES_S", (0.05,))

    async def run() -> None:
        broker = place.start_broker()
        async with AsyncExitStack() as stack:
            (a,) = await join_all(place, stack, 1)
            broker.stop()
            await wait_until_async(lambda: place.failures, "the failure to be said")
            tries = asyncio.get_running_loop().time() + 0.5
            await wait_until_async(lambda: asyncio.get_running_loop().time() > tries, "several more tries")
            assert len(place.failures) == 1
            assert "intercomd is not running" in place.failures[0]
            assert not a.is_connected
            # Leaving needs no broker.
            await asyncio.wait_for(a.leave(), TIMEOUT_S)

    asyncio.run(run())


def test_with_leave_the_session_starts_the_broker_it_misses(place: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", place.runtime)
    broker = place.start_broker()
    with place.join_blocking("a", spawn=True) as a:
        broker.stop()
        wait_until(lambda: a.is_connected and a.session_id == peer_id("native-a"), "a broker of its own")
        assert len(a.list_sessions().rows) == 1
        started = place.broker_pid(a)
    os.kill(started, signal.SIGTERM)
    wait_until(lambda: not os.path.exists(place.places.socket), "the started broker to leave")
