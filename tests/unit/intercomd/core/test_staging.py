"""Replaceable updates: when they are staged, when at once, and every way in which one ends."""

from __future__ import annotations

from typing import Any

import pytest

from intercomd.core import events
from tests.support.conversation import Conversation
from tests.support.sayings import presence, register_sibling, replace, send

QUEUED = "Queued for replace-mode delivery"
FULL = "Replace-mode delivery queue is full; retry after pending updates are delivered."

LEFT = {"type": "session_left", "sessionId": "session-b"}


def queued(message_id: str) -> dict[str, Any]:
    return {"type": "delivery_queued", "messageId": message_id, "reason": QUEUED}


def delivered(message_id: str) -> dict[str, Any]:
    return {"type": "delivered", "messageId": message_id}


def arrived(message_id: str, **sender: Any) -> dict[str, Any]:
    return {"type": "message", "from": {"...": True, **sender}, "message": {"id": message_id, "...": True}}


def died(message_id: str, reason: str) -> dict[str, Any]:
    told = {"messageId": message_id, "recipientId": "session-b", "reason": reason, "atMs": "<number>"}
    return {"type": "dead_letter", **told}


def pair(status: str | None = "idle", **limits: float) -> Conversation:
    return Conversation(**limits).joins("a", "alice", ext=1).joins("b", "bob", status=status)


def waits(talk: Conversation) -> set[tuple[str, ...]]:
    """What is staged; each has its deadline."""
    keys, deadlines = set(talk.router.state.stage.all_keys()), talk.router.state.deadlines.keys()
    assert {key[1:] for key in deadlines if key[0] == "stage"} == keys
    return {key[2:] for key in keys}


@pytest.mark.parametrize(
    ("status", "accepts_asks", "is_ask", "is_staged"),
    [
        ("idle", None, False, True),
        ("idle", True, False, True),
        ("idle · reviewing", None, False, True),
        ("idle", False, False, False),
        ("idler", None, False, False),
        ("thinking", None, False, False),
        (None, None, False, False),
        ("thinking", False, True, True),
        ("idle", False, True, True),
    ],
)
def test_what_is_staged(status: str | None, accepts_asks: bool | None, is_ask: bool, is_staged: bool) -> None:
    talk = pair(status).says("b", presence(**({} if accepts_asks is None else {"acceptsAsks": accepts_asks})))
    talk.says("a", replace("bob", "m1", "t", expectsReply=is_ask or None))
    talk.expects("a", queued("m1") if is_staged else delivered("m1"))
    assert waits(talk) == ({("t",)} if is_staged else set())
    talk.after(1.5).expects("b", arrived("m1"))


def test_only_the_last_of_a_thread_arrives_after_the_quiet_time() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).after(1.4).says("a", replace("bob", "m2", " t\ufeff"))
    talk.after(1.4).says("a", replace("bob", "m3", "t")).expects("a", queued("m1"), queued("m2"), queued("m3"))
    talk.after(1.499).expects_nothing("b").after(0.001).expects("b", arrived("m3"))
    assert waits(talk) == set()
    talk.expects_nothing("a")


def test_threads_senders_and_recipients_are_kept_apart() -> None:
    talk = pair().joins("c", "carol", status="idle").says("c", replace("bob", "m4", "t"))
    talk.says("a", replace("bob", "m1", "t"), replace("bob", "m2", "u"), replace("carol", "m3", "t")).after(1.5)
    talk.expects("b", arrived("m4"), arrived("m1"), arrived("m2")).expects("c", queued("m4"), arrived("m3"))


def test_a_newer_one_that_goes_out_at_once_voids_what_is_staged() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).says("b", presence(status="thinking"))
    talk.says("a", replace("bob", "m2", "t")).expects("a", queued("m1"), delivered("m2")).expects("b", arrived("m2"))
    talk.after(5).expects_nothing("b")
    assert talk.router.state.counters.counts["replaced"] == 1


def test_other_messages_do_not_touch_what_is_staged() -> None:
    talk = pair().says("a", replace("bob", "m1", "t"), send("bob", "m2"), send("bob", "m3", delivery="queue"))
    talk.after(1.5).expects("b", arrived("m2"), arrived("m3"), arrived("m1"))


def test_from_is_the_senders_row_when_it_was_staged() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).says("a", presence(name="renamed", status="thinking"))
    talk.after(1.5).expects("b", arrived("m1", name="alice", status="<absent>"))


def test_a_sibling_hears_that_it_is_queued_in_its_own_words() -> None:
    talk = Conversation().joins("b", "bob", status="idle").says("a", register_sibling("alice"))
    talk.receives("a")
    talk.says("a", replace("bob", "m1", "t"))
    told = {"type": "delivered", "messageId": "m1", "delivery": "queued", "retryable": False, "outcomeKnown": True}
    talk.expects("a", told)


# -- ends ----------------------------------------------------------------------------------------------------


def test_a_recipient_that_leaves_is_told_to_the_sender() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).expects("a", queued("m1")).hangs_up("b")
    talk.expects("a", LEFT, died("m1", "recipient_left"))
    assert waits(talk) == set()


def test_a_sender_that_leaves_takes_its_questions_along_and_nothing_else() -> None:
    talk = pair().says("a", replace("bob", "m1", "t"), replace("bob", "m2", "u", expectsReply=True)).hangs_up("a")
    assert waits(talk) == {("t",)}
    talk.after(1.5).expects("b", {"type": "session_left", "sessionId": "session-a"}, arrived("m1"))
    assert talk.router.state.counters.counts["dead_discarded"] == 1
    assert talk.router.state.counters.is_balanced


def test_a_staged_message_takes_the_place_it_finds_when_its_time_comes() -> None:
    talk = pair(recipient_messages=1).says("a", replace("bob", "m1", "t")).expects("a", queued("m1"))
    talk.holds("b").says("a", send("bob", "m2")).receives("a")
    talk.after(1.5).expects("a", died("m1", "discarded"))
    talk.reads("b").expects("b", arrived("m2"))


def test_a_staged_message_to_a_stalled_recipient_is_discarded() -> None:
    talk = pair(stalled_after_s=1.0).says("a", replace("bob", "m1", "t")).expects("a", queued("m1"))
    talk.holds("b").says("a", send("bob", "m2")).receives("a")
    talk.after(1.5).expects("a", died("m1", "discarded"))


def test_a_staged_message_may_be_held_and_then_lost() -> None:
    talk = pair().holds("b").says("a", replace("bob", "m1", "t")).after(1.5).expects("a", queued("m1"))
    assert talk.router.state.counters.held == {"buffered": 1, "staged": 0, "parked": 0, "kept": 0}
    talk.hangs_up("b").expects("a", LEFT, died("m1", "recipient_left"))
    assert talk.router.state.counters.is_balanced


def test_a_reset_found_at_delivery_is_a_dead_letter() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).expects("a", queued("m1")).resets("b").after(1.5)
    talk.expects("a", LEFT, died("m1", "recipient_left"))


# -- taking back ---------------------------------------------------------------------------------------------


def cancel(message_id: str) -> dict[str, Any]:
    return {"type": "cancel_message", "messageId": message_id}


def test_what_is_staged_can_be_taken_back_by_its_sender_only() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).expects("a", queued("m1"))
    refused = {"type": "delivery_failed", "messageId": "m1", "code": "not_found", "...": True}
    talk.says("b", cancel("m1")).expects("b", refused)
    talk.says("a", cancel("m1")).expects("a", delivered("m1")).after(5).expects_nothing("b")
    talk.says("a", cancel("m1")).expects("a", refused)
    assert waits(talk) == set()
    assert talk.router.state.counters.is_balanced


def test_what_was_delivered_or_replaced_cannot_be_taken_back() -> None:
    talk = pair().says("a", send("bob", "m1"), replace("bob", "m2", "t"), replace("bob", "m3", "t")).receives("a")
    talk = pair()
    talk.says("a", send("bob", "m1"), replace("bob", "m2", "t"), replace("bob", "m3", "t")).receives("a")
    for gone in ("m1", "m2", "unknown"):
        talk.says("a", cancel(gone)).expects("a", {"type": "delivery_failed", "messageId": gone, "...": True})
    talk.after(1.5).expects("b", arrived("m1"), arrived("m3"))


def test_taking_back_a_staged_question_ends_it() -> None:
    talk = pair().says("a", replace("bob", "q1", "t", expectsReply=True)).expects("a", queued("q1"))
    talk.says("a", cancel("q1"))
    assert len(talk.router.state.asks) == 0
    assert talk.router.obligations.ended == {"cancelled": 1}


# -- bounds --------------------------------------------------------------------------------------------------


def test_a_full_stage_refuses_new_keys_and_takes_known_ones() -> None:
    talk = pair(stage_keys_per_sender=2).says("a", replace("bob", "m1", "t"), replace("bob", "m2", "u"))
    talk.expects("a", queued("m1"), queued("m2")).says("a", replace("bob", "m3", "v"))
    told = {"messageId": "m3", "code": "stage_full", "reason": FULL, "retryable": True, "outcomeKnown": True}
    talk.expects("a", {"type": "delivery_failed", **told})
    talk.says("a", replace("bob", "m4", "u")).expects("a", queued("m4")).after(1.5)
    talk.expects("b", arrived("m1"), arrived("m4"))
    talk.says("a", replace("bob", "m3", "v")).expects("a", queued("m3"))


def test_a_full_stage_does_not_stop_what_goes_out_at_once() -> None:
    talk = pair(stage_keys=0).says("b", presence(status="thinking"))
    talk.says("a", replace("bob", "m1", "t")).expects("a", delivered("m1"))


def test_size_is_judged_before_staging() -> None:
    talk = pair().says("a", replace("bob", "m1", "t", text="x" * 1_048_400))
    talk.expects("a", {"type": "delivery_failed", "messageId": "m1", "code": "too_large", "...": True})
    assert waits(talk) == set()


# -- leaving broker ------------------------------------------------------------------------------------------


def test_everything_staged_goes_out_before_the_broker_leaves() -> None:
    talk = (
        pair().says("a", replace("bob", "m1", "t"), replace("bob", "m2", "u")).expects("a", queued("m1"), queued("m2"))
    )
    talk.happens(events.StopRequested("SIGTERM")).expects("b", arrived("m1"), arrived("m2"))
    assert talk.exit is not None
    assert waits(talk) == set()
