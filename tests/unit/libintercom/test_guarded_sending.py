"""Guarded messages on the sender's side: whole and negotiated, or not said at all."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom import asking, flows, sending
from libintercom.asking import Question
from libintercom.errors import InvalidProfile, Unsupported
from libintercom.profile import Profile, presence_request, register_request
from libintercom.sending import Timeouts
from libintercom.wire.guards import Guard, ReplyHint
from libintercom.wire.record import dump_record
from tests.support.covering import covers
from tests.support.desk import ME, Desk

GUARD = {"rootSessionId": "root", "peerId": "pi-bob00001", "incarnation": "i", "applicationGuard": "v1"}
HINT = {"tool": "publish", "commandId": "00000000-0000-4000-8000-00000000000a"}
WHOLE: Any = {"message_id": "m1", "delivery": "steer", "guard": GUARD}


def joined(**registered: Any) -> Desk:
    desk = Desk(guarded_delivery=True, application_guard="mine")
    running = desk.run(flows.register(desk.exchange))
    asked = desk.said()[0]
    assert (asked["guardedDelivery"], asked["session"]["applicationGuard"]) == (1, "mine")
    desk.hear({"type": "registered", "sessionId": ME, "ext": 1, **registered})
    running.resume()
    return desk


def send(desk: Desk, to: str = "pi-bob00001", **options: Any) -> Any:
    return desk.run(sending.send(desk.exchange, to, "hi", {**WHOLE, **options}, Timeouts()))


@pytest.mark.parametrize(
    "guard", [GUARD, Guard(root_session_id="root", peer_id="pi-bob00001", incarnation="i", application_guard="v1")]
)
@pytest.mark.parametrize("hint", [None, HINT, ReplyHint(tool="publish", command_id=HINT["commandId"])])
def test_a_whole_guard_goes_out_with_its_message(guard: Any, hint: Any) -> None:
    desk = joined(guardedDelivery=1)
    running = send(desk, guard=guard, reply_hint=hint)
    (said,) = desk.said()
    message = said["message"]
    assert (said["to"], message["guard"], message["expectsReply"]) == ("pi-bob00001", GUARD, False)
    assert message.get("replyHint") == (None if hint is None else HINT)
    desk.hear({"type": "delivered", "messageId": "m1"})
    assert running.resume().outcome == "delivered"


@covers("9.3-client")
@pytest.mark.parametrize(
    "change",
    [
        {"to": "bob"},
        {"message_id": None},
        {"delivery": None},
        {"expects_reply": True},
        {"reply_to": "m0"},
        {"delivery": "queue", "queue_mode": "stack"},
        {"guard": {**GUARD, "incarnation": ""}},
        {"guard": {}},
        {"guard": None, "reply_hint": HINT},
        {"reply_hint": {"tool": "a b", "commandId": HINT["commandId"]}},
    ],
)
def test_what_is_not_whole_is_not_said(change: dict[str, Any]) -> None:
    desk = joined(guardedDelivery=1)
    outcome = send(desk, **change).result
    assert (outcome.outcome, outcome.code, outcome.delivery_unknown) == ("not_sent", "guard_invalid", False)
    assert desk.said() == []


@covers("9.3-client")
def test_without_negotiation_nothing_is_said_not_even_a_list() -> None:
    for desk in (joined(), Desk().join(ext=False)):
        outcome = send(desk).result
        assert (outcome.outcome, outcome.code) == ("not_sent", "guard_unsupported")
        assert desk.said() == []


def test_nobody_is_registered() -> None:
    assert send(Desk(guarded_delivery=True)).result.code == "not_connected"


def test_an_ask_or_reply_is_never_guarded() -> None:
    desk = joined(guardedDelivery=1)
    question = Question("pi-bob00001", "well?", 5.0, WHOLE)
    running = desk.run(asking.ask(desk.exchange, question, Timeouts()))
    (listing,) = desk.said()
    desk.hear({"type": "sessions", "requestId": listing["requestId"], "sessions": []})
    answered = running.go_on()
    assert answered is not None
    assert (answered.outcome.outcome, answered.outcome.code) == ("not_sent", "guard_invalid")
    assert desk.said() == []


def test_a_second_send_under_a_pending_id_is_refused_and_the_first_keeps_its_answer() -> None:
    desk = joined(guardedDelivery=1)
    first = send(desk)
    second = send(desk).result
    assert (second.outcome, second.code) == ("not_sent", "invalid_message")
    assert len(desk.said()) == 1
    desk.hear({"type": "delivered", "messageId": "m1"})
    assert first.resume().outcome == "delivered"


# -- consent -------------------------------------------------------------------------------------------------


def test_consent_is_published_withdrawn_and_kept_for_another_connection() -> None:
    desk = joined(guardedDelivery=1)
    flows.publish_presence(desk.exchange, {"application_guard": "v2"})
    assert desk.said() == [{"type": "presence", "applicationGuard": "v2"}]
    assert register_request(desk.exchange.profile).session.application_guard == "v2"
    flows.publish_presence(desk.exchange, {"application_guard": None})
    assert desk.said() == [{"type": "presence", "applicationGuard": None}]
    assert "applicationGuard" not in dump_record(register_request(desk.exchange.profile).session)


def test_consent_ends_with_the_context_it_was_given_for() -> None:
    desk = joined(guardedDelivery=1)
    flows.unregister(desk.exchange)
    assert "applicationGuard" not in dump_record(register_request(desk.exchange.profile).session)


def test_consent_that_nobody_would_see_is_not_published() -> None:
    with pytest.raises(Unsupported):
        flows.publish_presence(joined().exchange, {"application_guard": "v2"})
    with pytest.raises(InvalidProfile):
        register_request(Profile(cwd="/", model="m", application_guard="v1"))
    with pytest.raises(InvalidProfile):
        presence_request({"application_guard": ""})
