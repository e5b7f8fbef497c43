"""Admission, dedupe, decisions, failures of the journal and ends, as conversations with an inbox."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.inbound import AskEnded
from libintercom.session import admissions, happenings, steps
from libintercom.session.entries import fold
from tests.support.inbox_rig import (
    InboxRig,
    batches,
    ended_turn,
    fold_all,
    inbound,
    names,
    reopened,
    took,
)

# ------------------------------------------------------------------ the journal fails


def test_what_is_not_stored_is_not_offered_and_may_come_again():
    rig = InboxRig()
    (checkpoint,) = rig.tell(happenings.Arrived(inbound=inbound("m1", expectsReply=True)))
    (refused,) = rig.tell(happenings.CheckpointFailed(entry_ids=checkpoint.entry_ids, reason="disk full"))
    assert refused == steps.Refuse(message_id="m1", code="not_stored", reason="disk full")
    assert len(rig.inbox.tracker) == 0
    assert batches(rig.arrives("m1", expectsReply=True)) == [["m1"]]


def test_a_placement_that_is_not_recorded_is_told_and_never_repeated():
    rig = InboxRig()
    rig.arrives("m1")
    checkpoint, _wake = rig.tell(took("m1"))
    (told,) = rig.tell(happenings.CheckpointFailed(entry_ids=checkpoint.entry_ids, reason="disk full"))
    assert (told.code, told.message_id) == ("unrecorded", "m1")
    assert rig.does(happenings.RetryDue()) == []


def test_a_hand_over_that_cannot_be_recorded_waits_for_the_next_occasion():
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    rig.arrives("m1", delivery="queue")
    (checkpoint,) = rig.tell(ended_turn())
    assert names(rig.tell(happenings.CheckpointFailed(entry_ids=checkpoint.entry_ids, reason="full"))) == ["Report"]
    assert batches(rig.does(happenings.RetryDue())) == [["m1"]]


def test_a_checkpoint_of_nobody_is_nothing():
    assert InboxRig().tell(happenings.Checkpointed(entry_ids=("unknown",))) == []


# ------------------------------------------------------------------ dedupe


@pytest.mark.parametrize(
    "life",
    [
        ("admitted",),
        ("admitted", "replaced"),
        ("admitted", "discarded"),
        ("reply_received",),
        ("admitted", "handed", "placed"),
    ],
)
def test_a_known_message_is_refused_whatever_its_end(life):
    rig = InboxRig()
    standing = fold(rig.inbox._desk.entry("m1", kind, message={}) for kind in life)
    (refused,) = rig.does(happenings.Arrived(inbound=inbound("m1"), standing=standing))
    assert (refused.code, rig.entries) == ("duplicate", [])


def test_without_a_journal_memory_refuses_it(monkeypatch: pytest.MonkeyPatch):
    rig = InboxRig()
    rig.arrives("m1")
    rig.does(took("m1"))
    assert names(rig.arrives("m1")) == ["Refuse"]
    monkeypatch.setattr(admissions, "MAX_REMEMBERED", 1)
    rig.arrives("m2")
    assert list(rig.inbox._admissions._remembered) == ["m2"]


def test_a_new_id_is_new_input_although_the_text_is_the_same():
    rig = InboxRig()
    rig.arrives("m1")
    rig.does(took("m1"))
    assert batches(rig.arrives("m2")) == [["m2"]]


def test_a_reply_is_given_once_it_is_on_record_and_only_once():
    rig = InboxRig()
    reply = inbound("r1", replyTo="our question")
    (checkpoint,) = rig.tell(happenings.ReplyArrived(inbound=reply))
    assert [(e.kind, e.body["by"]) for e in checkpoint.entries] == [("reply_received", "our question")]
    assert rig.tell(happenings.Checkpointed(entry_ids=checkpoint.entry_ids)) == [steps.GiveReply(message_id="r1")]
    assert names(rig.does(happenings.ReplyArrived(inbound=reply))) == ["WithholdReply"]
    assert names(rig.arrives("r1")) == ["Refuse"]


def test_a_reply_that_cannot_be_recorded_is_withheld():
    rig = InboxRig()
    (checkpoint,) = rig.tell(happenings.ReplyArrived(inbound=inbound("r1", replyTo="q")))
    (told,) = rig.tell(happenings.CheckpointFailed(entry_ids=checkpoint.entry_ids, reason="full"))
    assert told == steps.WithholdReply(message_id="r1", code="not_stored", reason="full")


# ------------------------------------------------------------------ replacing and discarding


def update(message_id: str, thread: str = "t", sender: str = "pi-ann00001") -> Any:
    return inbound(message_id, delivery="queue", queueMode="replace", threadId=thread, sender=sender)


def test_a_newer_update_replaces_what_is_still_staged_of_its_thread_and_sender():
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    for message in (update("m1"), update("m2", "other"), update("m3", sender="pi-bob00001"), update("m4", " t ")):
        rig.does(happenings.Arrived(inbound=message))
    assert rig.kinds("m1") == ["admitted", "queued", "replaced"]
    assert batches(rig.does(ended_turn())) == [["m2", "m3", "m4"]]


def test_what_the_host_has_is_not_replaced():
    rig = InboxRig()
    rig.does(happenings.Arrived(inbound=update("m1")))
    rig.does(happenings.Arrived(inbound=update("m2")))
    assert "replaced" not in rig.kinds("m1")
    assert batches(rig.does(took("m1"))) == [["m2"]]


def test_a_discarded_message_never_goes_out_and_its_question_is_over():
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    rig.arrives("m1", delivery="queue", expectsReply=True)
    rig.does(happenings.DiscardChosen(message_id="m1", reason="old"))
    assert (rig.does(ended_turn()), len(rig.inbox.tracker)) == ([], 0)
    again, asked = reopened(rig)
    assert (asked, len(again.inbox.tracker)) == ([], 0)


@pytest.mark.parametrize(
    "decision", [happenings.PlaceChosen(message_id="m1"), happenings.DiscardChosen(message_id="m1", reason="")]
)
def test_a_decision_about_nothing_is_told(decision):
    (told,) = InboxRig().does(decision)
    assert told.code == "no_such"


# ------------------------------------------------------------------ ends


@pytest.fixture
def asked() -> InboxRig:
    rig = InboxRig()
    rig.arrives("q1", expectsReply=True)
    rig.does(took("q1"))
    return rig


def test_shutdown_finishes_what_was_begun_and_offers_nothing_new():
    rig = InboxRig()
    (checkpoint,) = rig.tell(happenings.Arrived(inbound=inbound("m1")))
    assert rig.tell(happenings.ShutdownBegan()) == []
    assert batches(rig.does(happenings.Checkpointed(entry_ids=checkpoint.entry_ids))) == [["m1"]]
    assert rig.arrives("m2") == []
    assert names(rig.does(took("m1"))) == ["Wake", "Detach"]
    assert fold_all(rig.entries)["m2"].is_unfinished


def test_shutdown_waits_for_a_reply_that_is_on_its_way(asked: InboxRig):
    asked.does(happenings.ReplyBegan(ask_id="q1", reply_id="r1"))
    asked.does(AskEnded(message_id="q1", asker_id="pi-ann00001", reason="timeout"))
    assert asked.does(happenings.ShutdownBegan()) == []
    assert names(asked.does(happenings.ReplyEnded(ask_id="q1", reply_id="r1"))) == ["Detach"]


def test_an_idle_inbox_detaches_at_once():
    assert InboxRig().does(happenings.ShutdownBegan()) == [steps.Detach()]


STALE = [
    (happenings.Arrived(inbound=inbound("m9")), ["Refuse"]),
    (happenings.ReplyArrived(inbound=inbound("m9", replyTo="q")), ["WithholdReply"]),
    (happenings.ReplyBegan(ask_id="q1", reply_id="r1"), ["RefuseReply"]),
    (took("m1"), []),
    (happenings.TurnStarted(), []),
    (ended_turn("m1", is_ok=False), []),
    (AskEnded(message_id="q1", asker_id="pi-ann00001", reason="timeout"), []),
    (happenings.ShutdownBegan(), []),
]


@pytest.mark.parametrize(("happened", "told"), STALE)
def test_another_generation_stores_and_places_nothing(asked: InboxRig, happened: Any, told: list[str]):
    assert names(asked.tell(happened, "g0")) == told


@pytest.mark.parametrize(("happened", "told"), STALE)
def test_after_its_context_is_over_nothing_is_stored_or_placed(asked: InboxRig, happened: Any, told: list[str]):
    asked.tell(happenings.ContextInvalidated())
    assert not asked.inbox.is_live
    assert names(asked.tell(happened)) == told
