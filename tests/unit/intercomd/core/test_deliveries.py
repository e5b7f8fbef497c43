"""Between Deliver and its end: every order of what the kernel did, and the one answer that follows from it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from intercomd.core import effects, events
from intercomd.core.deliveries import acknowledgement
from libintercom.wire.answers import Delivered, DeliveryQueued
from tests.support.conversation import Conversation
from tests.support.rig import make_router
from tests.support.sayings import ask, presence, register, register_sibling, send

LEFT = {"type": "session_left", "sessionId": "session-b"}
HELD = "Queued until the recipient's connection takes it"


def delivered(message_id: str) -> dict[str, Any]:
    return {"type": "delivered", "messageId": message_id}


def queued(message_id: str) -> dict[str, Any]:
    return {"type": "delivery_queued", "messageId": message_id, "reason": HELD}


def failed(message_id: str, code: str) -> dict[str, Any]:
    return {"type": "delivery_failed", "messageId": message_id, "code": code, "...": True}


def arrived(message_id: str) -> dict[str, Any]:
    return {"type": "message", "from": {"id": "session-a", "...": True}, "message": {"id": message_id, "...": True}}


def pair() -> Conversation:
    return Conversation().joins("a", "alice", ext=1).joins("b", "bob")


def test_delivered_is_said_after_the_kernel_took_all_of_it() -> None:
    talk = pair().says("a", send("bob", "m1")).expects("b", arrived("m1")).expects("a", delivered("m1"))
    assert len(talk.router.deliveries) == 0


def test_nothing_is_said_before_anything_was_observed() -> None:
    """The core alone: an acknowledgement is only ever the answer to an observation."""
    talk = pair()
    asked: list[effects.Effect] = []
    talk.carry_out = asked.append  # type: ignore[method-assign, assignment]
    talk.says("a", send("bob", "m1"))
    (deliver,) = asked
    assert isinstance(deliver, effects.Deliver)
    told = talk.router.handle(events.DeliveriesTaken((deliver.token,)), talk.now)
    assert told == [effects.Acknowledge(1, ["m1"])]
    assert talk.router.handle(events.DeliveriesTaken((deliver.token,)), talk.now) == []


@pytest.mark.parametrize("room_bytes", [0, 1, 3, 4, 100, 400])
def test_a_frame_that_went_out_in_part_is_queued(room_bytes: int) -> None:
    talk = pair().holds("b", room_bytes).says("a", send("bob", "m1", "x" * 1_000)).expects("a", queued("m1"))
    assert talk.router.state.counters.held["buffered"] == 1
    talk.reads("b").expects("b", arrived("m1")).expects_nothing("a")
    assert talk.router.state.counters.counts["delivered"] == 1


def test_a_frame_whose_last_byte_is_missing_is_not_delivered() -> None:
    talk = pair().says("a", send("bob", "m1"))
    size_bytes = 4 + len(talk.receives_bytes("b")[0])
    talk.receives("a")
    talk.says("a", presence(status="x")).holds("b", size_bytes + 12 - 1).says("a", send("bob", "m2"))
    (answer,) = talk.receives("a")
    assert answer["type"] in {"delivered", "delivery_queued"}
    assert (answer["type"] == "delivered") == bool(talk.receives("b"))


def test_messages_of_one_sender_stay_in_order_whatever_is_held() -> None:
    talk = pair().holds("b", 500).says("a", *[send("bob", f"m{at}", "x" * 200) for at in range(5)])
    assert [answer["messageId"] for answer in talk.receives("a")] == [f"m{at}" for at in range(5)]
    talk.says("a", send("bob", "m5")).reads("b")
    assert [frame["message"]["id"] for frame in talk.receives("b")] == [f"m{at}" for at in range(6)]


def test_a_recipient_that_is_reset_before_anything_went_out_got_nothing() -> None:
    talk = pair().resets("b").says("a", send("bob", "m1"), send("bob", "m2"))
    talk.expects("a", failed("m1", "recipient_left"), failed("m2", "recipient_left"), LEFT)
    assert talk.router.state.counters.counts["accepted"] == 0
    assert talk.router.state.counters.refused == {"recipient_left": 2}


def test_what_was_accepted_and_is_lost_is_a_dead_letter() -> None:
    talk = pair().holds("b").says("a", send("bob", "m1")).expects("a", queued("m1")).hangs_up("b")
    talk.expects("a", LEFT, {"type": "dead_letter", "messageId": "m1", "reason": "recipient_left", "...": True})


def test_a_taken_message_is_not_lost_when_its_recipient_leaves() -> None:
    talk = pair().says("a", send("bob", "m1")).expects("a", delivered("m1")).hangs_up("b").expects("a", LEFT)
    assert talk.router.state.counters.counts["delivered"] == 1


def test_a_sender_that_left_is_not_answered_and_its_message_is_delivered_all_the_same() -> None:
    talk = pair().holds("b").says("a", send("bob", "m1")).hangs_up("a").reads("b")
    talk.expects("b", arrived("m1"), {"type": "session_left", "sessionId": "session-a"})
    assert talk.router.state.counters.is_balanced


def test_whoever_unregisters_in_the_same_breath_still_gets_its_answer() -> None:
    talk = pair().says("a", send("bob", "m1"), {"type": "unregister"})
    talk.expects("a", delivered("m1"))
    talk.expects("b", arrived("m1"), {"type": "session_left", "sessionId": "session-a"})


def test_whoever_registers_on_the_senders_socket_does_not_get_its_answers() -> None:
    talk = pair().says("a", send("bob", "m1"), {"type": "unregister"}, register("ann"))
    talk.expects("a", {"type": "registered", "...": True})


def test_whoever_unregistered_still_gets_what_was_on_its_way() -> None:
    """Its frames were written before; the kernel's word on them is the truth."""
    talk = (
        pair()
        .holds("b")
        .says("a", send("bob", "m1"))
        .says("b", {"type": "unregister"})
        .expects("a", queued("m1"), LEFT)
    )
    talk.reads("b").expects("b", arrived("m1"))
    assert talk.router.state.counters.counts["delivered"] == 1


STEPS = ("taken", "held", "closed")


def test_every_order_of_observations_ends_each_message_once() -> None:
    """Whatever is reported for two deliveries, repeated or contradictory: one end each, and the equation holds."""
    for order in itertools.product(itertools.product(STEPS, (1, 2)), repeat=3):
        talk = pair()
        talk.listener.flush = list  # type: ignore[method-assign]
        talk.says("a", send("bob", "m1"), ask("bob", "m2"))
        tokens = list(talk.router.deliveries._open)
        told: list[Any] = []
        for step, at in order:
            told += talk.router.handle(_observed(step, tokens[at - 1]), talk.now)
            assert talk.router.state.counters.is_balanced, order
        answers = [effect.frame.message_id for effect in told if _is_answer(effect)]
        assert len(answers) == len(set(answers)), order
        ended = len(talk.router.deliveries) == 0
        assert not any(step == "closed" for step, _at in order) or ended
        assert not ended or talk.router.state.quotas.held_bytes == 0


def _observed(step: str, token: int) -> events.Event:
    if step == "closed":
        return events.ConnectionClosed(2, "gone")
    return events.DeliveriesTaken((token,)) if step == "taken" else events.DeliveriesHeld((token,))


def _is_answer(effect: effects.Effect) -> bool:
    return isinstance(effect, effects.Write) and effect.frame.type.startswith("deliver") and effect.conn == 1


def test_an_unknown_token_is_nothing() -> None:
    router = make_router()
    assert router.handle(events.DeliveriesTaken((7, 8)), 5_000.0) == []
    assert router.handle(events.DeliveriesHeld((7, 8)), 5_000.0) == []


def test_quotas_follow_every_delivery() -> None:
    talk = pair().holds("b").says("a", send("bob", "m1"), send("bob", "m2"))
    connection = talk.router.state.roster.connections[2]
    assert connection.held_messages == 2
    assert connection.held_bytes == talk.router.state.quotas.held_bytes > 0
    talk.reads("b")
    assert (connection.held_messages, connection.held_bytes, talk.router.state.quotas.held_bytes) == (0, 0, 0)


def test_every_dialect_has_its_words() -> None:
    talk = pair().says("s", register_sibling("sib", id="sib"))
    sibling, native = (talk.router.state.roster.sessions[peer_id] for peer_id in ("sib", "session-a"))
    known = {"retryable": False, "outcome_known": True}
    assert acknowledgement(native, "m", "delivered") == Delivered(message_id="m")
    assert acknowledgement(native, "m", "held") == DeliveryQueued(message_id="m", reason=HELD)
    assert acknowledgement(native, "m", "staged").type == "delivery_queued"
    assert acknowledgement(sibling, "m", "delivered") == Delivered(message_id="m", delivery="socket_delivered", **known)
    for answer in ("held", "staged"):
        assert acknowledgement(sibling, "m", answer) == Delivered(message_id="m", delivery="queued", **known)
