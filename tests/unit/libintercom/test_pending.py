"""Questions that wait for our reply: every short sequence against a plain list, and each rule by name."""

from __future__ import annotations

import itertools

import pytest

from libintercom.errors import NoPendingAsk
from libintercom.inbound import Inbound
from libintercom.pending import MAX_NAMED, MAX_PENDING, MAX_SETTLED, PendingAsks
from libintercom.wire.answers import parse_answer
from tests.support.desk import NOW_MS, Object, incoming, row

ALICE, BOB = row("pi-alice001", "Alice"), row("pi-bob00001", "bob")
TWIN = row("pi-alice002", "alice")


def message(sender: Object, message_id: str, *, is_ask: bool = True) -> Inbound:
    heard = incoming(sender, message_id, **({"expectsReply": True} if is_ask else {}))
    answer = parse_answer(heard)
    return Inbound(row=answer.from_, message=answer.message, raw={})  # type: ignore[attr-defined]


def pending(*asks: tuple[Object, str]) -> PendingAsks:
    tracker = PendingAsks()
    for sender, message_id in asks:
        tracker.admit(message(sender, message_id), NOW_MS)
    return tracker


def ids(tracker: PendingAsks) -> list[str]:
    return [ask.message_id for ask in tracker]


def test_only_asks_are_tracked() -> None:
    tracker = PendingAsks()
    tracker.admit(message(ALICE, "m1", is_ask=False), NOW_MS)
    assert len(tracker) == 0


def test_oldest_of_more_than_the_limit_is_evicted() -> None:
    tracker = pending(*((ALICE, f"q{number}") for number in range(MAX_PENDING)))
    evicted = tracker.admit(message(BOB, "last"), NOW_MS)
    assert evicted is not None
    assert evicted.message_id == "q0"
    assert len(tracker) == MAX_PENDING
    assert "last" in tracker
    # It is not revived by a repeated message.
    assert tracker.admit(message(ALICE, "q0"), NOW_MS) is None
    assert "q0" not in tracker


def test_memory_of_settled_questions_is_bounded() -> None:
    tracker = PendingAsks()
    for number in range(MAX_SETTLED + 5):
        tracker.admit(message(ALICE, f"q{number}"), NOW_MS)
        tracker.settle(f"q{number}")
    assert len(tracker._settled) == MAX_SETTLED


def test_reply_means_the_named_question() -> None:
    tracker = pending((ALICE, "q1"), (BOB, "q2"))
    assert tracker.resolve("q2").sender_id == "pi-bob00001"
    assert tracker.resolve("q2", "BOB").message_id == "q2"


@pytest.mark.parametrize("to", ["alice", " ALICE ", "pi-alice001", "PI-ALICE001", "pi-alice"])
def test_reply_means_the_question_of_the_given_sender(to: str) -> None:
    assert pending((ALICE, "q1"), (BOB, "q2")).resolve(to=to).message_id == "q1"


def test_reply_means_the_active_question_before_any_other() -> None:
    tracker = pending((ALICE, "q1"), (BOB, "q2"))
    tracker.activate("q2")
    assert tracker.resolve().message_id == "q2"
    tracker.settle("q2")
    assert tracker.resolve().message_id == "q1"


def test_question_that_is_not_open_is_never_active() -> None:
    tracker = pending((ALICE, "q1"), (BOB, "q2"))
    tracker.activate("q2")
    tracker.activate("q9")
    with pytest.raises(NoPendingAsk):
        tracker.resolve()


def test_reply_means_the_only_question() -> None:
    assert pending((ALICE, "q1")).resolve().message_id == "q1"


@pytest.mark.parametrize(
    ("reply_to", "to", "says"),
    [
        ("q9", "", "no ask q9 is pending here"),
        ("q1", "bob", "ask q1 is from Alice, not from 'bob'"),
        ("", "nobody", "no ask from 'nobody' is pending here"),
        ("", "pi-bo", "no ask from 'pi-bo' is pending here"),
        ("", "alice", "2 asks from 'alice' are pending; name one by its message ID: q1 (from Alice), q3 (from alice)"),
        ("", "", "3 asks are pending; name one by its message ID: q1 (from Alice), q2 (from bob), q3 (from alice)"),
    ],
)
def test_reply_that_means_no_one_question_says_what_to_give(reply_to: str, to: str, says: str) -> None:
    tracker = pending((ALICE, "q1"), (BOB, "q2"), (TWIN, "q3"))
    with pytest.raises(NoPendingAsk) as caught:
        tracker.resolve(reply_to, to)
    assert says in str(caught.value)


def test_error_names_a_few_questions_only() -> None:
    with pytest.raises(NoPendingAsk) as caught:
        pending(*((ALICE, f"q{number}") for number in range(50))).resolve()
    assert str(caught.value).count("(from ") == MAX_NAMED


def test_unnamed_sender_is_no_empty_name() -> None:
    tracker = pending((row("pi-noname01"), "q1"))
    with pytest.raises(NoPendingAsk):
        tracker.resolve(to=" ")
    assert tracker.resolve(to="pi-noname").message_id == "q1"


STEPS = ["admit a1", "admit a2", "admit b1", "settle a1", "settle b1", "forget alice", "activate a2"]


def test_every_short_sequence_agrees_with_a_plain_list() -> None:
    """Every sequence of up to five steps: what is open, in which order, and what a bare reply means."""
    count, states = 0, set()
    for length in range(1, 6):
        for steps in itertools.product(STEPS, repeat=length):
            tracker, is_open, is_settled, active = PendingAsks(), [], set(), ""
            for step in steps:
                verb, name = step.split()
                if verb == "admit":
                    tracker.admit(message(ALICE if name[0] == "a" else BOB, name), NOW_MS)
                    is_open += [name] if name not in is_open and name not in is_settled else []
                elif verb == "settle":
                    assert tracker.settle(name) == (name in is_open)
                    is_settled |= {name} & set(is_open)
                elif verb == "forget":
                    gone = [one for one in is_open if one[0] == "a"]
                    assert tracker.forget_sender("pi-alice001") == gone
                    is_settled |= set(gone)
                else:
                    tracker.activate(name)
                    active = name if name in is_open else ""
                is_open = [one for one in is_open if one not in is_settled]
                active = active if active in is_open else ""
            count += 1
            assert ids(tracker) == is_open, steps
            meant = active or (is_open[0] if len(is_open) == 1 else "")
            states.add((tuple(is_open), active))
            if meant:
                assert tracker.resolve().message_id == meant, steps
            else:
                with pytest.raises(NoPendingAsk):
                    tracker.resolve()
    assert count == sum(len(STEPS) ** length for length in range(1, 6))
    assert len(states) > 10
