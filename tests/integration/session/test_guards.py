"""Guarded delivery end to end: consent, staleness and withdrawal, judged again before the first checkpoint."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.errors import ReadFailed
from libintercom.session.bus import StaleTarget
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from libintercom.session.aio import AsyncSession
    from tests.support.daemon import Daemon
    from tests.support.sessions import Site

TIMEOUT_S = 10.0


def target_of(session: AsyncSession) -> dict[str, Any]:
    profile = session.profile
    return {
        "rootSessionId": profile.root_session_id,
        "peerId": session.session_id,
        "incarnation": profile.incarnation,
    }


def guard_of(session: AsyncSession, revision: str) -> dict[str, Any]:
    return {**target_of(session), "applicationGuard": revision}


async def consent(session: AsyncSession, revision: str | None) -> None:
    session.set_application_guard(target_of(session), revision)
    await wait_until_async(lambda: session.profile.application_guard == revision, "consent to be published")


async def send(sender: AsyncSession, guard: dict[str, Any], message_id: str = "g-1") -> Any:
    return await sender.send(guard["peerId"], "x", message_id=message_id, delivery="steer", guard=guard)


def tell(place: Site, story: Callable[[AsyncSession, AsyncSession], Awaitable[None]]) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(await place.join("a"))
            b = await stack.enter_async_context(await place.join("b"))
            await asyncio.wait_for(story(a, b), 3 * TIMEOUT_S)

    asyncio.run(run())


async def is_unknown(a: AsyncSession, message_id: str) -> bool:
    """Whether the recipient's journal knows nothing of it."""
    with pytest.raises(ReadFailed) as failed:
        await a.receipt("b", "native-b", message_id)
    return failed.value.code == "receipt_not_found"


def test_with_consent_it_arrives_and_the_receipt_tells_its_guard(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        await consent(b, "r1")
        guard = guard_of(b, "r1")
        hint = {"tool": "publish_result", "commandId": "00000000-0000-4000-8000-000000000001"}
        sent = await a.send(b.session_id, "x", message_id="g-1", delivery="steer", guard=guard, reply_hint=hint)
        assert sent.outcome == "delivered"
        arrival = await b.next_inbound(TIMEOUT_S)
        assert arrival is not None
        assert "Publication hint: tool publish_result" in arrival.text
        assert b.pending() == []
        receipt = await a.receipt("b", "native-b", "g-1")
        assert (receipt["guard"], receipt["replyHint"]) == (guard, hint)

    tell(place, story)


def test_without_consent_or_for_another_context_nothing_is_admitted(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        assert (await send(a, guard_of(b, "r1"))).code == "guard_stale"
        await consent(b, "r1")
        assert (await send(a, guard_of(b, "r2"))).code == "guard_stale"
        assert (await send(a, {**guard_of(b, "r1"), "incarnation": "old"})).code == "guard_stale"
        await consent(b, None)
        assert (await send(a, guard_of(b, "r1"))).code == "guard_stale"
        assert await is_unknown(a, "g-1")

    tell(place, story)


def test_consent_withdrawn_between_broker_and_recipient_leaves_no_checkpoint(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        await consent(b, "r1")
        guard = guard_of(b, "r1")
        reception = b._reception
        assert reception is not None
        # Withdrawn on this side, and the broker does not hear of it.
        presenting, reception._presenting.note = reception._presenting.note, lambda: None
        b.set_application_guard(target_of(b), None)
        sent = await send(a, guard)
        assert sent.outcome == "delivered"
        await wait_until_async(lambda: place.failures, "the refusal to be said")
        assert "guard_stale: consent was withdrawn" in place.failures[0]
        assert await is_unknown(a, "g-1")
        assert await b.next_inbound(0.0) is None
        # Ordinary messages go on.
        reception._presenting.note = presenting
        await a.send("b", "ordinary")
        arrival = await b.next_inbound(TIMEOUT_S)
        assert arrival is not None
        assert arrival.message.content.text == "ordinary"

    tell(place, story)


def test_withdrawal_does_not_recall_what_was_admitted(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        await consent(b, "r1")
        assert (await send(a, guard_of(b, "r1"))).outcome == "delivered"
        await wait_until_async(lambda: b.host.backlog, "the admission")  # type: ignore[attr-defined]
        await consent(b, None)
        arrival = await b.next_inbound(TIMEOUT_S)
        assert arrival is not None
        assert arrival.message.id == "g-1"

    tell(place, story)


def test_consent_belongs_to_the_exact_present_context(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        old = target_of(b)
        for stale in ({**old, "incarnation": "x"}, {**old, "peerId": "pi-x"}, {**old, "rootSessionId": "x"}, {}):
            with pytest.raises(StaleTarget):
                b.set_application_guard(stale, "r1")
        await consent(b, "r1")
        await b.replace_context("native-b", "reloaded")
        with pytest.raises(StaleTarget):
            b.set_application_guard(old, "r1")
        assert (await send(a, guard_of(b, "r1"))).code == "guard_stale"

    tell(place, story)
