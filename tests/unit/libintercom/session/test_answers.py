"""Questions that wait, as conversations with an inbox."""

from __future__ import annotations

import pytest

from libintercom.inbound import AskEnded, PeerLeft
from libintercom.pending import MAX_PENDING
from libintercom.session import happenings, steps
from tests.support.inbox_rig import (
    InboxRig,
    ended_turn,
    inbound,
    names,
    reopened,
    took,
)

# ------------------------------------------------------------------ questions


@pytest.fixture
def asked() -> InboxRig:
    rig = InboxRig()
    rig.arrives("q1", expectsReply=True)
    rig.does(took("q1"))
    return rig


def test_a_reply_leaves_after_it_is_on_record_and_closes_its_question(asked: InboxRig):
    (checkpoint,) = asked.tell(happenings.ReplyBegan(ask_id="q1", reply_id="r1"))
    assert [(entry.kind, entry.body) for entry in checkpoint.entries] == [("answering", {"by": "r1"})]
    (send,) = asked.tell(happenings.Checkpointed(entry_ids=checkpoint.entry_ids))
    assert send == steps.SendReply(ask_id="q1", reply_id="r1")
    asked.does(happenings.ReplyEnded(ask_id="q1", reply_id="r1", is_accepted=True))
    assert (asked.kinds("q1")[-1], len(asked.inbox.tracker)) == ("replied", 0)


def test_a_refused_reply_leaves_its_question_open(asked: InboxRig):
    asked.entries += asked.tell(happenings.ReplyBegan(ask_id="q1", reply_id="r1"))[0].entries
    asked.does(happenings.ReplyEnded(ask_id="q1", reply_id="r1", is_accepted=False))
    assert asked.inbox.tracker.resolve().message_id == "q1"
    assert reopened(asked)[0].inbox.tracker.resolve().message_id == "q1"


def test_after_a_crash_a_reply_that_may_have_left_is_not_given_again_by_chance(asked: InboxRig):
    asked.does(happenings.ReplyBegan(ask_id="q1", reply_id="r1"))
    (view,) = reopened(asked)[0].inbox.tracker.views()
    assert (view.reply_id, view.is_target) == ("r1", False)


def test_a_reply_is_refused_when_it_cannot_be_recorded(asked: InboxRig):
    (checkpoint,) = asked.tell(happenings.ReplyBegan(ask_id="q1", reply_id="r1"))
    (told,) = asked.tell(happenings.CheckpointFailed(entry_ids=checkpoint.entry_ids, reason="disk full"))
    assert told == steps.RefuseReply(ask_id="q1", reply_id="r1", reason="the journal cannot record it: disk full")
    assert asked.inbox.tracker.resolve().message_id == "q1"


def test_a_reply_to_a_question_that_ended_meanwhile_does_not_leave(asked: InboxRig):
    (checkpoint,) = asked.tell(happenings.ReplyBegan(ask_id="q1", reply_id="r1"))
    asked.tell(AskEnded(message_id="q1", asker_id="pi-ann00001", reason="timeout"))
    assert names(asked.tell(happenings.Checkpointed(entry_ids=checkpoint.entry_ids))) == ["RefuseReply"]


@pytest.mark.parametrize(
    ("reason", "kind"), [("timeout", "expired"), ("cancelled", "retired"), ("asker_left", "retired")]
)
def test_the_end_of_a_wait_is_on_record(asked: InboxRig, reason: str, kind: str):
    asked.does(AskEnded(message_id="q1", asker_id="pi-ann00001", reason=reason))
    assert (asked.kinds("q1")[-1], asked.entries[-1].body) == (kind, {"reason": reason})
    assert asked.does(AskEnded(message_id="q1", asker_id="pi-ann00001", reason=reason)) == []


def test_a_question_that_ends_before_it_is_stored_is_placed_and_never_opened():
    rig = InboxRig()
    (checkpoint,) = rig.tell(happenings.Arrived(inbound=inbound("q1", expectsReply=True)))
    rig.does(AskEnded(message_id="q1", asker_id="pi-ann00001", reason="timeout"))
    (place,) = rig.tell(happenings.Checkpointed(entry_ids=checkpoint.entry_ids))
    assert (place.batch[0].is_ask_open, len(rig.inbox.tracker)) == (False, 0)


def test_whoever_leaves_waits_no_more():
    rig = InboxRig()
    for message_id, sender in (("q1", "pi-ann00001"), ("q2", "pi-bob00001")):
        rig.arrives(message_id, expectsReply=True, sender=sender)
    rig.tell(happenings.Arrived(inbound=inbound("q3", expectsReply=True)))
    rig.does(PeerLeft(session_id="pi-ann00001"))
    assert [view.message_id for view in rig.inbox.tracker.views()] == ["q2"]
    assert [rig.kinds(message_id)[-1] for message_id in ("q1", "q3")] == ["retired", "retired"]


def test_a_failed_turn_retires_what_it_read_and_nothing_else():
    rig = InboxRig()
    for message_id in ("q1", "q2", "q3"):
        rig.arrives(message_id, expectsReply=True)
        rig.does(took(message_id))
    rig.does(happenings.InputConsumed(message_ids=("q1",)))
    rig.does(happenings.TurnStarted())
    rig.does(happenings.InputConsumed(message_ids=("q2",)))
    rig.does(ended_turn("q3", is_ok=False))
    assert [view.message_id for view in rig.inbox.tracker.views()] == ["q1"]
    assert rig.entries[-1].body == {"reason": "turn_failed"}


def test_a_turn_that_went_well_leaves_its_questions_open():
    rig = InboxRig()
    rig.arrives("q1", expectsReply=True)
    rig.does(took("q1"))
    rig.does(happenings.TurnStarted())
    rig.does(ended_turn("q1"))
    assert [view.message_id for view in rig.inbox.tracker.views()] == ["q1"]


def test_one_question_too_many_evicts_the_oldest_with_a_notice_on_record():
    rig = InboxRig()
    for number in range(MAX_PENDING + 1):
        told = rig.arrives(f"q{number}", expectsReply=True)
        rig.does(took(f"q{number}"))
    assert steps.Report(message_id="q0", code="evicted", reason="too many questions wait") in told
    assert (rig.kinds("q0")[-1], len(rig.inbox.tracker)) == ("retired", MAX_PENDING)
    assert len(reopened(rig)[0].inbox.tracker) == MAX_PENDING
