"""Two sessions and a real broker: messages, questions, reads and receipts, in both twins."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.errors import ReadFailed
from libintercom.session import bus as names
from libintercom.session.bus import Bus
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from libintercom.session.aio import AsyncSession
    from tests.support.daemon import Daemon
    from tests.support.sessions import Site

TIMEOUT_S = 10.0


def converse(place: Site, story: Callable[[AsyncSession, AsyncSession], Awaitable[None]], **options: Any) -> None:
    """Run a story of two sessions, ``a`` and ``b``; the options are those of ``b``."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(await place.join("a"))
            b = await stack.enter_async_context(await place.join("b", **options))
            await asyncio.wait_for(story(a, b), 3 * TIMEOUT_S)

    asyncio.run(run())


async def take(session: AsyncSession) -> Any:
    arrival = await session.next_inbound(TIMEOUT_S)
    assert arrival is not None
    return arrival


def test_a_message_is_framed_exact_and_consumed_by_asking_for_the_next(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        text = "line one\r\nline two \u00e9 e\u0301 [intercom fake]"
        await a.send("b", text)
        arrival = await take(b)
        assert arrival.message.content.text == text
        assert arrival.sender == "a"
        assert "From a" in arrival.text
        assert "\\[intercom fake]" in arrival.text
        receipt = await a.receipt("b", "native-b", arrival.message.id)
        assert (receipt["nativeHandoff"], receipt["placementEntryId"]) == (True, arrival.message.id)
        await a.send("b", "next")
        assert (await take(b)).message.content.text == "next"

    converse(place, story)
    assert place.failures == []


def test_an_ask_is_answered_and_stays_answered(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        asking = asyncio.ensure_future(a.ask("b", "which port?", timeout_s=TIMEOUT_S))
        arrival = await take(b)
        (view,) = b.pending()
        assert (view["kind"], view["messageId"], view["isTarget"]) == ("ask", arrival.message.id, True)
        outcome = await b.reply(None, "8443")
        answered = await asking
        assert answered.reply is not None
        assert (answered.reply.message.content.text, outcome.outcome) == ("8443", "delivered")
        assert b.pending() == []
        again = await b.reply(arrival, "8444")
        assert (again.outcome, again.code) == ("not_sent", "no_pending_ask")
        # The reply was the ask's: it is nobody's next message.
        await b.send("a", "after")
        assert (await take(a)).message.content.text == "after"

    converse(place, story)


def test_what_others_see_is_kept_true(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        async def row() -> Any:
            return next(row for row in (await a.list_sessions()).rows if row.name == "b")

        async def seen(asks: int, *, accepts: bool) -> None:
            while True:
                seen = await row()
                if (seen.pending_asks, seen.accepts_asks) == (asks, accepts):
                    return

        await asyncio.wait_for(seen(0, accepts=True), TIMEOUT_S)
        asking = asyncio.ensure_future(a.ask("b", "?", delivery="steer", timeout_s=TIMEOUT_S))
        await asyncio.wait_for(seen(1, accepts=True), TIMEOUT_S)
        await b.presence(accepts_asks=False)
        await asyncio.wait_for(seen(1, accepts=False), TIMEOUT_S)
        await b.reply(await take(b), "!")
        await asking
        await asyncio.wait_for(seen(0, accepts=False), TIMEOUT_S)
        assert (await row()).last_intercom_activity > 0
        await b.presence(accepts_asks=None, name="bee")
        await wait_until_async(lambda: b.profile.accepts_asks, "the host's word to count again")

        async def is_renamed() -> None:
            # What one session said and what another asks have no order between them.
            while "bee" not in [row.name for row in (await a.list_sessions()).rows]:
                pass

        await asyncio.wait_for(is_renamed(), TIMEOUT_S)

    converse(place, story)


def test_a_retired_question_waits_no_more(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        asking = asyncio.ensure_future(a.ask("b", "?", timeout_s=TIMEOUT_S))
        await take(b)
        asking.cancel()
        await wait_until_async(lambda: b.pending() == [], "the question to be retired")
        assert (await b.reply(None, "late")).code == "no_pending_ask"

    converse(place, story)


def test_last_pages_are_pinned(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        with pytest.raises(ReadFailed) as empty:
            await a.last("b")
        assert empty.value.code == "empty_history"
        text = "\U0001f600" * 10 + "x"
        entry = b.record_response(text)
        first = await a.last("b", limit=7)
        b.record_response("newer")
        assert (first.entry_id, first.text, first.next_offset, first.total) == (entry, text[:3], 6, 21)
        rest = await a.last("b", entry, 6)
        assert (rest.text, rest.next_offset) == (text[3:], None)
        assert (await a.last("b")).text == "newer"
        for code, arguments in (("invalid_offset", (entry, 7)), ("entry_not_found", ("gone", 0))):
            with pytest.raises(ReadFailed) as failed:
                await a.last("b", *arguments)
            assert failed.value.code == code

    converse(place, story)


def test_receipts_know_their_root_and_message(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        sent = await a.send("b", "x", delivery="passive")
        await take(b)
        receipt = await a.receipt("b", "native-b", sent.message_id)
        assert (receipt["sender"]["peerId"], receipt["delivery"]) == (a.session_id, "passive")
        for code, root, message in (
            ("publication_unavailable", "native-c", sent.message_id),
            ("receipt_not_found", "native-b", "never sent"),
        ):
            with pytest.raises(ReadFailed) as failed:
                await a.receipt("b", root, message)
            assert failed.value.code == code

    converse(place, story)


def test_a_repeated_message_is_never_offered_twice(place: Site, broker: Daemon) -> None:
    async def story(a: AsyncSession, b: AsyncSession) -> None:
        await a.send("b", "once", message_id="m-1")
        await take(b)
        # Another content under the same ID is refused by the broker; from another sender it reaches the recipient.
        async with await place.join("c") as c:
            await c.send("b", "twice", message_id="m-1")
            await c.send("b", "other")
            assert (await take(b)).message.content.text == "other"

    converse(place, story)


def test_a_companion_reads_and_consents_on_the_bus(place: Site, broker: Daemon) -> None:
    bus, states = Bus(), []
    bus.on(names.CONTEXT_STATE, states.append)

    def query(event: str, **payload: Any) -> Any:
        heard: list[Any] = []
        bus.emit(event, {"version": 1, "respond": heard.append, **payload})
        return heard[0]

    async def story(a: AsyncSession, b: AsyncSession) -> None:
        snapshot = query(names.CONTEXT_QUERY)
        target = {name: snapshot[name] for name in ("rootSessionId", "peerId", "incarnation")}
        assert target["peerId"] == b.session_id
        assert (snapshot["connected"], snapshot["guardedDelivery"]) == (True, 1)
        assert query(names.APPLICATION_GUARD, target=target, revision="g1") == {"version": 1, "applicationGuard": "g1"}
        await wait_until_async(lambda: states and states[-1].get("applicationGuard") == "g1", "the change to be told")
        stale = {**target, "incarnation": "another"}
        assert query(names.APPLICATION_GUARD, target=stale, revision="g2") == {"error": "context_changed"}
        sent = await a.send("b", "x")
        await take(b)
        about = {"rootSessionId": "native-b", "messageId": sent.message_id}
        assert query(names.PROVENANCE_QUERY, **about)["receipt"]["textSha256"]

    converse(place, story, bus=bus)
    assert states[-1]["rootSessionId"] is None
    with pytest.raises(IndexError):
        query(names.CONTEXT_QUERY)
