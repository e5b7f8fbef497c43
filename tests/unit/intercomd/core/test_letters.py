"""Dead letters: how many and how long, when their senders are told, and what fits an answer."""

from __future__ import annotations

import pytest

from intercomd.core.effects import Log, Store, Write
from intercomd.core.letters import Letters
from intercomd.core.limits import Limits
from intercomd.core.roster import Roster, Session
from intercomd.core.rows import RowBytes
from intercomd.core.storing import Storing
from intercomd.core.turn import Turn
from libintercom.wire.answers import DeadLetterNotice
from libintercom.wire.codec import encode
from libintercom.wire.frames import MAX_FRAME_BYTES
from libintercom.wire.messages import Registration
from tests.support.conversation import Conversation
from tests.support.sayings import replace

AT_MS = 1_700_000_000_000
DAY_S = 86_400.0


class Desk:
    """Letters of one broker life with one sender."""

    def __init__(self, *, has_ext: bool = True, **limits: float) -> None:
        self.turn, self.roster = Turn(0.0, AT_MS), Roster()
        self.letters = Letters(Limits(**limits), self.roster, self.turn, Storing(self.turn, "life-1"), "life-1")
        row = Registration(cwd="/", model="m")
        self.sender = Session(1, "a", row, RowBytes("a", row, "epoch", AT_MS), has_ext=has_ext)
        self.roster.join(self.sender)

    def bury(self, *message_ids: str) -> Desk:
        for message_id in message_ids:
            self.letters.bury(self.sender, "b", message_id, "discarded")
        return self

    def letter_ids(self) -> list[str]:
        return [effect.item.key for effect in self.turn.effects if isinstance(effect, Store)]

    def ids(self, since_ms: float = 0) -> list[str]:
        answer, _size_bytes = self.letters.of_sender(self.sender, "r", since_ms)
        return [letter.message_id for letter in answer.letters]


def test_a_letter_is_to_be_stored_and_its_sender_is_told_once_it_was() -> None:
    desk = Desk().bury("m1")
    (store,) = desk.turn.effects
    assert isinstance(store, Store)
    letter = store.item.read()["letter"]
    assert (store.item.kind, letter["messageId"], letter["atMs"]) == ("letter", "m1", AT_MS)
    desk.turn.begin(1.0)
    desk.letters.stored(store.item.key)
    notice = DeadLetterNotice(message_id="m1", recipient_id="b", reason="discarded", at_ms=AT_MS)
    assert desk.turn.effects == [Write(1, notice)]
    desk.turn.begin(2.0)
    desk.letters.stored(store.item.key)
    desk.letters.store_failed("unknown", "why")
    assert [type(effect) for effect in desk.turn.effects] == [Log]


def test_a_store_that_failed_is_logged_and_the_sender_is_told_all_the_same() -> None:
    desk = Desk().bury("m1")
    (letter_id,) = desk.letter_ids()
    desk.turn.begin(1.0)
    desk.letters.store_failed(letter_id, "disk full")
    log, told = desk.turn.effects
    assert log == Log("error", "dead letter not stored", {"letter": letter_id, "reason": "disk full"})
    assert isinstance(told, Write)
    assert desk.ids() == ["m1"]


def test_a_sender_without_extensions_or_gone_is_not_told() -> None:
    for desk in (Desk(has_ext=False).bury("m1"), Desk().bury("m1")):
        if desk.sender.has_ext:
            desk.roster.leave(desk.sender)
        (letter_id,) = desk.letter_ids()
        desk.turn.begin(1.0)
        desk.letters.stored(letter_id)
        assert desk.turn.effects == []


def test_letters_have_ids_of_their_own_that_count_nothing() -> None:
    one, other = Desk().bury("m1", "m2").letter_ids(), Desk(letters=5).bury("m1").letter_ids()
    assert len(set(one)) == 2
    assert one[0] == other[0]
    assert all(len(letter_id) == 32 for letter_id in one)


def test_exactly_so_many_are_kept_the_newest() -> None:
    desk = Desk(letters=3).bury("m1", "m2", "m3")
    assert desk.ids() == ["m1", "m2", "m3"]
    desk.bury("m4")
    assert desk.ids() == ["m2", "m3", "m4"]
    assert len(desk.letters) == 3


def test_they_are_kept_for_seven_days() -> None:
    desk = Desk().bury("m1")
    desk.turn.begin(1.0)
    desk.bury("m2")
    desk.turn.begin(7 * DAY_S)
    assert desk.ids() == ["m1", "m2"]
    desk.turn.begin(7 * DAY_S + 1)
    assert desk.ids() == ["m2"]
    assert len(desk.letters) == 1


def test_one_that_was_dropped_before_its_store_answered_is_still_announced() -> None:
    desk = Desk(letters=1).bury("m1", "m2")
    letter_id = desk.letter_ids()[0]
    desk.turn.begin(1.0)
    desk.letters.stored(letter_id)
    assert [effect.frame.message_id for effect in desk.turn.effects if isinstance(effect, Write)] == ["m1"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("request_id", ["r", "\x00" * 1_000])
def test_as_many_as_fit_a_frame_are_answered_and_the_rest_is_counted(request_id: str) -> None:
    desk = Desk()
    desk.bury(*[f"{number:04d}" + '"' * 1_000 for number in range(600)])
    answer, size_bytes = desk.letters.of_sender(desk.sender, request_id, 0)
    payload = encode(answer)
    assert len(payload) <= size_bytes <= MAX_FRAME_BYTES
    assert len(payload) > MAX_FRAME_BYTES - 5_000
    assert answer.omitted == 600 - len(answer.letters)
    assert answer.letters[0].message_id.startswith("0000")


def test_nothing_omitted_is_not_mentioned() -> None:
    answer, _size_bytes = Desk().bury("m1").letters.of_sender(Desk().sender, "r", 0)
    assert answer.omitted is None


@pytest.mark.parametrize(("spool", "is_stored"), [("waits", True), ("waits", False), ("fails", False)])
def test_the_senders_notice_waits_for_the_store(spool: str, is_stored: bool) -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob", status="idle")
    talk.spool = spool
    talk.says("a", replace("bob", "m1", "t")).hangs_up("b")
    told = [{"type": "delivery_queued", "...": True}, {"type": "session_left", "...": True}]
    notice = {"type": "dead_letter", "messageId": "m1", "...": True}
    if spool == "waits":
        talk.expects("a", *told).stores(is_stored=is_stored).expects("a", notice)
    else:
        talk.expects("a", *told, notice)
    assert bool([effect for effect in talk.log if effect.level == "error"]) is not is_stored
