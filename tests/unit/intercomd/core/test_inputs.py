"""The input of parked children: stored first, in order, never overtaken, gone once the kernel took it (wire.md 9.5)."""

from __future__ import annotations

import pytest

from tests.support.covering import covers
from tests.support.group import Group, ask, came, park, queued, wakes
from tests.support.sayings import replace, send

REGISTERED = {"type": "registered", "...": True}
UNPARKED = {"type": "unparked", "childId": "child-001", "dropped": 1}
STORE_FAILED = {"type": "delivery_failed", "code": "store_failed", "retryable": True, "outcomeKnown": True, "...": True}


@covers("9.5-stored-first")
def test_it_is_acknowledged_once_it_is_stored() -> None:
    talk = Group().has_parked()
    talk.spool = "waits"
    talk.says("sib", send("child-001", "m1")).expects("sib")
    assert talk.counts() == {}
    talk.stores().expects("sib", queued("m1"))
    assert talk.counts() == {"accepted": 1, "parked": 1}


@covers("9.5-stored-first")
def test_what_cannot_be_stored_is_refused_and_may_be_sent_again() -> None:
    talk = Group().has_parked()
    talk.spool = "fails"
    talk.says("sib", ask("child-001", "q1")).expects("sib", STORE_FAILED)
    assert len(talk.router.state.asks) == 0
    talk.spool = "stores"
    talk.says("sib", ask("child-001", "q1")).expects("sib", queued("q1"))
    assert talk.counts() == {"accepted": 1, "parked": 1}


def test_it_comes_in_the_order_of_admission_behind_registered() -> None:
    talk = Group().has_parked()
    talk.says("sib", send("child-001", "m1")).says("main", send("kid", "m2")).says("sib", send("child-001", "m3"))
    talk.child_comes().expects("kid", REGISTERED, came("m1"), came("m2"), came("m3"))
    assert talk.counts() == {"accepted": 3, "drained": 3}


def test_the_bytes_and_the_senders_row_are_those_of_the_send() -> None:
    talk = Group().has_parked()
    talk.says("main", send("child-001", "m1", "t", x={"a": 1.50})).says("main", {"type": "presence", "name": "other"})
    talk.child_comes()
    _registered, message = talk.receives("kid")
    assert message["from"]["name"] == "boss"
    assert message["message"]["x"] == {"a": 1.5}


def test_each_leaves_the_spool_once_the_kernel_took_it() -> None:
    talk = Group().has_parked().says_to_child("m1", "m2")
    kept = len(talk.kept_items)
    talk.connects("kid").holds("kid").says("kid", Group.registration())
    assert len(talk.kept_items) == kept == 3
    talk.reads("kid").expects("kid", REGISTERED, came("m1"), came("m2"))
    assert talk.kept_items == {}


def test_what_was_not_taken_waits_again_in_its_place() -> None:
    talk = Group().has_parked().says_to_child("m1", "m2")
    talk.connects("kid").holds("kid").says("kid", Group.registration()).hangs_up("kid")
    talk.receives("main")
    assert talk.row("main")["queuedInput"] == 2
    talk.says_to_child("m3")
    talk.child_comes("again").expects("again", REGISTERED, came("m1"), came("m2"), came("m3"))


@covers("9.5-barrier")
def test_nothing_overtakes_a_store_in_flight() -> None:
    talk = Group().has_parked()
    talk.spool = "waits"
    talk.says_to_child("m1").child_comes().expects("kid", REGISTERED)
    # It is here, but older input is not stored yet.
    talk.says("sib", send("child-001", "m2")).expects("kid").expects("sib")
    talk.stores().expects("kid", came("m1"), came("m2")).expects("sib", queued("m2"))
    talk.says("sib", send("child-001", "m3")).expects("kid", came("m3"))
    talk.expects("sib", {"type": "delivered", "messageId": "m3"})


def test_nothing_overtakes_a_drain_in_flight() -> None:
    talk = Group(recipient_messages=2).has_parked().says_to_child("m1", "m2", "m3")
    talk.connects("kid").holds("kid").says("kid", Group.registration())
    talk.says("sib", send("child-001", "m4")).expects("sib", queued("m4"))
    talk.reads("kid").after(2.0).expects("kid", REGISTERED, came("m1"), came("m2"), came("m3"), came("m4"))
    assert talk.counts() == {"accepted": 4, "drained": 4}


def test_a_failed_store_lifts_the_barrier() -> None:
    talk = Group().has_parked()
    talk.spool = "waits"
    talk.says_to_child("m1").child_comes().receives("kid")
    talk.stores(is_stored=False).expects("main", STORE_FAILED)
    talk.says("sib", send("child-001", "m2")).expects("kid", came("m2"))


def test_what_an_older_connection_may_still_take_is_waited_for() -> None:
    talk = Group().has_parked().says_to_child("m1")
    talk.connects("kid").holds("kid").says("kid", Group.registration(), {"type": "unregister"})
    talk.says_to_child("m2").child_comes("again").expects("again", REGISTERED)
    talk.hangs_up("kid").expects("again", came("m1"), came("m2"))
    assert talk.counts() == {"accepted": 2, "drained": 2}


def test_a_child_has_room_for_so_many_messages() -> None:
    talk = Group(parked_messages=2).has_parked().says_to_child("m1", "m2")
    refused = {"type": "delivery_failed", "messageId": "m3", "code": "parked_full", "retryable": True, "...": True}
    talk.says("sib", send("child-001", "m3")).expects("sib", {**refused, "rule": "parked_messages", "limit": 2})
    assert talk.counts()["parked"] == 2


@pytest.mark.parametrize("limit", ["parked_bytes", "parked_bytes_total"])
def test_a_child_has_room_for_so_many_bytes(limit: str) -> None:
    talk = Group(**{limit: 2_000}).has_parked().says_to_child("m1")
    refused = {"type": "delivery_failed", "messageId": "m2", "code": "parked_full", "retryable": True, "...": True}
    talk.says("sib", send("child-001", "m2", "x" * 2_000)).expects("sib", {**refused, "rule": limit})


def test_the_same_send_is_stored_once() -> None:
    talk = Group().has_parked()
    talk.spool = "waits"
    talk.says("sib", send("child-001", "m1"), send("child-001", "m1")).stores()
    talk.expects("sib", queued("m1"), queued("m1"))
    talk.says("sib", send("child-001", "m1")).expects("sib", queued("m1"))
    talk.says("sib", send("child-001", "m1", "else"))
    talk.expects("sib", {"type": "delivery_failed", "code": "message_id_reuse", "...": True})
    talk.spool = "stores"
    talk.child_comes().expects("kid", REGISTERED, came("m1"))
    talk.says("sib", send("child-001", "m1")).expects("sib", queued("m1")).expects("kid")


def test_the_same_send_is_known_after_a_restart() -> None:
    talk = Group().has_parked().says_to_child("m1").restarted()
    talk.joins("main", "boss", id="main-0001", ext=1, rootSessionId="native-root").receives("main")
    talk.says_to_child("m1").expects("main", queued("m1"))
    assert talk.counts() == {"accepted": 1, "parked": 1}


def test_a_replaceable_update_is_not_staged_but_stored() -> None:
    talk = Group().has_parked().says("sib", replace("child-001", "m1", "t"))
    talk.expects("sib", queued("m1"))
    assert len(talk.router.state.stage) == 0


def test_who_left_is_not_answered_but_its_message_waits() -> None:
    talk = Group().has_parked()
    talk.spool = "waits"
    talk.says("sib", send("child-001", "m1")).hangs_up("sib").stores()
    assert talk.counts() == {"accepted": 1, "parked": 1}


def test_giving_up_what_is_being_stored_waits_for_the_store() -> None:
    talk = Group().has_parked()
    talk.spool = "waits"
    talk.says("main", send("child-001", "m1"), {"type": "unpark", "childId": "child-001", "discard": True})
    talk.expects("main", {"type": "session_left", "sessionId": "child-001"})
    # Stored, then forgotten, and its letter stored: only now no restart brings it back.
    talk.stores().stores()
    assert [frame["type"] for frame in talk.receives("main")] == ["delivery_queued", "dead_letter", "unparked"]
    assert talk.counts() == {"accepted": 1, "dead_discarded": 1}


def test_a_question_stays_open_while_its_recipient_is_parked() -> None:
    talk = Group().child_comes().says("sib", ask("child-001", "q1"))
    talk.says("main", park()).hangs_up("kid")
    assert len(talk.router.state.asks) == 1
    talk.child_comes("again").says("again", send("child-002", "r1", replyTo="q1"))
    assert talk.router.obligations.ended == {"replied": 1}


def test_a_question_that_ended_meanwhile_is_retired_behind_it() -> None:
    talk = Group().has_parked().says("main", ask("child-001", "q1", timeoutMs=1_000)).after(2.0).child_comes()
    retired = {"type": "ask_retired", "messageId": "q1", "askerId": "main-0001", "reason": "timeout"}
    talk.expects("kid", REGISTERED, came("q1"), retired)


def test_passive_input_waits_and_wakes_nobody() -> None:
    talk = Group().has_parked().says("sib", send("child-001", "m1", passive=True)).expects("main")
    talk.says("sib", send("child-001", "m2")).expects("main", wakes("m2", 1))
    talk.child_comes().expects("kid", REGISTERED, came("m1"), came("m2"))
