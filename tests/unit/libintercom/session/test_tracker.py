"""Which questions wait, and which one a reply means."""

from __future__ import annotations

import pytest

from libintercom.errors import NoPendingAsk
from libintercom.pending import MAX_PENDING
from libintercom.session.tracker import Tracker
from tests.support.inbox_rig import NOW_MS, inbound


def tracker_of(*message_ids: str, shown: tuple[str, ...] = ()) -> Tracker:
    tracker = Tracker()
    for message_id in message_ids:
        tracker.open(inbound(message_id, expectsReply=True), NOW_MS)
    for message_id in shown:
        tracker.show(message_id)
    return tracker


def target_of(tracker: Tracker) -> str:
    try:
        return tracker.resolve().message_id
    except NoPendingAsk:
        return ""


def test_the_only_question_is_meant():
    assert target_of(tracker_of("q1")) == "q1"
    assert target_of(tracker_of("q1", "q2")) == ""


def test_in_a_turn_the_first_shown_question_is_meant():
    tracker = tracker_of("q1", "q2", "q3", shown=("q3", "q2"))
    tracker.start_turn()
    assert target_of(tracker) == "q2"
    tracker.end_turn()
    assert target_of(tracker) == ""


def test_a_question_shown_during_a_turn_is_meant_when_there_was_none():
    tracker = tracker_of("q1", "q2")
    tracker.start_turn()
    assert target_of(tracker) == ""
    tracker.show("q2")
    tracker.show("q1")
    assert target_of(tracker) == "q2"


def test_an_answered_target_has_no_successor_in_its_turn():
    tracker = tracker_of("q1", "q2", "q3", shown=("q1", "q2", "q3"))
    tracker.start_turn()
    tracker.close("q1")
    assert target_of(tracker) == ""
    tracker.start_turn()
    assert target_of(tracker) == "q2"


def test_a_reply_on_its_way_holds_its_question():
    tracker = tracker_of("q1")
    assert tracker.begin_reply("q1", "r1")
    assert not tracker.begin_reply("q1", "r2")
    with pytest.raises(NoPendingAsk, match="on its way: message r1"):
        tracker.resolve("q1")
    assert target_of(tracker) == ""


def test_a_reply_that_did_not_leave_frees_its_question():
    tracker = tracker_of("q1", shown=("q1",))
    tracker.start_turn()
    tracker.begin_reply("q1", "r1")
    tracker.take_back_reply("q1", "r1")
    assert target_of(tracker) == "q1"


def test_a_doubted_reply_leaves_its_question_to_who_names_it():
    tracker = tracker_of("q1")
    tracker.begin_reply("q1", "r1")
    tracker.doubt_reply("q1", "r1")
    assert target_of(tracker) == ""
    assert tracker.resolve("q1").reply_id == "r1"
    assert tracker.begin_reply("q1", "r2")
    tracker.take_back_reply("q1", "r2")
    assert tracker.resolve("q1").reply_id == "r1"
    tracker.take_back_reply("q1", "r1")
    assert target_of(tracker) == "q1"


def test_an_earlier_doubt_is_taken_back_while_another_reply_leaves():
    tracker = tracker_of("q1")
    tracker.doubt_reply("q1", "r1")
    tracker.begin_reply("q1", "r2")
    tracker.take_back_reply("q1", "r1")
    tracker.take_back_reply("q1", "r2")
    assert target_of(tracker) == "q1"


def test_a_reply_to_nothing_does_not_begin():
    assert not tracker_of().begin_reply("q1", "r1")
    tracker = tracker_of()
    tracker.doubt_reply("q1", "r1")
    tracker.take_back_reply("q1", "r1")
    assert len(tracker) == 0


def test_one_more_than_the_limit_evicts_the_oldest():
    tracker = tracker_of(*(f"q{number}" for number in range(MAX_PENDING)))
    assert tracker.open(inbound("one more", expectsReply=True), NOW_MS) == "q0"
    assert len(tracker) == MAX_PENDING
    assert "q0" not in tracker


def test_a_closed_question_never_comes_back():
    tracker = tracker_of("q1")
    assert tracker.close("q1")
    assert not tracker.close("q1")
    assert tracker.open(inbound("q1", expectsReply=True), NOW_MS) == ""
    assert len(tracker) == 0


def test_views_say_what_is_known_of_each():
    tracker = tracker_of("q1", "q2", shown=("q2",))
    tracker.start_turn()
    told = [(view.message_id, view.sender, view.text, view.is_shown, view.is_target) for view in tracker.views()]
    assert told == [("q1", "ann", "hi", False, False), ("q2", "ann", "hi", True, True)]
    tracker.begin_reply("q2", "r1")
    assert [(view.is_target, view.reply_id) for view in tracker.views()] == [(False, ""), (False, "r1")]
