"""Remembered sends: every short history against a plain model, what counts as the same message, and the answers.

Conversations at the end show each state a repeated send can meet: in flight, held, staged, dead, another recipient.
"""

from __future__ import annotations

import itertools

import pytest

from intercomd.core.dedupe import Dedupe, MessageKey, Remembered, content_hash, message_key
from intercomd.core.limits import Limits
from tests.support.conversation import Conversation
from tests.support.sayings import ask, message, replace, send

NOW = 1_000.0
KEYS: tuple[MessageKey, ...] = (("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"))


def remembered() -> Remembered:
    return Remembered(7, 1, "epoch", 1)


class Model:
    """A list of (key, when it expires), oldest first."""

    def __init__(self) -> None:
        self.known: list[tuple[MessageKey, float]] = []

    def remember(self, key: MessageKey, now: float) -> None:
        self.forget(key)
        self.known = [entry for entry in self.known if entry[1] > now]
        self.known.append((key, now + 10.0))
        own = [entry for entry in self.known if entry[0][0] == key[0]]
        if len(own) > 2:
            self.known.remove(own[0])
        self.known = self.known[-3:]

    def forget(self, key: MessageKey) -> None:
        self.known = [entry for entry in self.known if entry[0] != key]

    def has(self, key: MessageKey, now: float) -> bool:
        return any(entry[0] == key and entry[1] > now for entry in self.known)


def test_every_short_history_follows_the_model() -> None:
    steps = [("remember", key) for key in KEYS] + [("forget", KEYS[0]), ("wait", KEYS[0])]
    for history in itertools.product(steps, repeat=5):
        dedupe, model, now = Dedupe(Limits(dedupe_s=10.0, dedupe_per_sender=2, dedupe_total=3)), Model(), NOW
        for step, key in history:
            if step == "remember":
                dedupe.remember(key, remembered(), now)
                model.remember(key, now)
            elif step == "forget":
                dedupe.forget(key)
                model.forget(key)
            else:
                now += 5.0
        assert len(dedupe) <= 3
        assert [dedupe.find(key, now) is not None for key in KEYS] == [model.has(key, now) for key in KEYS], history


def test_memory_ends_exactly_when_it_is_over() -> None:
    dedupe = Dedupe(Limits(dedupe_s=10.0))
    dedupe.remember(KEYS[0], remembered(), NOW)
    assert dedupe.find(KEYS[0], NOW + 9.999) is not None
    assert dedupe.find(KEYS[0], NOW + 10.0) is None
    assert len(dedupe) == 0


def test_what_expired_leaves_without_being_asked_for() -> None:
    dedupe = Dedupe(Limits(dedupe_s=10.0))
    for number in range(100):
        dedupe.remember(("a", str(number)), remembered(), NOW)
    for number in range(50):
        dedupe.remember(("b", str(number)), remembered(), NOW + 10.0)
    assert len(dedupe) == 50


@pytest.mark.parametrize("limits", [{"dedupe_total": 0}, {"dedupe_per_sender": 0}, {"dedupe_s": 0.0}])
def test_a_broker_may_be_told_to_remember_nothing(limits: dict[str, int]) -> None:
    dedupe = Dedupe(Limits(**limits))
    for key in KEYS:
        dedupe.remember(key, remembered(), NOW)
        assert dedupe.find(key, NOW) is None
    assert len(dedupe) == 0


def test_long_message_ids_are_kept_as_hashes() -> None:
    short, long = message_key("a", "m" * 64), message_key("a", "m" * 65)
    assert short == ("a", "m" * 64)
    assert isinstance(long[1], bytes)
    assert len(long[1]) == 16
    assert long != message_key("a", "m" * 66)
    assert message_key("a", "\ud800" * 65) != message_key("a", "\ud801" * 65)


BASE = b'{"id":"m1","timestamp":1,"content":{"text":"x"}}'


@pytest.mark.parametrize(
    "other",
    [
        b'{"id":"m1","timestamp":1700000000000.25,"content":{"text":"x"}}',
        b'{"id":"m1","timestamp" : -1e+5,"content":{"text":"x"}}',
    ],
)
def test_a_repeated_message_may_have_another_timestamp(other: bytes) -> None:
    assert content_hash("b", other) == content_hash("b", BASE)


def test_a_repeated_message_may_have_another_sender_sequence() -> None:
    one, other = (BASE[:-1] + b',"senderSequence":%d}' % number for number in (1, 22))
    assert content_hash("b", one) == content_hash("b", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BASE, BASE.replace(b'"x"', b'"y"')),
        (BASE, BASE.replace(b'"x"', b'"x "')),
        # Text that looks like the member is text: its quotes are escaped.
        (BASE.replace(b'"x"', rb'"\"timestamp\":1"'), BASE.replace(b'"x"', rb'"\"timestamp\":2"')),
        (BASE.replace(b'"x"', rb'"timestamp\":1"'), BASE.replace(b'"x"', rb'"timestamp\":2"')),
    ],
)
def test_other_content_is_other_content(one: bytes, other: bytes) -> None:
    assert content_hash("b", one) != content_hash("b", other)


def test_another_recipient_is_other_content() -> None:
    assert content_hash("b", BASE) != content_hash("c", BASE)
    assert content_hash("\ud800", BASE) != content_hash("\ud801", BASE)


# -- a send that comes again ---------------------------------------------------------------------------------


def pair(**limits: float) -> Conversation:
    return Conversation(**limits).joins("a", "alice", ext=1).joins("b", "bob", status="idle")


DELIVERED = {"type": "delivered", "messageId": "m1"}
QUEUED = {"type": "delivery_queued", "messageId": "m1", "reason": "<string>"}
REUSED = {"type": "delivery_failed", "messageId": "m1", "code": "message_id_reuse", "retryable": False, "...": True}
ARRIVED = {"type": "message", "from": "<any>", "message": {"id": "m1", "...": True}}


def test_a_delivered_message_is_answered_again_and_not_delivered_again() -> None:
    talk = pair().says("a", send("bob", "m1")).expects("a", DELIVERED).expects("b", ARRIVED)
    talk.says("a", send("bob", "m1", timestamp=5)).expects("a", DELIVERED).expects_nothing("b")


def test_a_message_in_flight_is_answered_twice_and_delivered_once() -> None:
    talk = pair().says("a", send("bob", "m1"), send("bob", "m1")).expects("a", DELIVERED, DELIVERED)
    talk.expects("b", ARRIVED)


def test_a_held_message_is_answered_queued_again() -> None:
    talk = pair().holds("b").says("a", send("bob", "m1")).expects("a", QUEUED)
    talk.says("a", send("bob", "m1")).expects("a", QUEUED)
    talk.reads("b").expects("b", ARRIVED).expects_nothing("a")


def test_a_staged_message_is_answered_queued_again() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).expects("a", QUEUED)
    talk.says("a", replace("bob", "m1", "t")).expects("a", QUEUED)
    talk.after(1.5).expects("b", ARRIVED)
    talk.says("a", replace("bob", "m1", "t")).expects("a", QUEUED)
    talk.after(5).expects_nothing("b")


def test_a_replaced_message_that_comes_again_does_not_undo_its_replacement() -> None:
    talk = pair()
    talk.says("a", replace("bob", "m1", "t"), replace("bob", "m2", "t"), replace("bob", "m1", "t")).receives("a")
    talk.after(1.5).expects("b", {"type": "message", "from": "<any>", "message": {"id": "m2", "...": True}})


def test_other_content_under_a_known_id_is_refused() -> None:
    talk = pair().says("a", send("bob", "m1")).expects("a", DELIVERED).expects("b", ARRIVED)
    talk.says("a", send("bob", "m1", "another")).expects("a", REUSED).expects_nothing("b")
    talk.joins("c", "carol").says("a", send("carol", "m1")).expects("a", REUSED).expects_nothing("c")


def test_ids_of_different_senders_have_nothing_to_do_with_each_other() -> None:
    talk = pair().joins("c", "carol").says("a", send("bob", "m1")).expects("a", DELIVERED)
    talk.says("c", send("bob", "m1", "another")).expects("c", DELIVERED)


def test_a_refused_send_may_be_tried_again() -> None:
    talk = pair().says("a", send("nobody", "m1"))
    talk.expects("a", {"type": "delivery_failed", "messageId": "m1", "code": "not_found", "...": True})
    talk.says("a", send("bob", "m1")).expects("a", DELIVERED)


def test_the_same_message_by_another_target_text_is_the_same() -> None:
    talk = pair().says("a", send("bob", "m1")).expects("a", DELIVERED)
    talk.says("a", send("session-b", "m1")).expects("a", DELIVERED)
    assert len(talk.receives("b")) == 1


def test_a_sender_that_came_back_is_remembered() -> None:
    talk = pair().says("a", send("bob", "m1")).expects("a", DELIVERED).hangs_up("a")
    talk.joins("a2", "alice", id="session-a").says("a2", send("bob", "m1")).expects("a2", DELIVERED)
    assert [frame["type"] for frame in talk.receives("b")] == ["message", "session_left"]


@pytest.mark.parametrize("how", ["hangs up", "unregisters"])
def test_a_message_is_forgotten_when_its_recipient_left(how: str) -> None:
    talk = pair().says("a", send("bob", "m1")).expects("a", DELIVERED)
    if how == "hangs up":
        talk.hangs_up("b").joins("b2", "bob", id="session-b")
    else:
        talk.says("b", {"type": "unregister"}).receives("b")
        talk.joins("b", "bob")
    talk.receives("a")
    again = "b2" if how == "hangs up" else "b"
    talk.says("a", send("bob", "m1")).expects("a", DELIVERED).expects(again, ARRIVED)


def test_a_recipient_that_left_in_the_middle_of_the_turn_does_not_mix_up_the_answers() -> None:
    """Both sends are answered once each, whatever became of the first."""
    talk = pair()
    talk.holds("b").says("a", send("bob", "m1")).expects("a", QUEUED)
    talk.says("b", {"type": "unregister"}).joins("b2", "bob")
    talk.receives("a")
    talk.says("a", send("bob", "m1")).expects("a", DELIVERED)
    talk.hangs_up("b").expects("a", {"type": "dead_letter", "reason": "recipient_left", "...": True})


def test_after_an_hour_it_is_another_message() -> None:
    talk = pair().says("a", send("bob", "m1")).expects("a", DELIVERED).expects("b", ARRIVED)
    talk.after(3_600).says("a", send("bob", "m1")).expects("a", DELIVERED).expects("b", ARRIVED)


def test_an_ask_that_is_still_open_keeps_its_id_when_the_memory_is_over() -> None:
    talk = pair(dedupe_s=10.0).says("a", ask("bob", "m1")).expects("a", DELIVERED)
    talk.after(20).says("a", ask("bob", "m1")).expects("a", REUSED)


# What died is no longer queued: answering so again would be untrue, and the message would be lost for good.


def test_a_staged_message_that_was_discarded_may_be_sent_again() -> None:
    talk = pair(recipient_messages=1)
    talk.says("a", replace("bob", "m1", "t")).expects("a", QUEUED)
    talk.holds("b").says("a", send("bob", "m0")).receives("a")
    talk.after(1.5).expects("a", {"type": "dead_letter", "messageId": "m1", "reason": "discarded", "...": True})
    talk.reads("b").receives("b")
    talk.says("a", replace("bob", "m1", "t")).expects("a", QUEUED)
    talk.after(1.5).expects("b", ARRIVED)


def test_a_staged_message_that_was_taken_back_may_be_sent_again() -> None:
    talk = pair().says("a", replace("bob", "m1", "t")).expects("a", QUEUED)
    talk.says("a", {"type": "cancel_message", "messageId": "m1"}).expects("a", DELIVERED)
    talk.says("a", replace("bob", "m1", "t")).expects("a", QUEUED)
    talk.after(1.5).expects("b", ARRIVED)


def test_a_staged_ask_of_a_sender_that_left_may_be_asked_again() -> None:
    talk = pair().says("a", ask("bob", "m1", delivery="queue", queueMode="replace", threadId="t")).expects("a", QUEUED)
    talk.hangs_up("a").joins("a2", "alice", id="session-a")
    talk.after(2).expects("b", {"type": "session_left", "sessionId": "session-a"})
    talk.says("a2", ask("bob", "m1", delivery="queue", queueMode="replace", threadId="t")).expects("a2", QUEUED)
    talk.after(1.5).expects("b", ARRIVED)


def test_bytes_that_differ_only_in_what_the_wire_ignores_are_other_content() -> None:
    """Unknown members are forwarded, so they are part of the message."""
    talk = pair().says("a", send("bob", "m1")).expects("a", DELIVERED)
    told = {"type": "send", "to": "bob", "message": {**message("m1"), "extra": 1}}
    talk.says("a", told).expects("a", REUSED)


def test_a_sender_over_its_own_bound_costs_nobody_else_its_memory() -> None:
    dedupe = Dedupe(Limits(dedupe_per_sender=4, dedupe_total=10))
    dedupe.remember(("quiet", "1"), remembered(), NOW)
    for number in range(1_000):
        dedupe.remember(("loud", str(number)), remembered(), NOW)
    assert dedupe.find(("quiet", "1"), NOW) is not None
    assert len(dedupe) == 5


def test_what_is_forgotten_again_and_again_costs_no_memory() -> None:
    dedupe = Dedupe(Limits())
    dedupe.remember(("a", "kept"), remembered(), NOW)
    for number in range(5_000):
        dedupe.remember(("a", str(number)), remembered(), NOW)
        dedupe.forget(("a", str(number)))
        dedupe.remember(("b", "same"), remembered(), NOW)
    assert len(dedupe._line) < 200
    assert all(len(memory.line) < 200 for memory in dedupe._memories.values())
    assert dedupe.find(("a", "kept"), NOW) is not None
