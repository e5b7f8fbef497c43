"""The engine with the real inbox: what is on record before what, what a failing journal means, and the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libintercom.inbound import AskEnded
from libintercom.session import engine as engines
from libintercom.session.errors import JournalStopped
from libintercom.session.happenings import DiscardChosen, TurnEnded, TurnStarted
from libintercom.session.host import CannotTell, HostFailed, HostRefused, Placed, Placement, QueueHost
from tests.support.arrivals import ask, inbound
from tests.support.engine_rig import Rig, play
from tests.support.held_ledger import Full, HeldLedger
from tests.support.waiting import wait_until_async


def test_nothing_is_offered_before_it_is_stored() -> None:
    async def story(rig: Rig) -> None:
        await rig.engine.admit(inbound("m"))
        assert [entry.kind for entry in rig.ledger.held[0].entries] == ["admitted", "handed"]
        assert rig.host.batches == []
        rig.ledger.release()
        await wait_until_async(lambda: rig.host.batches, "the batch")
        assert rig.host.batches == [["m"]]
        rig.ledger.is_holding = False
        rig.ledger.release()
        await rig.settled()
        assert rig.ledger.kinds == ["admitted", "handed", "placed"]
        assert rig.host.wakes == 1

    play(story, ledger=HeldLedger(is_holding=True))


def test_what_cannot_be_stored_waits_in_order_and_nothing_is_read_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libintercom.session.retrying.FIRST_PAUSE_S", 0.01)

    async def story(rig: Rig) -> None:
        rig.ledger.failure = Full()
        for one in ("m", "n"):
            await rig.engine.admit(inbound(one))
        await rig.settled()
        third = asyncio.ensure_future(rig.engine.admit(inbound("o")))
        await wait_until_async(lambda: rig.mends >= 2, "two attempts")
        assert not third.done()
        assert (rig.host.batches, rig.failures) == ([], ["the disk is full."])
        rig.ledger.failure = None
        await third
        await rig.settled()
        assert [one for batch in rig.host.batches for one in batch] == ["m", "n", "o"]
        # It works again, so the next failure is news.
        rig.ledger.failure = Full()
        last = asyncio.ensure_future(rig.engine.admit(inbound("p")))
        await wait_until_async(lambda: len(rig.failures) == 2, "the second failure")
        last.cancel()

    play(story)


def test_a_journal_that_cannot_be_asked_admits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libintercom.session.retrying.FIRST_PAUSE_S", 0.01)

    class Unreadable(HeldLedger):
        is_readable = False

        def find(self, message_id: str) -> Any:
            if not self.is_readable:
                raise Full
            return super().find(message_id)

    ledger = Unreadable()

    async def story(rig: Rig) -> None:
        admitting = asyncio.ensure_future(rig.engine.admit(inbound("m")))
        assert "the disk is full" in await rig.engine.record_reply(inbound("r", replyTo="ours"))
        await wait_until_async(lambda: rig.mends, "an attempt")
        assert rig.host.batches == []
        ledger.is_readable = True
        await admitting
        await rig.settled()
        assert rig.host.batches == [["m"]]

    play(story, ledger=ledger)


def test_what_was_never_stored_is_said_at_the_end() -> None:
    async def story(rig: Rig) -> None:
        rig.ledger.failure = Full()
        await rig.engine.admit(inbound("m"))
        await rig.settled()
        await rig.engine.settle_arrears()
        assert await rig.engine.shut_down(5)
        assert "1 messages came and were never stored" in rig.failures[-1]

    play(story)


def test_a_repetition_is_not_offered_and_no_failure() -> None:
    async def story(rig: Rig) -> None:
        for _ in range(2):
            await rig.engine.admit(inbound("m"))
            await rig.settled()
        assert (rig.host.batches, rig.failures) == ([["m"]], [])

    play(story)


def test_reading_pauses_while_too_many_checkpoints_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "MAX_ADMITTING", 3)

    async def story(rig: Rig) -> None:
        for number in range(2):
            await asyncio.wait_for(rig.engine.admit(inbound(f"m{number}")), 1)
        third = asyncio.ensure_future(rig.engine.admit(inbound("m2")))
        await asyncio.wait([third], timeout=0)
        assert not third.done()
        rig.ledger.is_holding = False
        rig.ledger.release()
        await third

    play(story, ledger=HeldLedger(is_holding=True))


def test_reading_pauses_while_the_host_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "MAX_UNPLACED", 3)

    async def story(rig: Rig) -> None:
        admitting = [asyncio.ensure_future(rig.engine.admit(inbound(f"m{number}"))) for number in range(3)]
        await asyncio.wait(admitting[:2])
        await rig.settled()
        assert not admitting[2].done()
        assert await rig.engine.record_placement("m0")
        await admitting[2]

    play(story, host=QueueHost())


def test_at_the_end_everything_that_was_read_is_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "MAX_UNPLACED", 1)

    async def story(rig: Rig) -> None:
        first = asyncio.ensure_future(rig.engine.admit(inbound("m0")))
        await asyncio.wait([first], timeout=0)
        assert not first.done()
        rig.engine.hurry()
        await first
        await rig.engine.admit(inbound("m1"))
        await rig.settled()
        assert rig.ledger.find("m1") is not None

    play(story, host=QueueHost())


@pytest.mark.parametrize(("failure", "batches"), [(HostRefused("full"), 2), (HostFailed("broke off"), 2)])
def test_what_the_host_did_not_take_is_offered_again(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, batches: int
) -> None:
    monkeypatch.setattr("libintercom.session.retrying.FIRST_PAUSE_S", 0.01)

    async def story(rig: Rig) -> None:
        good, failures = rig.host.on_place, [failure]

        def place(batch: Any) -> Placement:
            if failures:
                raise failures.pop()
            return good(batch)

        rig.host.on_place = place
        await rig.engine.admit(inbound("m"))
        await wait_until_async(lambda: rig.ledger.kinds[-1:] == ["placed"], "the second try")
        assert rig.host.batches == [["m"]] * batches
        assert rig.failures == [str(failure)]

    play(story)


@pytest.mark.parametrize(
    ("finding", "kind"), [(Placed(entry_id="e"), "placed"), (CannotTell(reason="gone"), "uncertain")]
)
def test_an_unsure_host_is_asked_before_anything_is_offered_again(finding: Any, kind: str) -> None:
    async def story(rig: Rig) -> None:
        def place(_batch: Any) -> Placement:
            raise HostFailed("broke off")

        rig.host.on_place, rig.host.finding = place, finding
        await rig.engine.admit(inbound("m"))
        await wait_until_async(lambda: rig.ledger.kinds[-1:] == [kind], "the host's word")
        assert rig.host.batches == [["m"]]

    play(story)


class TestReplies:
    def test_a_reply_leaves_once_that_is_on_record_and_settles_its_question(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(ask("q"))
            await rig.settled()
            rig.ledger.is_holding = True
            beginning = asyncio.ensure_future(rig.engine.begin_reply("q", "r"))
            await wait_until_async(lambda: rig.ledger.held, "the checkpoint")
            assert not beginning.done()
            rig.ledger.is_holding = False
            rig.ledger.release()
            assert await beginning == ""
            rig.engine.end_reply("q", "r", is_accepted=True)
            await rig.engine.flush()
            assert (rig.pending, rig.ledger.kinds[-2:]) == ([], ["answering", "replied"])

        play(story)

    def test_without_a_record_it_does_not_leave(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(ask("q"))
            await rig.settled()
            rig.ledger.failure = Full()
            assert "the disk is full" in await rig.engine.begin_reply("q", "r")
            assert rig.pending == ["q"]

        play(story)

    def test_who_gives_up_replying_leaves_the_question_open(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(ask("q"))
            await rig.settled()
            rig.ledger.is_holding = True
            beginning = asyncio.ensure_future(rig.engine.begin_reply("q", "r"))
            await wait_until_async(lambda: rig.ledger.held, "the checkpoint")
            beginning.cancel()
            await asyncio.wait([beginning])
            rig.ledger.is_holding = False
            rig.ledger.release()
            await rig.settled()
            assert (rig.pending, rig.ledger.kinds[-2:]) == (["q"], ["answering", "unanswered"])
            assert await rig.engine.begin_reply("q", "s") == ""

        play(story)

    def test_a_question_that_nobody_asked_gets_none(self) -> None:
        async def story(rig: Rig) -> None:
            assert await rig.engine.begin_reply("q", "r")

        play(story)

    @pytest.mark.parametrize("is_accepted", [False, None])
    def test_what_was_not_accepted_leaves_the_question_open(self, is_accepted: bool | None) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(ask("q"))
            await rig.settled()
            await rig.engine.begin_reply("q", "r")
            rig.engine.end_reply("q", "r", is_accepted=is_accepted)
            await rig.engine.flush()
            assert rig.pending == ["q"]

        play(story)

    def test_a_retired_question_is_closed(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(ask("q"))
            await rig.settled()
            changes = rig.changes
            rig.engine.happen(AskEnded(message_id="q", asker_id="pi-peer", reason="timeout"))
            assert (rig.pending, rig.changes > changes) == ([], True)

        play(story)

    def test_a_reply_to_an_ask_of_ours_counts_once_recorded(self) -> None:
        async def story(rig: Rig) -> None:
            assert await rig.engine.record_reply(inbound("r", replyTo="ours")) == ""
            assert rig.ledger.kinds == ["reply_received"]
            assert "already" in await rig.engine.record_reply(inbound("r", replyTo="ours"))
            rig.ledger.failure = Full()
            assert "the disk is full" in await rig.engine.record_reply(inbound("s", replyTo="ours"))
            # And it is never a message of its own.
            rig.ledger.failure = None
            await rig.engine.admit(inbound("r", replyTo="ours"))
            await rig.settled()
            assert rig.host.batches == []

        play(story)


class TestPlacements:
    def test_a_taken_message_is_placed_on_record(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(inbound("m"))
            await rig.settled()
            assert await rig.engine.record_placement("m")
            assert rig.ledger.receipt_rows("m")[-1].body == {"placement": "m"}
            # A second time it is not the host's to take.
            assert not await rig.engine.record_placement("m")

        play(story, host=QueueHost())

    def test_one_that_cannot_be_recorded_is_tried_again(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(inbound("m"))
            await rig.settled()
            rig.ledger.failure = Full()
            for _ in range(2):
                with pytest.raises(JournalStopped):
                    await rig.engine.record_placement("m")
            rig.ledger.failure = None
            assert await rig.engine.record_placement("m")
            assert rig.ledger.kinds.count("placed") == 1

        play(story, host=QueueHost())

    def test_what_was_never_here_is_nobodys(self) -> None:
        async def story(rig: Rig) -> None:
            assert not await rig.engine.record_placement("m")

        play(story, host=QueueHost())


class TestTheEnd:
    def test_shutting_down_joins_what_was_admitted(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(inbound("m"))
            ending = asyncio.ensure_future(rig.engine.shut_down(5))
            await asyncio.wait([ending], timeout=0)
            assert not ending.done()
            rig.ledger.is_holding = False
            rig.ledger.release()
            assert await ending
            # On record, and not offered any more, or offered and placed: never in between.
            standing = rig.ledger.find("m")
            assert standing is not None
            assert standing.kind in ("queued", "placed")

        play(story, ledger=HeldLedger(is_holding=True))

    def test_a_host_that_never_answers_is_left(self) -> None:
        async def story(rig: Rig) -> None:
            async def never(_batch: Any) -> None:
                await asyncio.get_running_loop().create_future()

            rig.host.on_place = never
            await rig.engine.admit(inbound("m"))
            await wait_until_async(lambda: rig.host.batches, "the call")
            assert not await rig.engine.shut_down(0.05)
            standing = rig.ledger.find("m")
            assert standing is not None
            assert standing.kind == "handed"

        play(story)

    def test_an_invalidated_context_neither_stores_nor_places(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(ask("q"))
            await rig.settled()
            stored, batches = list(rig.ledger.kinds), list(rig.host.batches)
            rig.engine.invalidate()
            await rig.engine.admit(inbound("late"))
            rig.engine.happen(TurnStarted())
            rig.engine.happen(TurnEnded(is_ok=True, consumed_ids=("q",)))
            rig.engine.happen(DiscardChosen(message_id="q", reason=""))
            assert await rig.engine.begin_reply("q", "r")
            assert await rig.engine.record_reply(inbound("r", replyTo="ours"))
            assert not await rig.engine.record_placement("q")
            await rig.settled()
            assert (rig.ledger.kinds, rig.host.batches) == (stored, batches)

        play(story)

    def test_a_stale_checkpoint_offers_nothing(self) -> None:
        async def story(rig: Rig) -> None:
            await rig.engine.admit(inbound("m"))
            rig.engine.invalidate()
            rig.ledger.release()
            await rig.settled()
            assert rig.host.batches == []

        play(story, ledger=HeldLedger(is_holding=True))
