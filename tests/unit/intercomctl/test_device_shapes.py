"""The JSON of other devices: members that scripts rely on."""

from __future__ import annotations

from intercomctl import shapes
from libintercom.devices.results import DeviceCheck, DeviceListing, DeviceResult
from libintercom.outcomes import DELIVERED, Outcome, unknown

ACCEPTED = Outcome(outcome=DELIVERED, message_id="m", accepted=True, delivered=True, delivery_unknown=False)


def test_a_listing_and_one_that_failed() -> None:
    rows = [{"id": "pi-1@laptop"}]
    listed = DeviceListing(device="laptop", code="", reason="", rows=rows, total=2, omitted=1, now_ms=5.5)
    assert shapes.device_listing(listed) == {
        "device": "laptop",
        "listed": True,
        "sessions": rows,
        "total": 2,
        "omitted": 1,
        "nowMs": 5,
    }
    failed = listed.replace(code="unreachable", reason="no route", rows=[], total=0, omitted=0)
    assert (
        shapes.device_listing(failed).items() >= {"listed": False, "code": "unreachable", "reason": "no route"}.items()
    )


def test_a_reply() -> None:
    reply = {"id": "r", "replyTo": "m", "content": {"text": "Port 8443."}}
    told = DeviceResult(device="laptop", target="a@laptop", outcome=ACCEPTED, sentence="", reply=reply, ended_by="")
    assert shapes.device_result(told) == {
        "outcome": "delivered",
        "messageId": "m",
        "accepted": True,
        "delivered": True,
        "deliveryUnknown": False,
        "device": "laptop",
        "target": "a@laptop",
        "reply": {"text": "Port 8443.", "from": "a@laptop", "id": "r"},
    }


def test_an_unknown_outcome_claims_nothing() -> None:
    lost = DeviceResult(
        device="laptop", target="a@laptop", outcome=unknown("m", "gone"), sentence="Lost.", ended_by="cancelled"
    )
    shown = shapes.device_result(lost)
    assert (shown["deliveryUnknown"], shown["endedBy"], shown["sentence"]) == (True, "cancelled", "Lost.")
    assert not {"accepted", "delivered", "reply"} & set(shown)


def test_a_check_says_whose_command_answers() -> None:
    ours = DeviceCheck(device="laptop", code="", reason="", marker="1", found={"program": "p"})
    assert shapes.device_check(ours) == {
        "device": "laptop",
        "reached": True,
        "command": "intercom-remote",
        "check": {"program": "p"},
    }
    gone = DeviceCheck(device="laptop", code="unreachable", reason="r", marker="")
    assert shapes.device_check(gone).items() >= {"reached": False, "command": None, "code": "unreachable"}.items()
