"""Results: a text for a model, facts for a program, each complete without the other."""

from __future__ import annotations

from intercom_adapters.mcp.results import Result, make_encodable, outcome_facts, unsent_facts
from libintercom.outcomes import NOT_CONNECTED, Outcome, not_sent, unknown


def test_what_waits_is_said_last_in_both_halves():
    ended = Result("Message sent", {"messageId": "m1"}).ended(3)
    assert ended.text == "Message sent\n\n3 messages wait (intercom pending)"
    assert ended.facts == {"messageId": "m1", "text": ended.text}


def test_nothing_is_said_when_nothing_waits():
    assert Result("Message sent").ended(0) == Result("Message sent")


def test_an_error_and_what_was_shown_stay():
    ended = Result("x", None, is_error=True, shown=("m1",)).ended(1)
    assert (ended.is_error, ended.shown) == (True, ("m1",))


def test_an_unknown_outcome_leaves_out_what_nobody_knows():
    facts = outcome_facts(unknown("m1", "no acknowledgement came within 8 s"))
    assert facts["deliveryUnknown"] is True
    assert facts["messageId"] == "m1"
    assert facts.keys() & {"accepted", "delivered"} == set()


def test_what_was_never_sent_is_certain():
    for facts in (outcome_facts(not_sent("m1", NOT_CONNECTED, "lost")), unsent_facts("invalid_call", "send needs to.")):
        told = {name: facts[name] for name in ("deliveryUnknown", "accepted", "delivered")}
        assert told == {"deliveryUnknown": False, "accepted": False, "delivered": False}


def test_an_accepted_outcome_keeps_what_the_broker_said():
    held = Outcome(outcome="queued", message_id="m1", accepted=True, delivered=False, delivery_unknown=False)
    assert outcome_facts(held) == {
        "outcome": "queued",
        "messageId": "m1",
        "accepted": True,
        "delivered": False,
        "deliveryUnknown": False,
    }


def test_a_lone_surrogate_is_replaced_and_a_pair_is_joined():
    assert make_encodable("a\ud83db \U0001f600 \ud83d\ude00") == "a\ufffdb \U0001f600 \U0001f600"
    assert make_encodable("plain") == "plain"
