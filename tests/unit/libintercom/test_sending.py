"""What became of a message: each outcome word claims only what was observed on this side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from libintercom import sending
from libintercom.sending import Timeouts
from libintercom.wire.messages import Attachment
from libintercom.wire.record import dump_record
from tests.support.desk import ME, NOW_MS, Desk, Object, Running, incoming, row

if TYPE_CHECKING:
    from libintercom.inbound import Inbound
    from libintercom.outcomes import Outcome

PEER = row("pi-peer0001", "peer")


def send(desk: Desk, to: str = "peer", text: str | None = "hello", **options: object) -> Running[Outcome]:
    return desk.run(sending.send(desk.exchange, to, text, options, Timeouts()))  # type: ignore[arg-type]


def posted(desk: Desk) -> Object:
    """The one message that was said."""
    [said] = desk.said()
    assert said["type"] == "send"
    return said


def ended(running: Running[Outcome]) -> Object:
    """The outcome as ``send --json`` shows it."""
    outcome = running.go_on()
    assert outcome is not None
    return dump_record(outcome)


def test_send_says_the_text_and_steers_by_default() -> None:
    desk = Desk().join()
    send(desk, " Peer ", "hello")
    assert posted(desk) == {
        "type": "send",
        "to": " Peer ",
        "message": {"id": "id-1", "timestamp": NOW_MS, "content": {"text": "hello"}, "delivery": "steer"},
    }


def test_every_option_has_its_member() -> None:
    desk = Desk().join()
    attached = Attachment(type="file", name="a.py", content="x")
    snippet = {"type": "snippet", "name": "s", "content": "", "language": "sh"}
    send(
        desk,
        message_id="mine",
        attachments=[attached, snippet],
        delivery="queue",
        queue_mode="replace",
        thread_id="t",
        reply_to="q",
        timeout_ms=None,
    )
    assert posted(desk)["message"] == {
        "id": "mine",
        "timestamp": NOW_MS,
        "content": {"text": "hello", "attachments": [{"type": "file", "name": "a.py", "content": "x"}, snippet]},
        "delivery": "queue",
        "queueMode": "replace",
        "threadId": "t",
        "replyTo": "q",
    }


def test_ask_sent_without_waiting_says_no_delivery() -> None:
    desk = Desk().join()
    send(desk, expects_reply=True, timeout_ms=0)
    message = posted(desk)["message"]
    assert "delivery" not in message
    assert (message["expectsReply"], message["timeoutMs"]) == (True, 0)


# ------------------------------------------------------------------ the broker's words


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (
            {"type": "delivered"},
            {"outcome": "delivered", "accepted": True, "delivered": True, "deliveryUnknown": False},
        ),
        (
            {"type": "delivery_queued", "reason": "held"},
            {"outcome": "queued", "reason": "held", "accepted": True, "delivered": False, "deliveryUnknown": False},
        ),
        (
            # The sibling's broker says it this way.
            {"type": "delivered", "delivery": "queued", "retryable": False, "outcomeKnown": True},
            {"outcome": "queued", "accepted": True, "delivered": False, "deliveryUnknown": False},
        ),
        (
            {"type": "delivery_failed", "reason": "no", "code": "rate_limited", "retryable": True, "outcomeKnown": True,
             "rule": "pair", "count": 600, "limit": 600, "retryAfterMs": 1200},
            {"outcome": "refused", "code": "rate_limited", "reason": "no", "retryable": True, "rule": "pair",
             "count": 600, "limit": 600, "retryAfterMs": 1200,
             "accepted": False, "delivered": False, "deliveryUnknown": False},
        ),
        (
            {"type": "delivery_failed", "reason": "no", "code": "not_found",
             "nearest": [{"id": "pi-peer0001", "target": "pi-peer0", "name": "peer", "cwd": "/w"}]},
            {"outcome": "refused", "code": "not_found", "reason": "no",
             "nearest": [{"id": "pi-peer0001", "target": "pi-peer0", "name": "peer", "cwd": "/w"}],
             "accepted": False, "delivered": False, "deliveryUnknown": False},
        ),
        (
            # Whoever says that it does not know is believed.
            {"type": "delivery_failed", "reason": "lost it", "code": "E_TARGET_DISCONNECTED", "outcomeKnown": False},
            {"outcome": "unknown", "reason": "lost it", "deliveryUnknown": True},
        ),
    ],
)  # fmt: skip
def test_receipt_becomes_its_outcome(answer: Object, outcome: Object) -> None:
    desk = Desk().join()
    running = send(desk)
    desk.hear({**answer, "messageId": "id-1"})
    assert ended(running) == {**outcome, "messageId": "id-1"}


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("Session not found", "not_found"),
        ('Multiple sessions named "peer" are connected. Use the session ID instead.', "ambiguous"),
        ("Recipient disconnected before delivery", "recipient_left"),
        ("Intercom message too large (1048686 bytes; max 1048576)", "too_large"),
        ("Replace-mode delivery queue is full; retry after pending updates are delivered.", "stage_full"),
        ("Invalid message format", "invalid_message"),
        ("Sender session not found", "not_registered"),
        ("Something new", None),
    ],
)
def test_reason_of_an_old_broker_has_a_code_when_it_is_known(reason: str, code: str | None) -> None:
    desk = Desk().join()
    running = send(desk)
    desk.hear({"type": "delivery_failed", "messageId": "id-1", "reason": reason})
    assert ended(running).get("code") == code


def test_receipts_of_other_messages_do_not_count() -> None:
    desk = Desk().join()
    running = send(desk)
    desk.hear({"type": "delivered", "messageId": "other"})
    assert not running.call.is_settled


def test_two_messages_under_way_get_their_own_outcomes() -> None:
    desk = Desk().join()
    first, second = send(desk), send(desk)
    desk.hear(
        {"type": "delivery_failed", "messageId": "id-2", "reason": "no"}, {"type": "delivered", "messageId": "id-1"}
    )
    assert (ended(first)["outcome"], ended(second)["outcome"]) == ("delivered", "refused")


# ------------------------------------------------------------------ no word at all

UNKNOWN = ("unknown", None, None, True)
NOT_SENT = ("not_sent", False, False, False)


def told(running: Running[Outcome]) -> tuple[str, bool | None, bool | None, bool]:
    outcome = running.result
    assert outcome is not None
    return outcome.outcome, outcome.accepted, outcome.delivered, outcome.delivery_unknown


def test_missing_acknowledgement_is_unknown() -> None:
    desk = Desk().join()
    running = send(desk)
    desk.said()
    assert running.timeout_s == 8
    running.resume(8.0)
    assert told(running) == UNKNOWN
    assert running.result is not None
    assert running.result.reason == "no acknowledgement came within 8 s"


def test_connection_that_ends_after_the_frame_left_is_unknown() -> None:
    desk = Desk().join()
    running = send(desk)
    desk.said()
    desk.exchange.end("reset", is_lost=True)
    running.go_on()
    assert told(running) == UNKNOWN


@pytest.mark.parametrize("missing_bytes", [1, 10])
def test_connection_that_ends_before_the_whole_frame_left_is_certain(missing_bytes: int) -> None:
    """Bytes of half a frame are thrown away by any broker, so nothing can have arrived."""
    desk = Desk().join()
    running = send(desk)
    output = desk.exchange.take_output()
    desk.exchange.note_written(len(output) - missing_bytes)
    desk.exchange.end("broken pipe", is_lost=True)
    running.go_on()
    assert told(running) == NOT_SENT


def test_of_two_messages_only_the_one_that_left_is_unknown() -> None:
    desk = Desk().join()
    first = send(desk)
    desk.said()
    second = send(desk)
    desk.exchange.end("broken pipe", is_lost=True)
    first.go_on()
    second.go_on()
    assert (told(first), told(second)) == (UNKNOWN, NOT_SENT)


def test_late_acknowledgement_is_ignored() -> None:
    desk = Desk().join()
    running = send(desk)
    running.resume(8.0)
    desk.hear({"type": "delivered", "messageId": "id-1"})
    assert told(running) == UNKNOWN
    assert desk.exchange._calls == {}


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ({"text": "\x1b[31m"}, "invalid_message", "text"),
        ({"text": None}, "invalid_message", "no text"),
        ({"text": 5}, "invalid_message", "text"),
        ({"to": ""}, "invalid_message", "target"),
        ({"to": " \ufeff"}, "invalid_message", "target"),
        ({"to": None}, "invalid_message", "target"),
        ({"delivery": "bogus"}, "invalid_message", "delivery"),
        ({"delivery": "passive", "expects_reply": True}, "invalid_message", "passive"),
        ({"queue_mode": "replace", "delivery": "queue"}, "invalid_message", "threadId"),
        ({"thread_id": "t"}, "invalid_message", "threadId"),
        ({"queue_mode": "stack"}, "invalid_message", "queueMode"),
        ({"message_id": "a\nb"}, "invalid_message", "id"),
        ({"reply_to": ""}, "invalid_message", "replyTo"),
        ({"timeout_ms": -1}, "invalid_message", "timeoutMs"),
        ({"attachments": [{"type": "image", "name": "a", "content": ""}]}, "invalid_message", "type"),
        ({"attachments": [{"name": "a", "content": ""}]}, "invalid_message", "type"),
        ({"attachments": ["text"]}, "invalid_message", "Attachment"),
        ({"text": "x" * 1_048_576}, "too_large", "1048576"),
    ],
)
def test_message_that_cannot_be_sent_stays_here(options: Object, code: str, word: str) -> None:
    desk = Desk().join()
    running = send(desk, **options)
    assert desk.said() == []
    assert told(running) == NOT_SENT
    assert running.result is not None
    assert running.result.code == code
    assert word in (running.result.reason or "")
    assert desk.exchange._calls == {}


def test_option_that_does_not_exist_is_misuse() -> None:
    with pytest.raises(TypeError, match="colour"):
        send(Desk().join(), colour="red")


def test_send_of_nobody_is_not_sent() -> None:
    running = send(Desk())
    assert told(running) == NOT_SENT
    assert running.result is not None
    assert running.result.code == "not_connected"


def test_message_id_under_way_is_not_sent_twice() -> None:
    desk = Desk().join()
    first = send(desk, message_id="same")
    second = send(desk, message_id="same")
    assert len(desk.said()) == 1
    assert told(second) == NOT_SENT
    desk.hear({"type": "delivered", "messageId": "same"})
    assert ended(first)["outcome"] == "delivered"


# ------------------------------------------------------------------ through an old broker


def listed(desk: Desk, *rows: Object) -> None:
    [asked] = desk.said()
    assert asked["type"] == "list"
    desk.hear({"type": "sessions", "requestId": asked["requestId"], "sessions": [row(ME, "me"), *rows]})


@pytest.mark.parametrize(
    ("to", "resolved"),
    [(" PEER ", "pi-peer0001"), ("pi-peer0", "pi-peer0001"), ("pi-peer0001", "pi-peer0001"), ("nobody", "nobody")],
)
def test_old_broker_gets_targets_that_it_understands(to: str, resolved: str) -> None:
    desk = Desk().join(ext=False)
    running = send(desk, to)
    listed(desk, PEER)
    running.go_on()
    assert posted(desk)["to"] == resolved


@pytest.mark.parametrize(
    ("to", "code"), [("me", "self_target"), (ME, "self_target"), ("pi-p", "too_short"), ("twin", "ambiguous")]
)
def test_what_an_old_broker_would_deliver_wrongly_is_refused_here(to: str, code: str) -> None:
    desk = Desk().join(ext=False)
    running = send(desk, to)
    listed(desk, PEER, row("pi-twin0001", "twin"), row("pi-twin0002", "Twin"))
    outcome = running.go_on()
    assert desk.said() == []
    assert outcome is not None
    assert (outcome.outcome, outcome.code) == ("not_sent", code)
    candidates = [one.target for one in outcome.candidates or ()]
    assert candidates == (["pi-twin0001", "pi-twin0002"] if code == "ambiguous" else [])


def test_old_broker_that_lists_nothing_gets_the_target_as_it_is() -> None:
    desk = Desk().join(ext=False)
    running = send(desk)
    desk.said()
    running.resume(5.0)
    assert posted(desk)["to"] == "peer"


def test_broker_of_ours_resolves_by_itself() -> None:
    desk = Desk().join()
    send(desk, "me")
    assert posted(desk)["to"] == "me"


# ------------------------------------------------------------------ replies


def reply(desk: Desk, which: Inbound | str | None = None, to: str = "") -> Running[Outcome]:
    return desk.run(sending.reply(desk.exchange, which, "so", to, {}, Timeouts()))


@pytest.mark.parametrize("ext", [True, False])
def test_reply_names_its_question_and_goes_to_who_asked(ext: bool) -> None:
    desk = Desk().join(ext=ext)
    desk.hear(incoming(PEER, "q1", expectsReply=True))
    running = reply(desk)
    said = posted(desk)
    assert (said["to"], said["message"]["replyTo"]) == ("pi-peer0001", "q1")
    desk.hear({"type": "delivered", "messageId": said["message"]["id"]})
    assert ended(running)["outcome"] == "delivered"
    assert len(desk.exchange.pending) == 0


@pytest.mark.parametrize("ending", ["refused", "unknown"])
def test_reply_that_was_not_accepted_leaves_the_question_open(ending: str) -> None:
    desk = Desk().join()
    desk.hear(incoming(PEER, "q1", expectsReply=True))
    running = reply(desk, "q1")
    if ending == "refused":
        desk.hear({"type": "delivery_failed", "messageId": "id-1", "reason": "full", "code": "recipient_full"})
    running.resume(8.0)
    assert running.result is not None
    assert running.result.outcome == ending
    assert [ask.message_id for ask in desk.exchange.pending] == ["q1"]


@pytest.mark.parametrize(("which", "to"), [("q9", ""), (None, "nobody"), (None, "")])
def test_reply_to_no_one_question_is_not_sent(which: str | None, to: str) -> None:
    desk = Desk().join()
    if which is None and not to:
        desk.hear(incoming(PEER, "q1", expectsReply=True), incoming(PEER, "q2", expectsReply=True))
    running = reply(desk, which, to)
    assert desk.said() == []
    assert running.result is not None
    assert (running.result.outcome, running.result.code) == ("not_sent", "no_pending_ask")


def test_reply_takes_the_message_itself() -> None:
    desk = Desk().join()
    desk.hear(incoming(PEER, "q1", expectsReply=True), incoming(PEER, "q2", expectsReply=True))
    question = desk.events()[1]
    reply(desk, question)  # type: ignore[arg-type]
    assert posted(desk)["message"]["replyTo"] == "q2"


def test_reply_after_the_question_was_retired_fails() -> None:
    desk = Desk().join()
    desk.hear(
        incoming(PEER, "q1", expectsReply=True),
        {"type": "ask_retired", "messageId": "q1", "askerId": "pi-peer0001", "reason": "timeout"},
    )
    running = reply(desk, "q1")
    assert running.result is not None
    assert running.result.code == "no_pending_ask"
