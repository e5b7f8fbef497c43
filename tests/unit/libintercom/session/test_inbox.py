"""The inbox as conversations: what came, what was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from libintercom.inbound import AskEnded, PeerLeft
from libintercom.pending import MAX_PENDING
from libintercom.session import admissions, happenings, placed, steps
from libintercom.session.entries import fold
from libintercom.wire.messages import Host
from tests.support.inbox_rig import FULL, GENERATION, NOW_MS, SESSION, InboxRig, fold_all, inbound


def names(asked: list[Any]) -> list[str]:
    return [type(step).__name__ for step in asked]


def batches(asked: list[Any]) -> list[list[str]]:
    return [[one.message_id for one in step.batch] for step in asked if isinstance(step, steps.Place)]


def took(*message_ids: str) -> happenings.HostPlaced:
    return happenings.HostPlaced(placements={message_id: f"h-{message_id}" for message_id in message_ids})


def reopened(rig: InboxRig, abilities: Host = FULL) -> tuple[InboxRig, list[Any]]:
    """A new start with what is on record; what it asks for at once."""
    again = InboxRig(abilities, is_recovered=False)
    again._numbers = iter(range(1_000, 2_000))
    again.entries = list(rig.entries)
    unfinished = [one for one in fold_all(rig.entries).values() if one.is_unfinished]
    return again, again.does(happenings.Recovered(standings=tuple(sorted(unfinished, key=lambda one: one.order))))


def ended_turn(*consumed: str, is_ok: bool = True) -> happenings.TurnEnded:
    return happenings.TurnEnded(is_ok=is_ok, consumed_ids=consumed)


# ------------------------------------------------------------------ the ordinary way


def test_one_checkpoint_admits_and_hands_over_to_an_idle_host():
    rig = InboxRig()
    (checkpoint,) = rig.tell(happenings.Arrived(inbound=inbound("m1")))
    assert [entry.kind for entry in checkpoint.entries] == ["admitted", "handed"]
    (place,) = rig.tell(happenings.Checkpointed(entry_ids=checkpoint.entry_ids))
    assert batches([place]) == [["m1"]]
    stored, wake = rig.tell(took("m1"))
    assert ([entry.kind for entry in stored.entries], wake) == (["placed"], steps.Wake())
    assert stored.entries[0].body == {"placement": "h-m1"}


def test_a_life_on_record():
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    rig.arrives("m1", delivery="queue")
    rig.does(ended_turn())
    rig.does(took("m1"))
    rig.does(happenings.InputConsumed(message_ids=("m1",)))
    assert rig.kinds("m1") == ["admitted", "queued", "handed", "placed", "consumed"]


def test_the_first_entry_holds_the_message_exactly():
    rig = InboxRig()
    rig.arrives("m1", "a\r\n\ud83d e\u0301", unknown={"x": [1]})
    body = rig.entries[0].body
    assert body == {
        **inbound("m1", "a\r\n\ud83d e\u0301", unknown={"x": [1]}).raw,
        "receivedAt": NOW_MS,
        "textSha256": body["textSha256"],
        "session": SESSION,
        "generation": GENERATION,
    }
    assert json.loads(json.dumps(body, ensure_ascii=True)) == body


def test_a_placeable_says_all_that_a_host_needs():
    (place,) = InboxRig().arrives("m1", expectsReply=True)
    (one,) = place.batch
    assert (one.delivery, one.is_ask_open, one.received_at_ms) == ("steer", True, NOW_MS)


@pytest.mark.parametrize(
    ("members", "at_once", "wakes"),
    [({}, True, True), ({"delivery": "queue"}, True, True), ({"delivery": "passive"}, True, False)],
)
def test_an_idle_host_gets_everything_and_is_woken_for_work(members, at_once, wakes):
    rig = InboxRig()
    assert bool(batches(rig.arrives("m1", **members))) is at_once
    assert ("Wake" in names(rig.does(took("m1")))) is wakes


@pytest.mark.parametrize(
    ("members", "at_once"), [({}, True), ({"delivery": "queue"}, False), ({"delivery": "passive"}, False)]
)
def test_a_working_host_gets_only_what_steers_it(members, at_once):
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    assert bool(batches(rig.arrives("m1", **members))) is at_once
    assert names(rig.does(took("m1")))[:1] == []


def test_at_the_end_of_a_turn_breadcrumbs_go_before_the_work_and_one_wake_follows():
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    for message_id, delivery in (("m1", "queue"), ("m2", "passive"), ("m3", "queue"), ("m4", "passive")):
        rig.arrives(message_id, delivery=delivery)
    assert batches(rig.does(ended_turn())) == [["m2", "m4", "m1", "m3"]]
    assert names(rig.does(took("m2", "m4", "m1", "m3"))) == ["Wake"]


def test_a_steer_that_the_turn_did_not_read_wakes_after_it():
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    rig.arrives("m1")
    assert rig.does(took("m1")) == []
    assert names(rig.does(ended_turn(is_ok=False))) == ["Wake"]


def test_a_turn_that_begins_meanwhile_keeps_later_work_out():
    rig = InboxRig()
    (checkpoint,) = rig.tell(happenings.Arrived(inbound=inbound("m1", delivery="queue")))
    rig.does(happenings.TurnStarted())
    assert batches(rig.does(happenings.Checkpointed(entry_ids=checkpoint.entry_ids))) == []
    assert batches(rig.does(ended_turn())) == [["m1"]]


# ------------------------------------------------------------------ what a host cannot do


def test_without_steering_everything_waits_for_the_end_of_the_turn():
    rig = InboxRig(Host(wake=True, turn_end=True))
    rig.does(happenings.TurnStarted())
    assert rig.arrives("m1") == []
    assert batches(rig.does(ended_turn())) == [["m1"]]


def test_a_host_that_reads_at_prompts_gets_everything_then_and_is_never_woken():
    rig = InboxRig(Host(prompt_only=True, wake=True))
    assert rig.arrives("m1") == rig.arrives("m2", delivery="passive") == []
    assert batches(rig.does(happenings.TurnStarted())) == [["m2", "m1"]]
    assert rig.does(took("m1", "m2")) == []
    assert rig.arrives("m3") == rig.does(ended_turn()) == []
    assert batches(rig.does(happenings.TurnStarted())) == [["m3"]]


def test_a_host_that_never_says_that_it_ends_is_always_ready():
    rig = InboxRig(Host(wake=True))
    rig.does(happenings.TurnStarted())
    assert batches(rig.arrives("m1", delivery="queue")) == [["m1"]]


def test_a_host_that_cannot_be_woken_is_not():
    rig = InboxRig(Host())
    rig.arrives("m1")
    assert rig.does(took("m1")) == []


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


# ------------------------------------------------------------------ recovery


@pytest.fixture
def handed() -> InboxRig:
    rig = InboxRig()
    rig.arrives("m1", expectsReply=True)
    return rig


def test_recovery_asks_the_host_and_keeps_new_work_until_it_knows(handed: InboxRig):
    rig, asked = reopened(handed)
    assert asked == [steps.FindPlacement(message_id="m1")]
    assert rig.arrives("m2") == []
    told = rig.does(happenings.PlacementFound(message_id="m1", placement="h-m1"))
    assert batches(told) == [["m2"]]
    assert names(rig.does(took("m2"))) == ["Wake"]


def test_found_is_placed_and_woken_for_once(handed: InboxRig):
    rig, _asked = reopened(handed)
    assert names(rig.does(happenings.PlacementFound(message_id="m1", placement="h9"))) == ["Wake"]
    assert fold_all(rig.entries)["m1"].placement == "h9"


def test_absent_is_offered_again(handed: InboxRig):
    rig, _asked = reopened(handed)
    assert batches(rig.does(happenings.PlacementAbsent(message_id="m1"))) == [["m1"]]


def test_unknown_is_for_a_person(handed: InboxRig):
    rig, _asked = reopened(handed)
    (told,) = rig.does(happenings.PlacementUnknown(message_id="m1", reason="no index"))
    assert (told.code, [item.message_id for item in rig.inbox.uncertain()]) == ("uncertain", ["m1"])
    assert rig.does(happenings.RetryDue()) == rig.does(happenings.TurnStarted()) == rig.does(ended_turn()) == []
    again, asked = reopened(rig)
    assert (asked, len(again.inbox.uncertain())) == ([], 1)
    assert batches(again.does(happenings.PlaceChosen(message_id="m1"))) == [["m1"]]


def test_a_recovered_backlog_goes_out_whole_with_one_wake():
    rig = InboxRig()
    rig.does(happenings.TurnStarted())
    for message_id, delivery in (("m1", "queue"), ("m2", "passive"), ("m3", "queue")):
        rig.arrives(message_id, delivery=delivery)
    again, asked = reopened(rig)
    assert batches(asked) == [["m2", "m1", "m3"]]
    assert names(again.does(took("m2", "m1", "m3"))) == ["Wake"]


def test_a_question_stays_open_over_a_restart_and_its_text_is_not_placed_again(handed: InboxRig):
    handed.does(took("m1"))
    rig, asked = reopened(handed)
    (view,) = rig.inbox.tracker.views()
    assert (asked, view.message_id, view.is_shown) == ([], "m1", True)


def test_a_message_of_other_rules_stays_in_the_journal_and_is_told(handed: InboxRig):
    handed.entries[0].body["message"]["id"] = 7
    _rig, (told,) = reopened(handed)
    assert (told.code, told.message_id) == ("unreadable", "m1")


def test_a_host_that_breaks_off_is_asked(handed: InboxRig):
    (asked,) = handed.does(happenings.HostUnsure(message_ids=("m1",), reason="timeout"))
    assert asked == steps.FindPlacement(message_id="m1")
    (told,) = handed.does(happenings.PlacementAbsent(message_id="m1"))
    assert told.code == "host_refused"
    assert batches(handed.does(happenings.RetryDue())) == [["m1"]]


def test_what_was_read_was_placed_whatever_the_host_says(handed: InboxRig):
    handed.does(happenings.InputConsumed(message_ids=("m1",)))
    assert handed.does(happenings.HostRefused(message_ids=("m1",), reason="?")) == []
    assert handed.kinds("m1") == ["admitted", "handed", "placed", "consumed"]


def test_what_is_in_doubt_and_read_is_placed(handed: InboxRig):
    handed.does(happenings.HostUnsure(message_ids=("m1",), reason="timeout"))
    handed.does(happenings.PlacementUnknown(message_id="m1", reason="no index"))
    handed.does(happenings.InputConsumed(message_ids=("m1",)))
    assert handed.kinds("m1")[-2:] == ["placed", "consumed"]
    assert handed.inbox.uncertain() == []


def test_a_host_that_never_says_what_it_read_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(placed, "MAX_UNREAD", 2)
    rig = InboxRig()
    for message_id in ("m1", "m2", "m3"):
        rig.arrives(message_id)
        rig.does(took(message_id))
    rig.does(happenings.InputConsumed(message_ids=("m1", "m2", "m3")))
    assert [rig.kinds(message_id)[-1] for message_id in ("m1", "m2", "m3")] == ["placed", "consumed", "consumed"]


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


# ------------------------------------------------------------------ ends


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
