"""What an outcome's members are, exactly where they are absent (what becomes what is in ``test_sending``)."""

from __future__ import annotations

import pytest

from libintercom.outcomes import Outcome, not_sent, outcome_of, unknown
from libintercom.wire.answers import Delivered, DeliveryFailed, DeliveryQueued
from libintercom.wire.messages import Candidate
from libintercom.wire.record import dump_record


def test_unknown_claims_nothing_about_acceptance() -> None:
    assert dump_record(unknown("m", "why")) == {
        "outcome": "unknown",
        "messageId": "m",
        "reason": "why",
        "deliveryUnknown": True,
    }
    assert not unknown("m", "why").is_accepted


def test_not_sent_is_certain() -> None:
    twin = Candidate(id="i", target="t", name=None, cwd=None)
    assert dump_record(not_sent("m", "ambiguous", "why", (twin,))) == {
        "outcome": "not_sent",
        "messageId": "m",
        "code": "ambiguous",
        "reason": "why",
        "candidates": [{"id": "i", "target": "t"}],
        "accepted": False,
        "delivered": False,
        "deliveryUnknown": False,
    }


@pytest.mark.parametrize(
    ("outcome", "is_accepted"),
    [
        (outcome_of("m", Delivered(message_id="m")), True),
        (outcome_of("m", DeliveryQueued(message_id="m", reason="held")), True),
        (outcome_of("m", DeliveryFailed(message_id="m", reason="no")), False),
        (outcome_of("m", DeliveryFailed(message_id="m", reason="no", outcome_known=False)), False),
    ],
)
def test_only_the_brokers_yes_is_acceptance(outcome: Outcome, is_accepted: bool) -> None:
    assert outcome.is_accepted is is_accepted
