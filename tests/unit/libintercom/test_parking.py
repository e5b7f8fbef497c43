"""Parking children and fetching late replies, from the client's side: what is said, what its answers mean."""

from __future__ import annotations

import pytest

from libintercom import asking, parking
from libintercom.asking import Question
from libintercom.errors import Disconnected, ParkRefused, TimedOut, Unsupported
from libintercom.inbound import WakeAsked, WakeFailed
from libintercom.outcomes import LateReply
from libintercom.sending import Timeouts
from tests.support.desk import Desk, incoming, row

TOKEN = "0123456789abcdef" * 2
ASKED = WakeAsked(child_id="c1", message_id="m1", attempt=3)


def test_parking_a_child() -> None:
    desk = Desk().join()
    running = desk.run(parking.park(desk.exchange, "c1", {"cwd": "/w", "model": "m"}, "run-1"))
    assert desk.said() == [
        {"type": "park", "childId": "c1", "row": {"cwd": "/w", "model": "m"}, "runId": "run-1"},
    ]
    desk.hear({"type": "parked", "childId": "c1"})
    running.resume()
    assert running.is_done


def test_unparking_tells_how_much_was_given_up() -> None:
    desk = Desk().join()
    running = desk.run(parking.unpark(desk.exchange, "c1", discard=True))
    assert desk.said() == [{"type": "unpark", "childId": "c1", "discard": True}]
    desk.hear({"type": "unparked", "childId": "c1", "dropped": 2})
    assert running.resume() == 2


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("not_your_child", "no child of this main's group"),
        ("child_live", "it is back"),
        ("limit", "as many children"),
        ("has_input", "say discard"),
        ("store_failed", "could not store"),
        ("new_code", "'new_code'"),
    ],
)
def test_a_refusal_says_what_to_do(code: str, words: str) -> None:
    desk = Desk().join()
    running = desk.run(parking.park(desk.exchange, "c1", None, None))
    desk.hear({"type": "park_failed", "childId": "c1", "code": code})
    with pytest.raises(ParkRefused, match=words):
        running.resume()


def test_without_an_answer_it_is_not_known() -> None:
    desk = Desk().join()
    with pytest.raises(TimedOut):
        desk.run(parking.park(desk.exchange, "c1", None, None)).resume(5.0)
    running = desk.run(parking.park(desk.exchange, "c1", None, None))
    desk.exchange.end("gone")
    with pytest.raises(Disconnected):
        running.resume()


def test_an_old_broker_parks_nothing() -> None:
    desk = Desk().join(ext=False)
    with pytest.raises(Unsupported):
        desk.run(parking.park(desk.exchange, "c1", None, None))
    with pytest.raises(Unsupported):
        desk.run(parking.fetch_reply(desk.exchange, "q1", TOKEN))
    with pytest.raises(Unsupported):
        parking.ack_reply(desk.exchange, "q1", TOKEN)


def test_a_wake_is_an_event_and_is_answered() -> None:
    desk = Desk().join()
    desk.hear({"type": "wake_request", "childId": "c1", "messageId": "m1", "attempt": 3})
    assert desk.events() == [ASKED]
    parking.answer_wake(desk.exchange, ASKED)
    parking.answer_wake(desk.exchange, ASKED, failure="no such program")
    about = {"type": "wake_outcome", "childId": "c1", "attempt": 3}
    assert desk.said() == [
        {**about, "outcome": "started"},
        {**about, "outcome": "failed", "reason": "no such program"},
    ]


def test_a_reply_is_fetched_as_it_would_have_come() -> None:
    desk = Desk().join()
    running = desk.run(parking.fetch_reply(desk.exchange, "q1", TOKEN))
    assert desk.said() == [{"type": "fetch_reply", "requestId": "id-1", "messageId": "q1", "replyToken": TOKEN}]
    frame = incoming(row("pi-peer01", "bob"), "r1", "so", replyTo="q1", x=1)
    parts = {"from": frame["from"], "message": frame["message"]}
    desk.hear({"type": "fetched_reply", "requestId": "id-1", "state": "replied", **parts})
    late = running.resume()
    assert late is not None
    assert (late.state, late.reply.sender, late.reply.message.id) == ("replied", "bob", "r1")
    assert late.reply.raw == parts
    parking.ack_reply(desk.exchange, "q1", TOKEN)
    assert desk.said() == [{"type": "ack_reply", "messageId": "q1", "replyToken": TOKEN}]


@pytest.mark.parametrize("state", ["waiting", "expired", "unknown"])
def test_without_a_reply_there_is_a_state(state: str) -> None:
    desk = Desk().join()
    running = desk.run(parking.fetch_reply(desk.exchange, "q1", TOKEN))
    desk.hear({"type": "fetched_reply", "requestId": "id-1", "state": state})
    assert running.resume() == LateReply(state=state)


# -- asks --------------------------------------------------------------------------------------------


def asked(desk: Desk, options: dict[str, str] | None = None, **members: object) -> tuple[object, dict[str, object]]:
    """An ask under way, accepted, and its message."""
    question = Question("bob", "well?", 60.0, {"message_id": "q1", **(options or {})}, **members)  # type: ignore[arg-type]
    running = desk.run(asking.ask(desk.exchange, question, Timeouts()))
    (sent,) = [said for said in desk.said() if said["type"] == "send"] or [None]
    if sent is None:
        desk.hear({"type": "sessions", "requestId": "id-1", "sessions": [row("pi-peer01", "bob")]})
        running.resume()
        (sent,) = desk.said()
    desk.hear({"type": "delivery_queued", "messageId": "q1", "reason": "parked"})
    running.resume()
    return running, sent["message"]


def test_a_failed_wake_ends_the_wait_and_withdraws_nothing() -> None:
    desk = Desk().join()
    running, _message = asked(desk)
    desk.hear({"type": "wake_failed", "messageId": "q1", "reason": "no such program"})
    answer = running.resume()  # type: ignore[attr-defined]
    assert (answer.ended_by, answer.reason) == ("wake_failed", "no such program")
    assert desk.said() == []
    assert desk.events() == [WakeFailed(message_id="q1", reason="no such program")]


def test_a_kept_ask_tells_its_token_and_stands_when_the_wait_is_over() -> None:
    desk = Desk().join()
    running, message = asked(desk, {"reply_token": TOKEN}, keep_reply_s=60.0)
    assert message["keepReplyMs"] == 60_000
    answer = running.resume(60.0)  # type: ignore[attr-defined]
    assert (answer.ended_by, answer.reply_token) == ("timeout", TOKEN)
    assert desk.said() == []


def test_a_kept_ask_that_is_taken_back_is_withdrawn() -> None:
    desk = Desk().join()
    running, _message = asked(desk, {"reply_token": TOKEN}, keep_reply_s=60.0)
    asking.cancel_ask(desk.exchange, "q1")
    assert running.resume().ended_by == "cancelled"  # type: ignore[attr-defined]
    assert desk.said() == [{"type": "cancel_ask", "messageId": "q1"}]


def test_an_old_broker_keeps_no_reply() -> None:
    desk = Desk().join(ext=False)
    question = Question("pi-peer01", "well?", 60.0, {}, keep_reply_s=60.0)
    answer = desk.run(asking.ask(desk.exchange, question, Timeouts()))
    assert answer.result is not None
    assert answer.result.outcome.code == "invalid_message"
