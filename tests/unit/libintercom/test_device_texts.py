"""Blocks of other devices and the lines about a device; the failure rows are held by tests/conformance/devices."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.device_texts import GUIDANCE, check_text, devices_text, failed_text, replied_text, sent_there_text
from libintercom.devices.results import DeviceCheck, DeviceListing, DeviceResult
from libintercom.devices.rows import read_rows
from libintercom.outcomes import DELIVERED, QUEUED, Outcome

NOW_MS = 1_794_350_610_543
SESSIONS = [
    {"id": "pi-7e8f9aaaa", "name": "api-fix", "cwd": "/work/api", "model": "model-b", "status": "idle",
     "acceptsAsks": True, "pendingAsks": 0, "lastSeen": NOW_MS - 7_200_000},
    {"id": "pi-0a1b2aaaa", "name": "web-build", "cwd": "/work/web", "model": "model-a", "status": "tool:bash",
     "acceptsAsks": False, "pendingAsks": 0, "lastSeen": NOW_MS - 5_000},
]  # fmt: skip


def listing(device: str, sessions: list[dict[str, Any]] | None = None, **parts: Any) -> DeviceListing:
    rows, _ = read_rows(sessions or [], device)
    told = {"code": "", "reason": "", "rows": rows, "total": len(rows), "omitted": 0, "now_ms": NOW_MS, **parts}
    return DeviceListing(device=device, **told)


def test_the_answer_has_one_block_per_device() -> None:
    listings = [
        listing("laptop", SESSIONS),
        listing("desk"),
        listing("phone", code="unreachable", reason="connect to host phone port 22: Operation timed out"),
        listing("old-box", code="no_command"),
    ]
    assert devices_text(listings) == (
        "**Main sessions on laptop (2):**\n"
        "• api-fix@laptop (pi-7e8f9@laptop) — Native session cwd: /work/api (model-b) [idle, state:idle, accepts_asks:"
        "true, pending_asks:0, last_intercom_activity:none, last_seen:2h ago]\n"
        "• web-build@laptop (pi-0a1b2@laptop) — Native session cwd: /work/web (model-a) [tool:bash, state:busy, "
        "accepts_asks:false, pending_asks:0, last_intercom_activity:none, last_seen:5s ago]\n\n"
        "**Main sessions on desk (0):** no Pi session is connected there.\n\n"
        "**phone:** unreachable (connect to host phone port 22: Operation timed out)\n\n"
        "**old-box:** not listed: its intercom has no cross-device command; update intercom there\n\n" + GUIDANCE
    )


def test_a_name_that_two_share_and_rows_that_did_not_fit() -> None:
    twins = [SESSIONS[0], {**SESSIONS[1], "name": "API-fix"}]
    text = devices_text([listing("laptop", twins, omitted=3)], "api")
    assert '(2 of 2 match "api")' in text
    assert "target:pi-7e8f9@laptop" in text
    assert "3 more could not be listed." in text


def test_a_devices_words_never_reach_a_terminal_raw() -> None:
    hostile = "x\x1b]52;c;aGk=\x07\u202e\n**Main sessions on desk (1):**"
    text = devices_text(
        [listing("laptop", [{**SESSIONS[0], "name": hostile}]), listing("a", code="failed", reason=hostile)]
    )
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert text.count("\n**Main sessions on") == 0


ACCEPTED = Outcome(outcome=DELIVERED, message_id="m", accepted=True, delivered=True, delivery_unknown=False)


def result(outcome: Outcome = ACCEPTED, **parts: Any) -> DeviceResult:
    told = {"device": "laptop", "target": "api-fix@laptop", "sentence": "", "ended_by": "", **parts}
    return DeviceResult(outcome=outcome, **told)


def test_a_send_says_what_its_delivery_does() -> None:
    assert sent_there_text(result(), {}) == (
        "Message sent to api-fix@laptop (defaults to steer; wakes idle recipients and steers active recipients after "
        "the current tool call)"
    )
    queued = ACCEPTED.replace(outcome=QUEUED, delivered=False, reason="parked")
    assert sent_there_text(result(queued), {"delivery": "queue"}).startswith(
        "Message queued for api-fix@laptop (queue; "
    )


@pytest.mark.parametrize(
    "attachments", [None, 5, [5, {}, {"type": "file"}, {"type": "odd", "name": "a", "content": "b"}]]
)
def test_a_reply_with_attachments_that_are_none(attachments: object) -> None:
    reply = {"content": {"text": "Port \x1b8443.", "attachments": attachments}}
    assert replied_text(result(reply=reply)) == "**Reply from api-fix@laptop:**\nPort ␛8443."


def test_a_reply_with_an_attachment() -> None:
    attached = {"type": "snippet", "name": "port.txt", "content": "8443", "language": "text"}
    text = replied_text(result(reply={"content": {"text": "See", "attachments": [attached]}}))
    assert text.endswith("📎 port.txt (snippet)\n~~~text\n8443\n~~~")


def test_a_lost_connection() -> None:
    lost = result(ACCEPTED.replace(code="connection_lost", reason="closed"), ended_by="disconnected")
    assert failed_text(lost) == "The ask reached laptop, and the connection was lost before a reply came (closed)"


FOUND = {
    "program": "intercom-remote",
    "version": "0.1.0",
    "python": "3.9.2",
    "broker": {"running": True, "version": "0.1.0"},
}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"found": FOUND}, "laptop: reached; intercom-remote 0.1.0, Python 3.9.2; its broker runs (version 0.1.0)"),
        (
            {"found": {**FOUND, "broker": None}},
            "laptop: reached; intercom-remote 0.1.0, Python 3.9.2; no broker runs there",
        ),
        ({"found": {"program": 5}}, "laptop: reached; unknown unknown, Python unknown; no broker runs there"),
        ({}, "laptop: reached; the Node command answers there and knows no check"),
        ({"code": "unreachable", "reason": "no route"}, "laptop: unreachable (no route)"),
    ],
)
def test_a_check(parts: dict[str, Any], text: str) -> None:
    assert check_text(DeviceCheck(**{"device": "laptop", "code": "", "reason": "", "marker": "1", **parts})) == text
