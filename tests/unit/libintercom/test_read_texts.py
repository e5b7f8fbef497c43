"""Pages, receipts and what waits as text, whole, as a reader gets them."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.read_texts import (
    COMMAND_LAST_CALL,
    TOOL_LAST_CALL,
    TOOL_PENDING_CALL,
    failed_read_text,
    following_text,
    message_page_text,
    page_text,
    receipt_text,
    views_text,
)
from libintercom.wire.reads import Page

NOW_MS = 1_700_000_000_000
WHOLE = Page(entry_id="e1", offset=0, text="All is well.", next_offset=None, total=12)
FIRST = Page(entry_id="e1", offset=0, text="x" * 10, next_offset=10, total=12)

RECEIPT: dict[str, Any] = {
    "version": 1,
    "rootSessionId": "main-1",
    "messageId": "m1",
    "sender": {"peerId": "pi-1", "rootSessionId": "main-2"},
    "delivery": "steer",
    "receivedAt": NOW_MS,
    "checkpointEntryId": "c1",
    "textSha256": "0" * 64,
    "queued": False,
    "nativeHandoff": True,
    "placementEntryId": "p1",
    "discarded": False,
}


def test_a_whole_response_has_its_heading() -> None:
    assert page_text("reviewer", WHOLE, TOOL_LAST_CALL) == (
        "**Last response of reviewer** (entry e1, 0-12 of 12)\n\nAll is well."
    )


def test_a_page_says_how_to_go_on() -> None:
    assert page_text("reviewer", FIRST, TOOL_LAST_CALL) == (
        f"**Last response of reviewer** (entry e1, 0-10 of 12)\n\n{'x' * 10}\n\n"
        'The text goes on: intercom({ action: "last", to: "reviewer", entryId: "e1", offset: 10 })'
    )
    assert following_text("reviewer", FIRST, COMMAND_LAST_CALL) == (
        "The text goes on: intercomctl last reviewer --entry-id e1 --offset 10"
    )


def test_a_page_of_a_message_says_how_to_go_on() -> None:
    assert message_page_text(WHOLE, TOOL_PENDING_CALL) == "All is well."
    assert message_page_text(FIRST, TOOL_PENDING_CALL).endswith(
        'The text goes on: intercom({ action: "pending", entryId: "e1", offset: 10 })'
    )


def test_nothing_of_a_response_acts_on_a_terminal() -> None:
    hostile = Page(entry_id="e\x1b", offset=0, text="a\x1b]52;c;x\x07\u202e", next_offset=None, total=11)
    text = page_text("re\u202eviewer", hostile, TOOL_LAST_CALL)
    assert text.split("\n\n") == [
        "**Last response of re<U+202E>viewer** (entry e␛, 0-11 of 11)",
        "a␛]52;c;x␇<U+202E>",
    ]


@pytest.mark.parametrize(
    ("code", "reason", "text"),
    [
        ("empty_history", "x", '"reviewer" has no completed response yet.'),
        ("not_found", "Session not found", 'Nothing was read from "reviewer": Session not found.'),
        ("unsupported", "", 'Nothing was read from "reviewer": no reason given. Its program, or the broker, is older '),
        ("timeout", "no answer.", 'Nothing was read from "reviewer": no answer. Try again.'),
        ("receipt_not_found", "no checkpoint", "That proves neither that the message had no effect nor that it was "),
    ],
)
def test_a_failed_read_says_why_and_what_to_do(code: str, reason: str, text: str) -> None:
    assert text in failed_read_text("reviewer", code, reason)


def test_a_receipt_is_one_fact_a_line() -> None:
    assert receipt_text("reviewer", RECEIPT).splitlines() == [
        "**Receipt of reviewer**",
        "**Message:** m1",
        "**Root session:** main-1",
        "**Sender:** pi-1 (root main-2)",
        "**Delivery asked for:** steer",
        "**Received:** 2023-11-14 22:13:20 UTC",
        "**Recorded:** yes, entry c1",
        "**Held back at first:** not seen",
        "**Given to the host:** yes",
        "**Placed by the host:** yes, entry p1",
        "**Discarded:** not seen",
        f"**Text, SHA-256:** {'0' * 64}",
    ]


def test_what_a_receipt_does_not_know_is_not_claimed() -> None:
    bare = {**RECEIPT, "sender": {"peerId": "pi-1"}, "delivery": None, "placementEntryId": None, "receivedAt": 1e300}
    text = receipt_text("reviewer", bare)
    assert "**Sender:** pi-1 (root not recorded)" in text
    assert "**Delivery asked for:** none named" in text
    assert "**Placed by the host:** not seen" in text
    assert "**Received:** 1e+300 ms" in text


def test_what_waits_is_one_line_each() -> None:
    asked = [("bob", "which\n  port?"), ("eve\x1b", "x" * 200)]
    views = [
        {"messageId": f"q{number}", "sender": name, "senderId": f"pi-{number}", "text": text, "receivedAtMs": at_ms}
        for number, (name, text) in enumerate(asked)
        for at_ms in (NOW_MS - 61_000,)
    ]
    assert views_text("Questions", views, NOW_MS) == (
        "**Questions (2):**\n"
        "• q0 from bob (pi-0), 1m ago: which port?\n"
        f"• q1 from eve␛ (pi-1), 1m ago: {'x' * 120}…"
    )
