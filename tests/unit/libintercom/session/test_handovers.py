"""Handing over: when, in which order, and what is known of where a message is."""

from __future__ import annotations

import json

import pytest

from libintercom.session import happenings, placed, steps
from libintercom.wire.messages import Host
from tests.support.inbox_rig import (
    GENERATION,
    NOW_MS,
    SESSION,
    InboxRig,
    batches,
    ended_turn,
    fold_all,
    inbound,
    names,
    reopened,
    took,
)

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


def test_a_fork_that_copied_the_history_adopts_nothing(handed: InboxRig):
    for entry in handed.entries:
        entry.body.update({"session": "the original"} if entry.kind == "admitted" else {})
    rig, (told,) = reopened(handed)
    assert (told.code, told.message_id) == ("foreign", "m1")
    assert (rig.inbox.staged(), rig.inbox.uncertain(), len(rig.inbox.tracker)) == ([], [], 0)
