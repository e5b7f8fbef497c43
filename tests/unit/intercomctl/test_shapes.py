"""The JSON shapes that scripts rely on, member by member."""

from __future__ import annotations

from typing import Any

import pytest

from intercomctl import failures, shapes
from libintercom.inbound import Inbound
from libintercom.outcomes import Listing, Outcome, not_sent, unknown
from libintercom.wire.messages import BrokerHello, Message, Row
from libintercom.wire.record import parse_record

ACCEPTED = Outcome(outcome="delivered", message_id="m", accepted=True, delivered=True, delivery_unknown=False)
REFUSED = ACCEPTED.replace(outcome="refused", code="not_found", reason="r", accepted=False, delivered=False)
QUEUED = ACCEPTED.replace(outcome="queued", reason="r", delivered=False)

OUTCOMES = [
    (ACCEPTED, {"outcome": "delivered", "messageId": "m", "accepted": True, "delivered": True}, 0),
    (QUEUED, {"outcome": "queued", "messageId": "m", "reason": "r", "accepted": True, "delivered": False}, 0),
    (
        REFUSED,
        {
            "outcome": "refused",
            "messageId": "m",
            "code": "not_found",
            "reason": "r",
            "accepted": False,
            "delivered": False,
        },
        1,
    ),
    (
        not_sent("m", "invalid_message", "r"),
        {
            "outcome": "not_sent",
            "messageId": "m",
            "code": "invalid_message",
            "reason": "r",
            "accepted": False,
            "delivered": False,
        },
        2,
    ),
    (unknown("m", "r"), {"outcome": "unknown", "messageId": "m", "reason": "r", "deliveryUnknown": True}, 3),
]


@pytest.mark.parametrize(("outcome", "members", "status"), OUTCOMES, ids=lambda value: str(value)[:30])
def test_an_outcome_has_exactly_what_is_known(outcome, members, status):
    assert shapes.outcome(outcome) == {"deliveryUnknown": False, **members}
    assert failures.status_of(outcome) == status


@pytest.mark.parametrize(
    ("code", "status"),
    [("too_large", 2), ("not_connected", 4), ("already_waiting", 1), ("self_target", 1), ("no_pending_ask", 1)],
)
def test_why_a_message_was_not_sent_decides_the_status(code, status):
    assert failures.status_of(not_sent("m", code, "r")) == status


@pytest.mark.parametrize(
    ("code", "hint"), [("not_found", True), ("ambiguous", True), ("too_short", True), ("rate_limited", False)]
)
def test_a_wrong_target_gets_the_way_to_the_roster(code, hint):
    assert failures.hint_at_roster(REFUSED.replace(code=code)) == (
        " See who is there: intercomctl list" if hint else ""
    )


def inbound(**sender: Any) -> Inbound:
    raw = {
        "from": {"id": "peer-0001", "cwd": "/", "model": "m", **sender},
        "message": {"id": "m1", "timestamp": 1, "content": {"text": "t"}},
    }
    return Inbound(row=parse_record(Row, raw["from"]), message=parse_record(Message, raw["message"]), raw=raw)


def test_a_reply_names_its_sender_by_name_or_id():
    assert shapes.reply(inbound(name="ann")) == {"text": "t", "from": "ann", "id": "m1", "fromId": "peer-0001"}
    assert shapes.reply(inbound())["from"] == "peer-0001"


def test_a_listing_has_its_rows_in_order():
    rows = tuple(parse_record(Row, {"id": f"peer-000{n}", "cwd": "/", "model": "m"}) for n in (2, 1))
    shown = shapes.listing(Listing(rows=rows, omitted=3))
    assert ([row["id"] for row in shown["sessions"]], shown["omitted"]) == (["peer-0002", "peer-0001"], 3)
    assert shown["sessions"][0]["target"] == "peer-0002"


def test_a_broker_is_what_it_says_or_nothing():
    hello = BrokerHello(program="intercomd", version="1", pid=7, incarnation="i")
    assert shapes.broker(hello) == {"program": "intercomd", "version": "1", "pid": 7, "incarnation": "i"}
    assert shapes.broker(None) is None
