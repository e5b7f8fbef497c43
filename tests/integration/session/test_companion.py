"""A companion that is no session of a model: literal arguments, exact guards, no second try of anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.errors import (
    Disconnected,
    InvalidGuard,
    InvalidProfile,
    NotRunning,
    OutcomeUnknown,
    ReadFailed,
    Refused,
)
from libintercom.profile import Profile
from libintercom.session.companion import connect_intercom
from libintercom.session.errors import SpawnNotAllowed
from tests.support.scripted_broker import scripted
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from libintercom.session.aio import AsyncSession
    from libintercom.session.companion import Companion
    from tests.support.daemon import Daemon
    from tests.support.scripted_broker import Peer
    from tests.support.sessions import Site

TIMEOUT_S = 10.0
SESSION = {"name": "companion", "cwd": "/work", "model": "non-model-client", "rootSessionId": "c", "incarnation": "1"}
HINT = {"tool": "publish_it", "commandId": "00000000-0000-4000-8000-00000000000a"}


@pytest.fixture(autouse=True)
def _here(place: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", place.runtime)


def accompany(place: Site, story: Callable[[AsyncSession, Companion, dict[str, str]], Awaitable[None]]) -> None:
    """A main that gave its consent, a companion, and the guard of the one for the other."""

    async def run() -> None:
        async with await place.join("main") as main, await connect_intercom(spawn=False, session=SESSION) as companion:
            incarnation = main.profile.incarnation
            target = {"rootSessionId": "native-main", "peerId": main.session_id, "incarnation": incarnation}
            main.set_application_guard(target, "r1")
            await wait_until_async(lambda: main.profile.application_guard == "r1", "consent to be published")
            await asyncio.wait_for(story(main, companion, {**target, "applicationGuard": "r1"}), 3 * TIMEOUT_S)

    asyncio.run(run())


def send(companion: Companion, guard: Any, **changes: Any) -> Any:
    given = {"message_id": "c-1", "text": "go", "expects_reply": False, "delivery": "steer", "guard": guard, **changes}
    to = given.pop("to", None) or guard["peerId"]
    return companion.send(to, **given)


def test_the_example_of_the_seeds(place: Site, broker: Daemon) -> None:
    async def story(main: AsyncSession, companion: Companion, guard: dict[str, str]) -> None:
        rows = await companion.list_sessions()
        row = next(row for row in rows if row.id == guard["peerId"])
        assert (row.application_guard, row.guarded_delivery) == ("r1", 1)
        result = await send(companion, guard, reply_hint=HINT)
        assert (result.outcome, result.message_id) == ("delivered", "c-1")
        arrival = await main.next_inbound(TIMEOUT_S)
        assert arrival is not None
        receipt = await companion.receipt(guard["peerId"], root_session_id="native-main", message_id="c-1")
        assert (receipt["guard"], receipt["sender"]["peerId"]) == (guard, companion.session_id)
        main.record_response("x" * 20_000)
        page = await companion.last(guard["peerId"])
        rest = await companion.last(guard["peerId"], entry_id=page.entry_id, offset=page.next_offset)
        assert (len(page.text), page.text + rest.text) == (16_384, "x" * 20_000)

    accompany(place, story)


@pytest.mark.parametrize("spawn", [True, 0, None, ""])
def test_only_a_literal_false_connects(place: Site, spawn: Any) -> None:
    with pytest.raises(SpawnNotAllowed, match="spawn=False"):
        asyncio.run(connect_intercom(spawn=spawn, session=SESSION))


def test_a_missing_broker_is_never_started(place: Site) -> None:
    with pytest.raises(NotRunning):
        asyncio.run(connect_intercom(spawn=False, session=Profile(cwd="/", model="m")))


def test_a_session_that_cannot_be_registered_is_refused_here(place: Site) -> None:
    with pytest.raises(InvalidProfile):
        asyncio.run(connect_intercom(spawn=False, session={"cwd": "/"}))


@pytest.mark.parametrize(
    "changes",
    [
        {"expects_reply": True},
        {"expects_reply": None},
        {"expects_reply": 0},
        {"message_id": ""},
        {"delivery": ""},
        {"drop": "rootSessionId"},
        {"drop": "peerId"},
        {"drop": "incarnation"},
        {"drop": "applicationGuard"},
        {"add": "also"},
    ],
)
def test_what_is_not_whole_is_never_sent(place: Site, broker: Daemon, changes: dict[str, Any]) -> None:
    async def story(main: AsyncSession, companion: Companion, guard: dict[str, str]) -> None:
        given = {**guard, changes.pop("add"): "x"} if "add" in changes else dict(guard)
        given.pop(changes.pop("drop", ""), None)
        with pytest.raises(InvalidGuard):
            await send(companion, given, to=guard["peerId"], **changes)
        assert await main.next_inbound(0.0) is None

    accompany(place, story)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"applicationGuard": "r0"}, "guard_stale"),
        ({"incarnation": "before"}, "guard_stale"),
        ({"rootSessionId": "native-other"}, "guard_target"),
        ({"peerId": "pi-nobody"}, "not_found"),
    ],
)
def test_stale_consent_never_becomes_an_ordinary_message(
    place: Site, broker: Daemon, changes: dict[str, str], code: str
) -> None:
    async def story(main: AsyncSession, companion: Companion, guard: dict[str, str]) -> None:
        with pytest.raises(Refused) as refused:
            await send(companion, {**guard, **changes})
        assert refused.value.code == code
        assert await main.next_inbound(0.0) is None
        with pytest.raises(ReadFailed):
            await companion.receipt(guard["peerId"], root_session_id="native-main", message_id="c-1")

    accompany(place, story)


def register(peer: Peer, **echo: Any) -> None:
    peer.hear()
    peer.say({"type": "registered", "sessionId": "pi-companion", "ext": 1, **echo})


def converse(place: Site, script: Callable[[Peer], None], story: Callable[[Companion], Awaitable[None]]) -> list[str]:
    """A companion of a scripted broker; what its ``on_error`` heard."""
    heard: list[str] = []

    async def run() -> None:
        companion = await connect_intercom(
            spawn=False, session=SESSION, send_timeout_ms=200, on_error=lambda error: heard.append(str(error))
        )
        try:
            await asyncio.wait_for(story(companion), TIMEOUT_S)
        finally:
            await companion.disconnect()

    with scripted(script) as broker, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PI_INTERCOM_RUNTIME_DIR", broker.path.rpartition("/")[0])
        asyncio.run(run())
        broker.finish()
    return heard


GUARD = {"rootSessionId": "r", "peerId": "pi-main", "incarnation": "i", "applicationGuard": "g"}


def test_two_sends_under_one_id_at_once_are_one(place: Site) -> None:
    def script(peer: Peer) -> None:
        register(peer, guardedDelivery=1)
        heard = peer.hear()
        peer.say({"type": "delivered", "messageId": heard["message"]["id"]})
        assert peer.hear()["type"] == "unregister"

    async def story(companion: Companion) -> None:
        first, second = await asyncio.gather(send(companion, GUARD), send(companion, GUARD), return_exceptions=True)
        assert first.outcome == "delivered"
        assert isinstance(second, Refused)
        assert "on its way already" in str(second)

    assert converse(place, script, story) == []


def test_an_old_broker_gets_no_guarded_message(place: Site) -> None:
    def script(peer: Peer) -> None:
        register(peer)
        assert peer.hear()["type"] == "unregister"

    async def story(companion: Companion) -> None:
        with pytest.raises(Refused) as refused:
            await send(companion, GUARD)
        assert refused.value.code == "guard_unsupported"

    converse(place, script, story)


def test_silence_is_unknown_and_nothing_is_sent_again(place: Site) -> None:
    def script(peer: Peer) -> None:
        register(peer, guardedDelivery=1)
        assert peer.hear()["type"] == "send"
        assert peer.hear()["type"] == "unregister"

    async def story(companion: Companion) -> None:
        with pytest.raises(OutcomeUnknown):
            await send(companion, GUARD)

    converse(place, script, story)


def test_a_broken_connection_ends_what_waits_and_stays_broken(place: Site) -> None:
    def script(peer: Peer) -> None:
        register(peer, guardedDelivery=1)
        peer.hear()
        peer.hear()

    async def story(companion: Companion) -> None:
        listing = asyncio.ensure_future(companion.list_sessions())
        sending = asyncio.ensure_future(send(companion, GUARD))
        for waiting, kind in ((listing, Disconnected), (sending, OutcomeUnknown)):
            with pytest.raises(kind):
                await waiting
        assert (companion.is_connected, companion.session_id) == (False, "")
        with pytest.raises(Disconnected):
            await send(companion, GUARD, message_id="c-2")

    (heard,) = converse(place, script, story)
    assert "the connection to intercomd ended" in heard
