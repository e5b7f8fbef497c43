"""An ask and its ends: every short conversation without a socket, and each end by name."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from libintercom import asking
from libintercom.asking import Question
from libintercom.inbound import Inbound, PeerLeft
from libintercom.sending import Timeouts
from tests.support.desk import ME, Desk, Object, Running, incoming, row

if TYPE_CHECKING:
    from libintercom.outcomes import Answered, Outcome

PEER = row("pi-peer0001", "peer", acceptsAsks=True)
BUSY = row("pi-busy0001", "busy", acceptsAsks=False)
TWIN = row("pi-other001", "other")
ASK_ID = "ask-1"
REPLY = incoming(PEER, "r1", "yes", replyTo=ASK_ID)
ACK = {"type": "delivered", "messageId": ASK_ID}
HELD = {"type": "delivery_queued", "messageId": ASK_ID, "reason": "held"}
REFUSED = {"type": "delivery_failed", "messageId": ASK_ID, "reason": "no", "code": "ask_cycle"}
LEFT = {"type": "session_left", "sessionId": "pi-peer0001"}


class Asking:
    """An ask that stands where its acknowledgement is awaited."""

    def __init__(self, to: str = "peer", *, ext: bool = True, rows: bool = True, **options: object) -> None:
        self.desk = Desk().join(ext=ext)
        self.heard: list[Outcome] = []
        timeout_s = options.pop("timeout_s", 120.0)
        given = {"message_id": ASK_ID, **options}
        question = Question(to, "well?", timeout_s, given, self.heard.append)  # type: ignore[arg-type]
        self.running: Running[Answered] = self.desk.run(asking.ask(self.desk.exchange, question, Timeouts()))
        [listing] = self.desk.said()
        sessions = [row(ME, "me"), PEER, BUSY, TWIN] if rows else []
        self.desk.hear({"type": "sessions", "requestId": listing["requestId"], "sessions": sessions})
        self.running.go_on()
        self.posted = self.desk.said()

    def answered(self) -> tuple[str, str, str | None]:
        """(outcome, ended by, text of the reply) once it ended."""
        result = self.running.result
        assert result is not None
        reply = result.reply.message.content.text if result.reply is not None else None
        return result.outcome.outcome, result.ended_by, reply

    def retired(self) -> bool:
        """Whether the question was taken back."""
        said = self.desk.said()
        assert said in ([], [{"type": "cancel_ask", "messageId": ASK_ID}])
        return bool(said)


def test_ask_goes_to_the_resolved_id_with_its_time_and_no_delivery() -> None:
    [said] = Asking(" PEER ").posted
    assert said["to"] == "pi-peer0001"
    assert (said["message"]["expectsReply"], said["message"]["timeoutMs"]) == (True, 120_000)
    assert "delivery" not in said["message"]


def test_old_broker_is_not_told_a_time() -> None:
    [said] = Asking(ext=False).posted
    assert "timeoutMs" not in said["message"]


def test_reply_ends_the_wait() -> None:
    asked = Asking()
    asked.desk.hear(ACK)
    asked.running.go_on()
    assert [outcome.outcome for outcome in asked.heard] == ["delivered"]
    asked.desk.hear(REPLY)
    asked.running.go_on()
    assert asked.answered() == ("delivered", "", "yes")
    assert not asked.retired()
    # The reply is the ask's result, not an event as well.
    assert asked.desk.events() == []


def test_reply_that_overtakes_the_acknowledgement_proves_delivery() -> None:
    asked = Asking()
    asked.desk.hear(REPLY)
    asked.running.go_on()
    assert asked.answered() == ("delivered", "", "yes")
    asked.desk.hear(ACK)
    assert asked.desk.events() == []


@pytest.mark.parametrize(
    ("sender", "reply_to", "is_reply"),
    [
        (PEER, ASK_ID, True),
        (row("pi-newid001", "Peer "), ASK_ID, True),
        (row("pi-other001", "other"), ASK_ID, False),
        (PEER, "another", False),
        (PEER, None, False),
    ],
)
def test_reply_is_what_names_the_question_and_comes_from_whom_it_went_to(
    sender: Object, reply_to: str | None, is_reply: bool
) -> None:
    asked = Asking()
    members = {} if reply_to is None else {"replyTo": reply_to}
    asked.desk.hear(ACK, incoming(sender, "r1", "yes", **members))
    asked.running.go_on()
    assert asked.running.is_done is is_reply
    assert [type(event) for event in asked.desk.events()] == ([] if is_reply else [Inbound])


@pytest.mark.parametrize(
    ("to", "sender", "is_reply"),
    [
        ("peer", PEER, True),
        ("pi-peer0001", PEER, True),
        ("PI-PEER0", PEER, True),
        ("pi-pee", PEER, False),
        ("nobody", PEER, False),
    ],
)
def test_target_that_could_not_be_looked_up_still_has_its_reply(to: str, sender: Object, is_reply: bool) -> None:
    asked = Asking(to, rows=False)
    assert asked.posted[0]["to"] == to
    asked.desk.hear(ACK, incoming(sender, "r1", "yes", replyTo=ASK_ID))
    asked.running.go_on()
    assert asked.running.is_done is is_reply


@pytest.mark.parametrize("acknowledged", [ACK, HELD])
def test_timeout_keeps_what_the_broker_said_and_retires_the_question(acknowledged: Object) -> None:
    asked = Asking()
    asked.desk.hear(acknowledged)
    asked.running.resume(1.5)
    assert asked.running.timeout_s == 118.5
    asked.running.resume(118.5)
    assert asked.answered()[1:] == ("timeout", None)
    assert asked.running.result is not None
    outcome = asked.running.result.outcome
    assert (outcome.accepted, outcome.delivered, outcome.delivery_unknown) == (True, acknowledged is ACK, False)
    assert asked.retired()


def test_old_broker_is_not_asked_to_retire_anything() -> None:
    asked = Asking(ext=False)
    asked.desk.hear(ACK)
    asked.running.go_on()
    asked.running.resume(120.0)
    assert asked.answered() == ("delivered", "timeout", None)
    assert not asked.retired()


def test_missing_acknowledgement_is_unknown_and_retires_the_question() -> None:
    asked = Asking()
    assert asked.running.timeout_s == 8
    asked.running.resume(8.0)
    assert asked.answered() == ("unknown", "timeout", None)
    assert asked.retired()


def test_refusal_ends_it_and_retires_nothing() -> None:
    asked = Asking()
    asked.desk.hear(REFUSED)
    asked.running.go_on()
    assert asked.answered() == ("refused", "", None)
    assert not asked.retired()


@pytest.mark.parametrize("acknowledged", [ACK, HELD])
def test_recipient_that_leaves_ends_the_wait_at_once(acknowledged: Object) -> None:
    asked = Asking()
    asked.desk.hear(acknowledged, LEFT)
    asked.running.go_on()
    assert asked.answered()[1] == "peer_left"
    assert asked.running.result is not None
    assert asked.running.result.outcome.is_accepted
    assert not asked.retired()
    assert asked.desk.events() == [PeerLeft(session_id="pi-peer0001")]


def test_other_sessions_may_leave() -> None:
    asked = Asking()
    asked.desk.hear(ACK, {"type": "session_left", "sessionId": "pi-other001"})
    asked.running.go_on()
    assert not asked.running.is_done


@pytest.mark.parametrize(
    ("acknowledged", "outcome"), [([], "unknown"), ([ACK], "delivered"), ([HELD], "queued"), ([REFUSED], "refused")]
)
def test_lost_connection_keeps_what_the_broker_said(acknowledged: list[Object], outcome: str) -> None:
    asked = Asking()
    asked.desk.hear(*acknowledged)
    asked.desk.exchange.end("reset", is_lost=True)
    asked.running.go_on()
    assert asked.answered() == (outcome, "" if outcome == "refused" else "disconnected", None)


@pytest.mark.parametrize(("delivery", "ended_by"), [(None, "peer_busy"), ("steer", None), ("queue", None)])
def test_default_ask_of_a_busy_peer_is_sent_and_not_waited_for(delivery: str | None, ended_by: str | None) -> None:
    asked = Asking("busy", delivery=delivery)
    assert len(asked.posted) == 1
    asked.desk.hear(ACK)
    asked.running.go_on()
    if ended_by is None:
        assert not asked.running.is_done
    else:
        assert asked.answered() == ("delivered", ended_by, None)
        assert not asked.retired()


def test_reply_of_a_busy_peer_comes_as_a_message() -> None:
    asked = Asking("busy")
    asked.desk.hear(ACK)
    asked.running.go_on()
    asked.desk.hear(incoming(BUSY, "r1", "later", replyTo=ASK_ID))
    [event] = asked.desk.events()
    assert isinstance(event, Inbound)


def test_refused_ask_of_a_busy_peer_is_refused_not_busy() -> None:
    asked = Asking("busy")
    asked.desk.hear(REFUSED)
    asked.running.go_on()
    assert asked.answered() == ("refused", "", None)


def test_reply_that_comes_after_the_wait_is_over_is_not_lost() -> None:
    asked = Asking()
    asked.desk.hear(LEFT, REPLY)
    assert [type(event) for event in asked.desk.events()] == [PeerLeft, Inbound]


# ------------------------------------------------------------------ cancelling


@pytest.mark.parametrize(("acknowledged", "outcome"), [([], "unknown"), ([ACK], "delivered"), ([HELD], "queued")])
def test_cancelled_wait_tells_what_is_known_and_retires_the_question(acknowledged: list[Object], outcome: str) -> None:
    asked = Asking()
    asked.desk.hear(*acknowledged)
    asked.running.go_on()
    asking.cancel_ask(asked.desk.exchange, ASK_ID)
    asked.running.go_on()
    assert asked.answered() == (outcome, "cancelled", None)
    assert asked.retired()


def test_ask_cancelled_before_it_left_was_not_sent() -> None:
    desk = Desk().join()
    question = Question("peer", "well?", 120.0, {"message_id": ASK_ID})
    running = desk.run(asking.ask(desk.exchange, question, Timeouts()))
    [listing] = desk.said()
    asking.cancel_ask(desk.exchange, ASK_ID)
    desk.hear({"type": "sessions", "requestId": listing["requestId"], "sessions": [PEER]})
    answered = running.go_on()
    assert answered is not None
    assert (answered.outcome.outcome, answered.ended_by) == ("not_sent", "cancelled")
    assert desk.said() == []


@pytest.mark.parametrize("acknowledged", [[], [ACK]])
def test_interrupted_wait_retires_the_question(acknowledged: list[Object]) -> None:
    asked = Asking()
    asked.desk.hear(*acknowledged)
    asked.running.go_on()
    asked.running.close()
    assert asked.retired()
    assert asked.desk.exchange.waiter is None
    assert asked.desk.exchange._calls == {}


def test_interrupted_wait_of_an_ended_connection_says_nothing() -> None:
    asked = Asking()
    asked.desk.exchange.end("gone")
    asked.running.close()
    assert not asked.retired()


def test_another_ask_of_this_session_is_retired_at_the_broker() -> None:
    desk = Desk().join()
    asking.cancel_ask(desk.exchange, "other")
    assert desk.said() == [{"type": "cancel_ask", "messageId": "other"}]
    old = Desk().join(ext=False)
    asking.cancel_ask(old.exchange, "other")
    assert old.said() == []


# ------------------------------------------------------------------ one at a time, and misuse


def test_second_ask_is_not_sent() -> None:
    asked = Asking()
    second = asked.desk.run(asking.ask(asked.desk.exchange, Question("other", "and?", 5, {}), Timeouts()))
    assert second.result is not None
    assert (second.result.outcome.outcome, second.result.outcome.code) == ("not_sent", "already_waiting")
    assert asked.desk.said() == []
    asked.desk.hear(ACK, REPLY)
    asked.running.go_on()
    assert asked.answered() == ("delivered", "", "yes")
    assert Asking().posted


@pytest.mark.parametrize("timeout_s", [-1.0, 3601.0, float("nan"), float("inf")])
def test_time_beyond_its_bounds_is_not_sent(timeout_s: float) -> None:
    desk = Desk().join()
    running = desk.run(asking.ask(desk.exchange, Question("peer", "?", timeout_s, {}), Timeouts()))
    assert running.result is not None
    assert running.result.outcome.code == "invalid_message"
    assert desk.said() == []
    assert desk.exchange.waiter is None


def test_ask_of_nobody_is_not_sent() -> None:
    desk = Desk()
    running = desk.run(asking.ask(desk.exchange, Question("peer", "?", 5, {}), Timeouts()))
    assert running.result is not None
    assert (running.result.outcome.outcome, running.result.outcome.code) == ("not_sent", "not_connected")


def test_ask_of_oneself_through_an_old_broker_is_not_sent() -> None:
    asked = Asking("me", ext=False)
    assert asked.posted == []
    assert asked.answered() == ("not_sent", "", None)


# ------------------------------------------------------------------ exhaustive

STEPS = {
    "ack": ACK,
    "held": HELD,
    "refused": REFUSED,
    "reply": REPLY,
    "left": LEFT,
    "noise": incoming(PEER, "m1"),
    "lost": None,
    "expire": None,
    "cancel": None,
}


def play(names: tuple[str, ...]) -> Asking:
    asked = Asking()
    for name in names:
        if asked.running.is_done:
            break
        if name == "lost":
            asked.desk.exchange.end("reset", is_lost=True)
        elif name == "cancel":
            asking.cancel_ask(asked.desk.exchange, ASK_ID)
        elif name == "expire":
            asked.running.resume(asked.running.timeout_s)
        else:
            asked.desk.hear(STEPS[name])  # type: ignore[arg-type]
        asked.running.go_on()
    return asked


def expected(names: tuple[str, ...]) -> tuple[str, str, str | None] | None:
    """The same rules once more, in the plainest form: what the ask must end with, None while it waits."""
    outcome, is_gone = "", False
    for name in names:
        if name == "reply" and not is_gone:
            return (outcome or "delivered", "", "yes")
        if name in ("ack", "held") and not outcome:
            outcome = {"ack": "delivered", "held": "queued"}[name]
            if is_gone:
                return (outcome, "peer_left", None)
        elif name == "refused" and not outcome:
            return ("refused", "", None)
        elif name == "left":
            is_gone = True
            if outcome:
                return (outcome, "peer_left", None)
        elif name in ("lost", "expire", "cancel"):
            ended = {"lost": "disconnected", "expire": "timeout", "cancel": "cancelled"}[name]
            return (outcome or "unknown", "peer_left" if is_gone else ended, None)
    return None


def test_every_short_conversation_ends_as_the_rules_say() -> None:
    """Every sequence of up to four steps: one end, true words, and a question taken back exactly when it stands."""
    count, ends = 0, set()
    for length in range(1, 5):
        for names in itertools.product(STEPS, repeat=length):
            asked, wanted = play(names), expected(names)
            count += 1
            assert asked.running.is_done == (wanted is not None), names
            if wanted is None:
                continue
            assert asked.answered() == wanted, names
            ends.add(wanted)
            assert asked.retired() == (wanted[1] in ("timeout", "cancelled")), names
            assert asked.desk.exchange.waiter is None
            assert asked.desk.exchange._calls == {}
    assert count == sum(len(STEPS) ** length for length in range(1, 5))
    assert len(ends) >= 14
