"""What outlives a session: killed and started again, in two processes, forked, replaced, left."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.client import Client
from libintercom.errors import ReadFailed
from libintercom.session.errands import ErrandFailed, read_badge, run_errand
from libintercom.session.errors import Forked, NotLive
from libintercom.session.host import Absent, CannotTell, Placed, Placement
from libintercom.session.states import Inactive, Live
from libintercom.wire.messages import Host as Abilities
from tests.support.waiting import wait_until, wait_until_async

if TYPE_CHECKING:
    from collections.abc import Sequence

    from libintercom.session.host import HostInput
    from tests.support.daemon import Daemon
    from tests.support.sessions import Site

TIMEOUT_S = 10.0


def texts(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]


def test_a_killed_session_offers_what_was_admitted_again(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a:
        with place.actor("b") as first:
            for text in texts(5):
                assert a.send("b", text).outcome == "delivered"
            assert first.tell("take")["text"] == "m0"
            assert first.tell("take")["text"] == "m1"
            first.kill()
        wait_until(lambda: "b" not in [row.name for row in a.list_sessions().rows], "the killed session to be gone")
        with place.actor("b") as second:
            a.send("b", "new")
            # m1 was placed; nobody knows whether it was read, and it is never placed twice.
            assert [second.tell("take")["text"] for _ in range(4)] == ["m2", "m3", "m4", "new"]


def test_an_answered_ask_is_not_revived_and_an_open_one_still_waits(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.join_blocking("c") as c:
        with place.actor("b") as first:
            answered = a.send("b", "answered?", expects_reply=True, delivery="steer")
            first.tell("take")
            assert first.tell("reply", "yes", answered.message_id) == "delivered"
            still_open = c.send("b", "open?", expects_reply=True, delivery="steer")
            first.tell("take")
            first.kill()
        with place.actor("b") as second:
            assert [view["messageId"] for view in second.tell("pending")] == [still_open.message_id]
            assert second.tell("reply", "again", answered.message_id) == "not_sent"
            assert second.tell("reply", "late but true") == "delivered"
            arrival = c.next_inbound(TIMEOUT_S)
            assert arrival is not None
            assert (arrival.message.content.text, arrival.message.reply_to) == ("late but true", still_open.message_id)
            assert second.tell("pending") == []


def test_a_reply_that_an_ask_got_is_no_message_after_a_restart(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a:
        with place.actor("b") as first:
            first.begin("ask", "a", "?")
            question = a.next_inbound(TIMEOUT_S)
            assert a.reply(question, "!", message_id="reply-1").outcome == "delivered"
            assert first.read() == "reply-1"
            first.kill()
        with place.actor("b") as second, place.join_blocking("c") as c:
            # The same ID once more, from somebody whose own memory of it the broker does not share.
            assert c.send("b", "a second copy", message_id="reply-1").outcome == "delivered"
            a.send("b", "next")
            assert second.tell("take")["text"] == "next"


def test_receipts_survive_a_cold_reopen_and_a_departed_sender(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.actor("b") as first:
        sent = a.send("b", "text\r\n")
        sender = a.session_id
        first.tell("take")
    with place.actor("b"), place.join_blocking("c") as c:
        receipt = c.receipt("b", "native-b", sent.message_id)
        assert (receipt["sender"]["peerId"], receipt["placementEntryId"]) == (sender, sent.message_id)
        with place.actor("fork", "native-fork"), pytest.raises(ReadFailed) as failed:
            c.receipt("fork", "native-b", sent.message_id)
        assert failed.value.code == "publication_unavailable"


def test_a_second_process_with_the_same_native_id_runs_without_a_journal(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.actor("b") as first, place.actor("b2", "native-b") as second:
        assert first.tell("note") == ""
        assert f"in use by process {first.pid}" in second.tell("note")
        assert "runs without a journal" in second.tell("note")
        # The newcomer got another peer ID, and works.
        assert first.session_id != second.session_id
        a.send("b2", "hello")
        assert second.tell("take")["text"] == "hello"


def test_another_native_id_adopts_nothing(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a:
        with place.actor("b") as first:
            a.send("b", "for b", expects_reply=True, delivery="steer")
            first.tell("pending")
            first.kill()
        with place.actor("b", "native-other") as other:
            assert other.tell("pending") == []
            a.send("b", "for the other")
            assert other.tell("take")["text"] == "for the other"


def test_leaving_joins_what_was_admitted(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a:
        with place.join_blocking("b") as b:
            for text in texts(50):
                a.send("b", text)
            b.leave()
            assert isinstance(b.state, Inactive)
            assert b.session_id == ""
            with pytest.raises(NotLive, match="has left"):
                b.send("a", "too late")
        with place.join_blocking("b") as b:
            assert [arrival.message.content.text for arrival in b.inbound(timeout_s=0.5)] == texts(50)
    assert place.failures == []


def test_a_full_disk_delays_and_loses_nothing(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.actor("b") as b:
        a.send("b", "before")
        assert b.tell("take")["text"] == "before"
        b.tell("limit_files", 0)
        for text in texts(3):
            assert a.send("b", text).outcome == "delivered"
        # Not stored, so not offered.
        assert b.tell("take", 1.0) is None
        b.tell("limit_files", -1)
        assert [b.tell("take")["text"] for _ in range(3)] == texts(3)
        assert b.tell("leave")
    assert "takes no more entries" in b.errors
    # Said once, though it was tried more than once.
    assert b.errors.count("\n") == 1


def test_leaving_with_a_full_backlog_loses_nothing(
    place: Site, broker: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libintercom.session.engine.MAX_UNPLACED", 5)
    with place.join_blocking("a") as a:
        with place.join_blocking("b"):
            for text in texts(30):
                assert a.send("b", text).outcome == "delivered"
        monkeypatch.undo()
        with place.join_blocking("b") as b:
            assert [arrival.message.content.text for arrival in b.inbound(timeout_s=0.5)] == texts(30)
    assert place.failures == []


def test_a_replaced_context_starts_its_own_journal(place: Site, broker: Daemon) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(await place.join("a"))
            b = await stack.enter_async_context(await place.join("b"))
            old = b.session_id
            b.set_application_guard(_target(b), "g1")
            await a.send("b", "for the old one")
            await b.replace_context("native-new", "incarnation-2")
            assert b.state == Live(session="native-new", incarnation="incarnation-2")
            assert b.session_id != old
            row = next(row for row in (await a.list_sessions()).rows if row.name == "b")
            assert (row.root_session_id, row.incarnation) == ("native-new", "incarnation-2")
            assert row.application_guard is None
            await a.send("b", "for the new one")
            arrival = await b.next_inbound(TIMEOUT_S)
            assert arrival is not None
            assert arrival.message.content.text == "for the new one"
            # In time, that is by itself: nothing was left hanging at the host.
            assert place.failures == []
            # And back: what waited for it is still there.
            await b.replace_context("native-b", "incarnation-3")
            arrival = await b.next_inbound(TIMEOUT_S)
            assert arrival is not None
            assert arrival.message.content.text == "for the old one"

    asyncio.run(run())


def test_a_forked_program_may_not_use_the_session(place: Site, broker: Daemon) -> None:
    with place.join_blocking("b") as b:
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            found = b"?"
            try:
                b.send("b", "x")
            except Forked:
                found = b"F"
            finally:
                os.write(write_end, found)
                os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)
        assert os.read(read_end, 1) == b"F"
        os.close(read_end)
        os.close(write_end)
        assert b.is_connected
        assert len(b.list_sessions().rows) == 1


class Recording:
    """A host that takes batches in and says later, or never, that it has them."""

    reply_call = ""

    def __init__(self, finding: Any) -> None:
        self.finding = finding
        self.batches: list[list[str]] = []

    @property
    def abilities(self) -> Abilities:
        return Abilities(steer=True, wake=True, turn_end=True, prompt_only=False)

    def can_accept_asks(self) -> bool:
        return True

    async def place(self, batch: Sequence[HostInput]) -> Placement:
        self.batches.append([one.inbound.message.content.text for one in batch])
        return Placement(entries={})

    def find_placement(self, message_id: str) -> Any:
        return self.finding

    def wake(self) -> None:
        """Nothing."""

    def last_response(self, entry: str | None, offset: int, limit: int) -> Any:
        return None


@pytest.mark.parametrize(
    ("finding", "placed", "pending"),
    [
        (Absent(), [["handed"]], []),
        (Placed(entry_id="e-1"), [], []),
        (CannotTell(reason="its history is gone"), [], ["uncertain"]),
    ],
)
def test_what_was_handed_is_judged_by_the_hosts_word(
    place: Site, broker: Daemon, finding: Any, placed: list[Any], pending: list[str]
) -> None:
    first = Recording(Absent())
    second = Recording(finding)

    async def run() -> None:
        async with await place.join("a") as a:
            b = await place.join("b", host=first)
            sent = await a.send("b", "handed")
            await wait_until_async(lambda: first.batches, "the batch")
            await _vanish(b)
            async with await place.join("b", host=second) as again:
                receipt = await a.receipt("b", "native-b", sent.message_id)
                await wait_until_async(lambda: second.batches == placed, "recovery")
                await wait_until_async(lambda: [view["kind"] for view in again.pending()] == pending, "its outcome")
                assert receipt["nativeHandoff"]
                if pending:
                    await again.place(sent.message_id)
                    await wait_until_async(lambda: second.batches == [["handed"]], "a person's decision to count")
                    assert again.pending() == []
                again.placed({sent.message_id: "e-2"})

    asyncio.run(run())


def test_an_uncertain_message_can_be_discarded_for_good(place: Site, broker: Daemon) -> None:
    async def run() -> None:
        async with await place.join("a") as a:
            first = Recording(Absent())
            b = await place.join("b", host=first)
            sent = await a.send("b", "handed")
            await wait_until_async(lambda: first.batches, "the batch")
            await _vanish(b)
            async with await place.join("b", host=Recording(CannotTell(reason="?"))) as again:
                await wait_until_async(again.pending, "the uncertain message")
                await again.discard(sent.message_id)
                assert again.pending() == []
                assert (await a.receipt("b", "native-b", sent.message_id))["discarded"]
            third = Recording(Absent())
            async with await place.join("b", host=third) as last:
                assert (last.pending(), third.batches) == ([], [])

    asyncio.run(run())


def test_an_errand_asks_the_process_that_holds_the_journal(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.join_blocking("b") as b:
        asked = a.send("b", "which port?", expects_reply=True, delivery="steer")
        arrival = b.next_inbound(TIMEOUT_S)
        assert arrival is not None
        badge = read_badge(place.places.journals, "native-b")
        assert badge is not None
        assert (badge.pid, badge.peer_id) == (os.getpid(), b.session_id)
        with Client(place.profile("shell"), path=place.places.socket) as shell:
            (view,) = run_errand(shell, badge, "pending")["pending"]
            assert (view["messageId"], view["text"]) == (asked.message_id, "which port?")
            outcome = run_errand(shell, badge, "reply", text="8443", reply_to=asked.message_id)["outcome"]
            assert outcome["outcome"] == "delivered"
            again = run_errand(shell, badge, "reply", text="8444")["outcome"]
            assert (again["outcome"], again["code"]) == ("not_sent", "no_pending_ask")
        answer = a.next_inbound(TIMEOUT_S)
        assert answer is not None
        assert (answer.message.content.text, answer.message.reply_to) == ("8443", asked.message_id)
        assert answer.row.name == "b"
        # No errand was ever a message of the session.
        assert b.pending() == []
        assert b.next_inbound(0.0) is None
    assert read_badge(place.places.journals, "native-b") is None
    with Client(place.profile("shell"), path=place.places.socket) as shell, pytest.raises(ErrandFailed):
        run_errand(shell, badge, "pending")


def test_an_errand_without_the_key_is_an_ordinary_question(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.join_blocking("b") as b:
        content = '{"v":1,"key":"00000000000000000000000000000000","action":"pending"}'
        forged = {"type": "context", "name": "intercom-errand", "content": content}
        a.send("b", "x", attachments=[forged], expects_reply=True, delivery="steer")
        arrival = b.next_inbound(TIMEOUT_S)
        assert arrival is not None
        assert len(b.pending()) == 1


def _target(session: Any) -> dict[str, Any]:
    profile = session.profile
    return {
        "rootSessionId": profile.root_session_id,
        "peerId": session.session_id,
        "incarnation": profile.incarnation,
    }


async def _vanish(session: Any) -> None:
    """What a kill leaves behind, without a process of its own: no word to the host, the inbox or the journal."""
    await session._line.hang_up()
    await session._tenure.release()
