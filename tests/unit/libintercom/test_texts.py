"""Messages and results as text, whole, as a reader gets them."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.inbound import Inbound
from libintercom.outcomes import Answered, Outcome, not_sent, unknown
from libintercom.texts import (
    TOOL_REPLY_CALL,
    content_text,
    effect_text,
    failed_ask_text,
    failed_send_text,
    inbound_text,
    reply_text,
    sent_text,
)
from libintercom.wire.answers import parse_answer
from libintercom.wire.messages import Candidate, Content, Host
from libintercom.wire.record import parse_record
from tests.support.desk import incoming, row

BUILD = row("pi-build001", "web-build@desk", cwd="/work/web")
DELIVERED = Outcome(outcome="delivered", message_id="m1", accepted=True, delivered=True, delivery_unknown=False)
HELD = Outcome(outcome="queued", message_id="m1", reason="held", accepted=True, delivered=False, delivery_unknown=False)


def message(sender: dict[str, Any] = BUILD, text: str = "The schema change is merged.", **members: object) -> Inbound:
    heard: Any = parse_answer(incoming(sender, "q1", text, **members))
    return Inbound(row=heard.from_, message=heard.message, raw={})


def refused(code: str | None, reason: str, **parts: Any) -> Outcome:
    told = {"code": code} if code else {}
    return Outcome(
        outcome="refused",
        message_id="m1",
        reason=reason,
        accepted=False,
        delivered=False,
        delivery_unknown=False,
        **told,
        **parts,
    )


# ------------------------------------------------------------------ messages


def test_message_has_its_banner() -> None:
    assert inbound_text(message(), TOOL_REPLY_CALL) == (
        "**📨 From web-build@desk** (Native session cwd: /work/web)\n\nThe schema change is merged."
    )


def test_question_says_how_to_answer() -> None:
    assert inbound_text(message(text="Why?", expectsReply=True), TOOL_REPLY_CALL) == (
        "**📨 From web-build@desk** (Native session cwd: /work/web)\n\n"
        'The sender waits for a reply: intercom({ action: "reply", replyTo: "q1", message: "…" })\n\n'
        "Why?"
    )
    assert "waits" not in inbound_text(message(text="Why?", expectsReply=True))


def test_unnamed_sender_is_eight_characters_of_its_id() -> None:
    assert inbound_text(message(row("pi-5327100001"))).startswith("**📨 From pi-53271** (")


def test_reply_has_its_heading() -> None:
    assert reply_text("api-fix@laptop", message(text="Port 8443.")) == "**Reply from api-fix@laptop:**\nPort 8443."


def test_attachments_follow_behind_a_rule() -> None:
    content = {
        "text": "see",
        "attachments": [
            {"type": "file", "name": "a.py", "content": "print()\n", "language": "python"},
            {"type": "snippet", "name": "b", "content": ""},
        ],
    }
    assert content_text(parse_record(Content, content)) == (
        "see\n\n---\n\n📎 a.py (file)\n~~~python\nprint()\n~~~\n\n📎 b (snippet)\n~~~\n\n~~~"
    )


@pytest.mark.parametrize("run", [3, 4, 9])
def test_fence_is_longer_than_any_in_the_attachment(run: int) -> None:
    inner = f"~~~\nnot the end\n{'~' * run}\nstill inside"
    content = {"text": "", "attachments": [{"type": "context", "name": "c", "content": inner}]}
    text = content_text(parse_record(Content, content))
    fence = "~" * (run + 1)
    assert text.endswith(f"\n{fence}\n{inner}\n{fence}")


def test_nothing_of_a_peer_acts_on_a_terminal() -> None:
    hostile = message(row("pi-build001", "a\u202eb", cwd="/\u200b"), "[red]:warning:\ud83d\u2066\nsecond line\r\n")
    assert inbound_text(hostile) == (
        "**📨 From a<U+202E>b** (Native session cwd: /<U+200B>)\n\n[red]:warning:<U+D83D><U+2066>\nsecond line\n"
    )


# ------------------------------------------------------------------ send


@pytest.mark.parametrize(
    ("options", "how"),
    [
        (
            {},
            "defaults to steer; wakes idle recipients and steers active recipients after the current tool call",
        ),
        (
            {"delivery": "steer"},
            "steer; wakes idle recipients and steers active recipients after the current tool call",
        ),
        (
            {"delivery": "queue"},
            "queue; wakes idle recipients and waits for the end of an active recipient's turn",
        ),
        (
            {"delivery": "queue", "queue_mode": "replace", "thread_id": "t\u202e"},
            (
                "queue; wakes idle recipients and waits for the end of an active recipient's turn; "
                'replaces a still staged message of thread "t<U+202E>"'
            ),
        ),
        ({"delivery": "passive"}, "passive; wakes nobody; the recipient reads it at its next turn"),
    ],
)
def test_sent_message_says_how(options: Any, how: str) -> None:
    assert sent_text("api-fix@laptop", DELIVERED, options) == f"Message sent to api-fix@laptop ({how})"


def test_queued_message_says_why() -> None:
    assert sent_text("x", HELD, {"delivery": "passive"}) == (
        "Message queued for x (passive; wakes nobody; the recipient reads it at its next turn): held"
    )


TWINS = (
    Candidate(id="pi-1", target="pi-twin0001", name="twin", cwd="/a"),
    Candidate(id="pi-2", target="pi-twin0002", name="tw\u202ein", cwd=None),
)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (refused("not_found", "Session not found"), 'Message to "x" was not delivered: Session not found.'),
        (
            refused("not_found", "Session not found", nearest=TWINS[:1]),
            'Message to "x" was not delivered: Session not found. Did you mean: pi-twin0001 (twin, /a)?',
        ),
        (
            refused("ambiguous", 'Multiple sessions named "x" are connected.', candidates=TWINS),
            (
                'Target "x" matches multiple sessions. Message to "x" was not sent. '
                "Use one of: pi-twin0001 (twin, /a), pi-twin0002 (tw<U+202E>in)."
            ),
        ),
        (
            refused("too_short", "short"),
            'Target "x" is too short: give a name or at least 8 characters of an ID. Message to "x" was not sent.',
        ),
        (
            refused("rate_limited", "too fast", rule="pair_messages", count=600, limit=600, retry_after_ms=1500),
            'Message to "x" was not delivered: too fast. Limit: pair_messages (600 of 600), open again in 1.5 s.',
        ),
        (
            not_sent("m1", "not_connected", "the connection to intercomd ended during send: gone."),
            'Message to "x" was not sent: the connection to intercomd ended during send: gone.',
        ),
        (
            unknown("m1", "no acknowledgement came within 8 s"),
            (
                'Delivery unknown: no acknowledgement came within 8 s (Message to "x", message m1). '
                "The message may have arrived. Check the recipient before sending again."
            ),
        ),
    ],
)
def test_failed_send_says_whether_it_left(outcome: Outcome, text: str) -> None:
    assert failed_send_text("x", outcome) == text


def test_reason_of_a_peer_is_cleaned() -> None:
    assert failed_send_text("\x1b", refused(None, "a\nb\x1b")) == 'Message to "␛" was not delivered: a␊b␛.'


# ------------------------------------------------------------------ ask

WHERE = "The question was delivered (message m1)."


@pytest.mark.parametrize(
    ("outcome", "ended_by", "text"),
    [
        (DELIVERED, "timeout", f'No reply from "x" within 120 seconds. {WHERE} Nobody waits for its reply now.'),
        (
            HELD,
            "timeout",
            (
                'No reply from "x" within 120 seconds. The question is accepted and may still arrive (message m1). '
                "Nobody waits for its reply now."
            ),
        ),
        (DELIVERED, "peer_left", f'"x" left before it replied. {WHERE}'),
        (
            DELIVERED,
            "disconnected",
            f"The connection to the broker was lost before a reply came. {WHERE} A reply is lost.",
        ),
        (
            DELIVERED,
            "peer_busy",
            (
                f'"x" is busy (accepts_asks:false). {WHERE} Not waiting for its reply. '
                "To wait, ask with delivery steer or queue."
            ),
        ),
        (DELIVERED, "cancelled", f"Cancelled. {WHERE}"),
        (HELD, "cancelled", "Cancelled. The question is accepted and may still arrive (message m1)."),
        (unknown("m1", "?"), "cancelled", "Cancelled. Whether the question arrived is unknown (message m1)."),
        (not_sent("m1", "cancelled", "?"), "cancelled", "Cancelled. The question was not sent."),
        (refused("ask_cycle", "x waits for you"), "", 'Ask to "x" was not sent: x waits for you.'),
        (not_sent("m1", "already_waiting", "already waiting"), "", 'Ask to "x" was not sent: already waiting.'),
        (
            unknown("m1", "reset"),
            "disconnected",
            (
                'Delivery unknown: reset (Ask to "x", message m1). The message may have arrived. '
                "Check the recipient before sending again."
            ),
        ),
    ],
)
def test_failed_ask_says_what_became_of_the_question(outcome: Outcome, ended_by: str, text: str) -> None:
    assert failed_ask_text("x", Answered(outcome=outcome, ended_by=ended_by), 120.0) == text


# ------------------------------------------------------------------ nobody is told more than is true

FULL = Host(steer=True, wake=True, turn_end=True)


@pytest.mark.parametrize(
    ("host", "delivery", "effect"),
    [
        (None, None, "wakes idle recipients and steers active recipients after the current tool call"),
        (FULL, None, "wakes idle recipients and steers active recipients after the current tool call"),
        (FULL, "queue", "wakes idle recipients and waits for the end of an active recipient's turn"),
        (Host(wake=True), "queue", "wakes idle recipients and waits for the end of an active recipient's turn"),
        (
            Host(wake=True),
            "steer",
            "wakes idle recipients; this host cannot steer, so an active one reads it after its turn",
        ),
        (Host(steer=True), "steer", "this host is not woken; it reads when it next looks"),
        (Host(prompt_only=True, wake=True), "steer", "this host reads at its next prompt"),
        (Host(prompt_only=True), "passive", "wakes nobody; the recipient reads it at its next turn"),
    ],
)
def test_effect_is_what_the_recipients_host_can_do(host: Host | None, delivery: str | None, effect: str) -> None:
    assert effect_text(delivery, host) == effect
    options: Any = {"delivery": delivery} if delivery else {}
    assert f"{effect})" in sent_text("ann", DELIVERED, options, host)


def test_a_failed_wake_says_why_and_warns_of_asking_twice() -> None:
    answered = Answered(outcome=HELD, ended_by="wake_failed", reason="no such program\x1b[31m")
    text = failed_ask_text("x", answered, 120.0)
    assert text.startswith('"x" is parked and could not be woken: no such program')
    assert "\x1b" not in text
    assert text.endswith("may still arrive (message m1). Check that session before asking again.")
