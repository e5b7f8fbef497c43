"""Reads and guarded messages of both clients through a real broker: pages, receipts, and every way they end."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.client import Client
from libintercom.errors import Disconnected, InvalidRead, ReadFailed
from libintercom.inbound import ConnectionEnded, Inbound, ReadAsked
from libintercom.profile import profile_from_environment
from libintercom.wire.guards import Guard
from libintercom.wire.reads import Page, ReadError, utf16_units
from tests.support.daemon import Daemon, running_daemon
from tests.support.driven import DrivenClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[..., Any]
    Serve = Callable[[ReadAsked], Any]

# Characters of one, two and three UTF-8 bytes and of two UTF-16 units, so that pages end within none of them.
TEXT = "a\u00fc\u20ac\U0001f600\r\n\x1b" * 6_000
MODULE_TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running_daemon() as running:
        yield running


def join(daemon: Daemon, kind: Any, name: str, **parts: Any) -> Any:
    told = {"guarded_delivery": True, "receipt_reads": True, **parts}
    return kind(profile_from_environment(name=name, environ={}, **told), path=daemon.socket_path)


@pytest.fixture(params=[Client, DrivenClient])
def make(request: pytest.FixtureRequest, daemon: Daemon) -> Iterator[Make]:
    """Joined clients by name; each leaves afterwards."""
    with contextlib.ExitStack() as stack:
        yield lambda name, **parts: stack.enter_context(join(daemon, request.param, name, **parts))


class Owner:
    """A session that serves reads in a thread of its own, by a function from what is asked to the answer.

    None as the answer: nothing is said. ``asked`` holds everything it was asked.
    """

    def __init__(self, daemon: Daemon, serve: Serve, **parts: Any) -> None:
        self._client = join(daemon, Client, "owner", serves_reads=True, **parts)
        self._client.connect()
        self._serve = serve
        self.asked: list[ReadAsked] = []
        self.profile, self.session_id = self._client.profile, self._client.session_id
        self._is_leaving = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def answer_late(self, token: str, answer: Any) -> bool:
        """Answer from outside, once the thread is done."""
        self._is_leaving.set()
        self._thread.join(MODULE_TIMEOUT_S)
        return bool(self._client.answer_read(token, answer))

    def leave(self) -> None:
        self._is_leaving.set()
        self._thread.join(MODULE_TIMEOUT_S)
        assert not self._thread.is_alive()
        self._client.disconnect()

    def _run(self) -> None:
        while not self._is_leaving.is_set():
            for event in self._client.events(0.05):
                if isinstance(event, ReadAsked):
                    self.asked.append(event)
                    answer = self._serve(event)
                    if answer is not None:
                        self._client.answer_read(event.token, answer)


@pytest.fixture
def own(daemon: Daemon) -> Iterator[Callable[..., Owner]]:
    with contextlib.ExitStack() as stack:

        def build(serve: Serve, **parts: Any) -> Owner:
            owner = Owner(daemon, serve, **parts)
            stack.callback(owner.leave)
            return owner

        yield build


def pages_of(entries: dict[str, str]) -> Serve:
    """Serve the newest of some entries, or the one that is asked for."""

    def serve(asked: ReadAsked) -> Any:
        entry_id = asked.entry_id or list(entries)[-1]
        if entry_id not in entries:
            return ReadError(code="entry_not_found", reason="it is gone")
        units = entries[entry_id].encode("utf-16-le", "surrogatepass")
        start = int(asked.offset or 0)
        end = min(start + int(asked.limit or 0), len(units) // 2)
        if end < len(units) // 2 and 0xD8 <= units[2 * end - 1] < 0xDC:
            end -= 1
        text = units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
        total = len(units) // 2
        next_offset = None if end == total else end
        return Page(entry_id=entry_id, offset=start, text=text, next_offset=next_offset, total=total)

    return serve


def read_whole(client: Any, to: str, limit: int) -> str:
    parts, entry_id, offset = [], None, 0
    while True:
        page = client.last(to, entry_id, offset, limit)
        parts.append(page.text)
        if page.next_offset is None:
            assert page.total == utf16_units("".join(parts))
            return "".join(parts)
        entry_id, offset = page.entry_id, page.next_offset


def code_of(read: Callable[[], object]) -> str:
    with pytest.raises(ReadFailed) as caught:
        read()
    return str(caught.value.code)


def receipt_of(root: str, message_id: str, text: str) -> dict[str, Any]:
    return {
        "version": 1,
        "rootSessionId": root,
        "messageId": message_id,
        "sender": {"peerId": "pi-someone"},
        "delivery": "steer",
        "receivedAt": 1_700_000_000_000,
        "checkpointEntryId": "entry-1",
        "textSha256": hashlib.sha256(text.encode()).hexdigest(),
        "queued": True,
        "nativeHandoff": True,
        "placementEntryId": None,
        "discarded": False,
    }


# ------------------------------------------------------------------ last


@pytest.mark.parametrize("limit", [999, 16_384, 10**9])
def test_a_long_response_comes_in_pages(make: Make, own: Callable[..., Owner], limit: int) -> None:
    reader, owner = make("reader"), own(pages_of({"e1": TEXT}))
    assert read_whole(reader, owner.session_id, limit) == TEXT
    assert {asked.limit for asked in owner.asked} == {min(limit, 16_384)}


def test_a_newer_response_does_not_replace_the_one_being_read(make: Make, own: Callable[..., Owner]) -> None:
    entries = {"e1": "first" * 10}
    reader, owner = make("reader"), own(pages_of(entries))
    page = reader.last(owner.session_id, limit=10)
    entries["e2"] = "second"
    assert reader.last(owner.session_id, page.entry_id, page.next_offset, 10).text == "first" * 2
    assert reader.last(owner.session_id).text == "second"
    del entries["e1"]
    assert code_of(lambda: reader.last(owner.session_id, "e1", 20)) == "entry_not_found"


def test_two_read_from_one_owner_at_once(make: Make, own: Callable[..., Owner]) -> None:
    readers, owner = [make("one"), make("two")], own(pages_of({"e1": TEXT}))
    read: dict[int, str] = {}

    def work(number: int) -> None:
        read[number] = read_whole(readers[number], owner.session_id, 7_001)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MODULE_TIMEOUT_S)
    assert read == {0: TEXT, 1: TEXT}


def test_nobody_is_woken_and_nothing_is_delivered(make: Make, own: Callable[..., Owner]) -> None:
    reader, owner = make("reader"), own(pages_of({"e1": "x"}))
    before = reader.stats()["counters"]["accepted"]
    assert reader.last(owner.session_id).text == "x"
    assert reader.stats()["counters"]["accepted"] == before


# ------------------------------------------------------------------ receipts


def test_a_receipt_of_a_message(make: Make, own: Callable[..., Owner]) -> None:
    text = "CRLF\r\n and u\u0308"

    def serve(asked: ReadAsked) -> Any:
        if asked.message_id != "m-1":
            return {"code": "receipt_not_found", "reason": "no checkpoint of it here"}
        return receipt_of(str(asked.root_session_id), "m-1", text)

    reader, owner = make("reader"), own(serve)
    root = owner.profile.root_session_id
    assert reader.receipt(owner.session_id, root, "m-1") == receipt_of(root, "m-1", text)
    assert code_of(lambda: reader.receipt(owner.session_id, root, "m-2")) == "receipt_not_found"
    # Another root's journal is not this owner's to attest.
    assert code_of(lambda: reader.receipt(owner.session_id, "another-root", "m-1")) == "invalid_response"


# ------------------------------------------------------------------ how a read ends without an answer


def test_who_serves_no_reads_says_so(make: Make) -> None:
    reader, other = make("reader"), make("other")
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(code_of(lambda: reader.last(other.session_id))))
    thread.start()
    assert not list(other.events(0.5))
    thread.join(MODULE_TIMEOUT_S)
    assert results == ["unsupported"]


def test_an_owner_that_leaves_in_the_middle_is_offline(make: Make, own: Callable[..., Owner]) -> None:
    reader, asked = make("reader"), threading.Event()
    owner = own(lambda _asked: asked.set())
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(code_of(lambda: reader.last(owner.session_id))))
    thread.start()
    assert asked.wait(MODULE_TIMEOUT_S)
    owner.leave()
    thread.join(MODULE_TIMEOUT_S)
    assert results == ["peer_offline"]


def test_a_late_answer_is_nobodys(make: Make, own: Callable[..., Owner]) -> None:
    reader, owner = make("reader"), own(lambda _asked: None)
    started = time.monotonic()
    assert code_of(lambda: reader.last(owner.session_id)) == "timeout"
    assert 4.9 < time.monotonic() - started < 9.0
    assert owner.answer_late(owner.asked[0].token, pages_of({"e1": "late"})(owner.asked[0]))
    assert reader.health()
    assert not list(reader.events(0.2))


def test_a_wrong_token_answers_nothing(make: Make, daemon: Daemon, own: Callable[..., Owner]) -> None:
    reader, stolen = make("reader"), threading.Event()
    thief = join(daemon, Client, "thief", serves_reads=True)
    thief.connect()

    def serve(asked: ReadAsked) -> Any:
        # Another session says the answer first, under the very token, on its own connection.
        thief._exchange.reads_asked[asked.token] = "last"
        assert thief.answer_read(asked.token, pages_of({"e1": "false"})(asked))
        stolen.set()
        return pages_of({"e1": "true"})(asked)

    owner = own(serve)
    assert reader.last(owner.session_id).text == "true"
    assert stolen.is_set()
    with thief:
        assert thief.health()


def test_an_answer_that_does_not_fit_is_not_passed_on(make: Make, own: Callable[..., Owner]) -> None:
    reader, owner = make("reader"), own(lambda asked: pages_of({"e9": "other"})(asked.replace(entry_id="e9")))
    assert code_of(lambda: reader.last(owner.session_id, "e1")) == "invalid_response"
    with pytest.raises(InvalidRead):
        reader.last(owner.session_id, limit=0)


def test_a_reader_whose_connection_is_gone_says_so(make: Make) -> None:
    reader = make("reader")
    reader.unregister()
    with pytest.raises(Disconnected):
        reader.last("anybody")


# ------------------------------------------------------------------ guarded messages


def test_a_guarded_message_reaches_its_context_and_no_other(make: Make) -> None:
    sender, target = make("sender"), make("target", application_guard="v1")
    [row] = [one for one in sender.list_sessions().rows if one.id == target.session_id]
    assert (row.guarded_delivery, row.application_guard, row.incarnation) == (1, "v1", target.profile.incarnation)
    guard = Guard(
        root_session_id=row.root_session_id,
        peer_id=row.id,
        incarnation=row.incarnation,
        application_guard=row.application_guard,
    )
    hint = {"tool": "publish", "commandId": "00000000-0000-4000-8000-00000000000a"}

    def send(message_id: str) -> Any:
        options: Any = {"message_id": message_id, "delivery": "steer", "guard": guard, "reply_hint": hint}
        return sender.send(target.session_id, "do it", **options)

    assert send("g-1").outcome == "delivered"
    arrived = next(iter(target.events(5.0)))
    assert isinstance(arrived, Inbound)
    assert (arrived.message.guard, arrived.message.reply_hint.tool) == (guard, "publish")
    target.presence(application_guard=None)
    assert target.health()
    withdrawn = send("g-2")
    assert (withdrawn.outcome, withdrawn.code) == ("refused", "guard_stale")
    target.presence(application_guard="v1")
    assert target.health()
    assert send("g-3").outcome == "delivered"
    target.unregister()
    target.register()
    assert send("g-4").code == "guard_stale"
    # What was on its way to the context before is not this one's.
    arrived_ids = [event.message.id for event in target.events(0.3) if isinstance(event, Inbound)]
    assert set(arrived_ids) <= {"g-3"}


def test_a_broken_connection_keeps_consent_for_the_next(daemon: Daemon) -> None:
    with running_daemon() as brief:
        client = Client(
            profile_from_environment(name="x", environ={}, guarded_delivery=True, application_guard="v1"),
            path=brief.socket_path,
        )
        client.connect()
        brief.stop()
        assert [type(event) for event in client.events(5.0)] == [ConnectionEnded]
    client._path = daemon.socket_path
    with client, join(daemon, Client, "looker") as looker:
        [row] = [one for one in looker.list_sessions().rows if one.id == client.session_id]
        assert row.application_guard == "v1"
