"""How each ask ends, once, and who hears of it: conversations over every kind of end and every kind of client."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.conversation import Conversation
from tests.support.sayings import ask, presence, register_sibling, replace, reply, send

LEAVE = {"type": "unregister"}
LEFT_BOB = {"type": "session_left", "sessionId": "session-b"}


def cancel(message_id: str) -> dict[str, Any]:
    return {"type": "cancel_ask", "messageId": message_id}


def retired(message_id: str, reason: str, asker_id: str = "session-a") -> dict[str, Any]:
    return {"type": "ask_retired", "messageId": message_id, "askerId": asker_id, "reason": reason}


def trio(**limits: float) -> Conversation:
    talk = Conversation(**limits)
    for conn, name in (("a", "alice"), ("b", "bob"), ("c", "carol")):
        talk.joins(conn, name, ext=1)
    return talk


def swallow(talk: Conversation) -> Conversation:
    for conn in talk._numbers:
        talk.receives(conn)
    return talk


def waits_for(talk: Conversation, *edges: str) -> Conversation:
    """Exactly these edges ("ab": a waits for b) exist, and each has its deadline."""
    asks = [ask for ask in talk.router.state.asks if ask.is_waiting]
    assert sorted(f"{ask.asker_id[-1]}{ask.recipient_id[-1]}" for ask in asks) == sorted(edges)
    deadlines = talk.router.state.deadlines.keys()
    assert {key for key in deadlines if key[0] == "ask"} == {("ask", *ask.key) for ask in asks}
    return talk


def ends(talk: Conversation) -> dict[str, int]:
    """How asks ended; every ask that was opened is either still open or ended exactly once."""
    obligations = talk.router.obligations
    assert obligations.opened == sum(obligations.ended.values()) + len(talk.router.state.asks)
    return obligations.ended


def test_a_reply_ends_it_and_nobody_is_told() -> None:
    talk = swallow(trio().says("a", ask("bob", "q1")))
    waits_for(talk, "ab").says("b", reply("alice", "r1", "q1"))
    assert [frame["type"] for frame in talk.receives("b")] == ["delivered"]
    assert ends(waits_for(talk)) == {"replied": 1}
    talk.says("a", cancel("q1")).after(4_000).expects_nothing("b")
    assert ends(talk) == {"replied": 1}


def test_a_reply_of_somebody_else_or_to_something_else_ends_nothing() -> None:
    talk = swallow(trio().says("a", ask("bob", "q1")))
    talk.says("c", reply("alice", "r1", "q1")).says("b", reply("alice", "r2", "q2"), reply("carol", "r3", "q1"))
    assert ends(waits_for(talk, "ab")) == {}


def test_a_refused_reply_ends_nothing() -> None:
    talk = swallow(trio(recipient_messages=1).says("a", ask("bob", "q1")))
    swallow(talk.holds("a").says("c", send("alice", "m1")))
    talk.says("b", reply("alice", "r1", "q1"))
    talk.expects("b", {"type": "delivery_failed", "code": "recipient_full", "...": True})
    assert ends(waits_for(talk, "ab")) == {}


@pytest.mark.parametrize("members", [{"timeoutMs": 5_000}, {"timeoutMs": 5_000, "delivery": "steer"}])
def test_a_timeout_retires_the_question_exactly_when_it_is_over(members: dict[str, Any]) -> None:
    talk = swallow(trio().says("a", ask("bob", "q1", **members)))
    talk.after(4.999).expects_nothing("b")
    waits_for(talk, "ab").after(0.001).expects("b", retired("q1", "timeout"))
    assert ends(waits_for(talk)) == {"timeout": 1}


def test_the_default_of_a_client_with_extensions_retires_too() -> None:
    talk = swallow(trio().says("a", ask("bob", "q1")))
    talk.after(119.999).expects_nothing("b").after(0.001).expects("b", retired("q1", "timeout"))
    assert ends(talk) == {"timeout": 1}


def test_the_default_of_an_older_client_ends_its_waiting_only() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob", ext=1)
    swallow(talk.says("a", ask("bob", "q1"))).after(120).expects_nothing("b")
    assert ends(waits_for(talk)) == {}
    talk.says("b", reply("alice", "r1", "q1"))
    assert ends(talk) == {"replied": 1}


def test_the_default_of_a_sibling_ends_its_waiting_only() -> None:
    talk = Conversation().joins("b", "bob", ext=1).says("a", register_sibling("alice", id="session-a"))
    swallow(talk.says("a", ask("bob", "q1"))).after(120).expects_nothing("b")
    assert ends(waits_for(talk)) == {}
    talk.says("a", cancel("q1")).expects("b", retired("q1", "cancelled"))


def test_only_its_asker_can_cancel_and_only_once() -> None:
    talk = swallow(trio().says("a", ask("bob", "q1")))
    talk.says("b", cancel("q1")).says("c", cancel("q1")).says("a", cancel("q2")).expects_nothing()
    waits_for(talk, "ab").says("a", cancel("q1"), cancel("q1")).expects("b", retired("q1", "cancelled"))
    assert ends(talk) == {"cancelled": 1}


@pytest.mark.parametrize("how", ["unregister", "hang up", "violation"])
def test_the_end_of_an_asker_retires_what_it_asked(how: str) -> None:
    talk = swallow(trio().says("a", ask("bob", "q1"), ask("carol", "q2", timeoutMs=0)))
    if how == "hang up":
        talk.hangs_up("a")
    else:
        talk.says("a", LEAVE if how == "unregister" else {"type": "nonsense"})
    left = {"type": "session_left", "sessionId": "session-a"}
    talk.expects("b", retired("q1", "asker_left"), left).expects("c", retired("q2", "asker_left"), left)
    assert ends(waits_for(talk)) == {"asker_left": 2}


def test_the_end_of_a_recipient_ends_what_it_owes() -> None:
    talk = swallow(trio().says("a", ask("bob", "q1")).says("b", ask("carol", "q2")))
    swallow(talk.hangs_up("b"))
    assert ends(waits_for(talk)) == {"recipient_left": 1, "asker_left": 1}
    talk.says("c", ask("alice", "q3")).expects("c", {"type": "delivered", "messageId": "q3"})


def test_an_ask_that_nobody_waits_for_is_owed_all_the_same() -> None:
    talk = trio().says("b", presence(acceptsAsks=False)).says("a", ask("bob", "q1"), ask("bob", "q2", timeoutMs=0))
    waits_for(talk)
    assert {ask.message_id for ask in talk.router.state.asks.of_recipient("session-b")} == {"q1", "q2"}
    swallow(talk).after(4_000).expects_nothing("b")
    talk.says("b", reply("alice", "r1", "q2"))
    assert ends(talk) == {"replied": 1}


def test_an_explicit_ask_waits_for_a_busy_recipient() -> None:
    talk = trio().says("b", presence(acceptsAsks=False)).says("a", ask("bob", "q1", delivery="queue"))
    waits_for(talk, "ab")


@pytest.mark.parametrize("newer", [{}, {"timeoutMs": 0}, {"delivery": "steer"}])
def test_an_older_client_asks_one_thing_at_a_time(newer: dict[str, Any]) -> None:
    """Whether or not it waits for the newer one, it gave up on the one before."""
    talk = Conversation().joins("a", "alice").joins("b", "bob", ext=1).joins("c", "carol")
    swallow(talk.says("a", ask("bob", "q1")).says("a", ask("carol", "q2", **newer)))
    waits_for(talk, *([] if newer == {"timeoutMs": 0} else ["ac"])).expects_nothing("b")
    talk.says("b", ask("alice", "q3")).expects("b", {"type": "delivered", "messageId": "q3"})
    assert len(talk.router.state.asks.of_recipient("session-b")) == 1


def test_a_refused_ask_of_an_older_client_leaves_the_one_before() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob")
    swallow(talk.says("a", ask("bob", "q1")).says("a", ask("nobody", "q2")))
    waits_for(talk, "ab")


def test_a_client_with_extensions_may_ask_several_at_once() -> None:
    talk = swallow(trio().says("a", ask("bob", "q1"), ask("carol", "q2"), ask("bob", "q3")))
    waits_for(talk, "ab", "ab", "ac")


def test_a_newer_message_of_its_thread_voids_a_question() -> None:
    talk = trio().says("a", replace("bob", "q1", "t", expectsReply=True)).after(1.5)
    swallow(talk).says("a", replace("bob", "q2", " t ", expectsReply=True))
    talk.expects("b", retired("q1", "replaced")).after(1.5)
    waits_for(talk, "ab")
    swallow(talk).says("a", replace("bob", "m3", "t")).expects(
        "b", retired("q2", "replaced"), {"type": "message", "...": True}
    )
    assert ends(waits_for(talk)) == {"replaced": 2}


def test_other_threads_recipients_and_modes_void_nothing() -> None:
    talk = trio().says("a", replace("bob", "q1", "t", expectsReply=True)).after(1.5)
    talk.says("a", replace("bob", "m1", "u"), replace("carol", "m2", "t"), send("bob", "m3"))
    talk.says("c", replace("bob", "m4", "t")).after(1.5)
    waits_for(talk, "ab")


def test_a_staged_question_that_ends_is_no_news_to_its_recipient() -> None:
    talk = swallow(trio().says("a", replace("bob", "q1", "t", expectsReply=True)))
    waits_for(talk, "ab").says("a", replace("bob", "q2", "t", expectsReply=True)).expects_nothing("b")
    talk.says("a", cancel("q2")).expects_nothing("b")
    assert ends(waits_for(talk)) == {"replaced": 1, "cancelled": 1}


@pytest.mark.parametrize(("reason", "members"), [("cancelled", {}), ("timeout", {"timeoutMs": 1_000})])
def test_a_question_that_ended_in_the_stage_is_retired_when_it_arrives(reason: str, members: dict[str, Any]) -> None:
    """It was accepted, so it is delivered; but its recipient must not think that somebody waits."""
    talk = swallow(trio().says("a", replace("bob", "q1", "t", expectsReply=True, **members)))
    if reason == "cancelled":
        talk.says("a", cancel("q1"))
    arrived = {"type": "message", "from": "<any>", "message": {"id": "q1", "...": True}}
    talk.after(1.5).expects("b", arrived, retired("q1", reason))
    assert ends(waits_for(talk)) == {reason: 1}


def test_a_question_answered_in_the_stage_is_not_retired_when_it_arrives() -> None:
    talk = swallow(trio().says("a", replace("bob", "q1", "t", expectsReply=True)))
    talk.says("b", reply("alice", "r1", "q1")).receives("b")
    talk.after(1.5).expects("b", {"type": "message", "from": "<any>", "message": {"id": "q1", "...": True}})
    assert ends(waits_for(talk)) == {"replied": 1}


def test_an_ask_that_was_not_delivered_did_not_begin() -> None:
    talk = swallow(trio()).resets("b").says("a", ask("bob", "q1"))
    talk.expects("a", {"type": "delivery_failed", "code": "recipient_left", "messageId": "q1", "...": True}, LEFT_BOB)
    assert ends(waits_for(talk)) == {"not_delivered": 1}


def test_a_held_ask_is_an_ask() -> None:
    talk = trio().holds("b").says("a", ask("bob", "q1", timeoutMs=1_000))
    waits_for(talk, "ab").after(1)
    talk.reads("b").expects("b", {"type": "message", "...": True}, retired("q1", "timeout"))


EVENTS = ("asks", "replies", "cancels", "leaves", "times out", "replaces", "recipient leaves")


@pytest.mark.parametrize("is_ext", [True, False])
def test_every_short_sequence_ends_each_ask_exactly_once(is_ext: bool) -> None:
    """Whatever happens after an ask, in any order: one end, at most one retirement, none after a reply."""
    members: dict[str, Any] = {"ext": 1} if is_ext else {}
    for sequence in itertools.product(EVENTS, repeat=3):
        talk = Conversation().joins("a", "alice", **members).joins("b", "bob", ext=1)
        talk.says("a", replace("bob", "q0", "t", expectsReply=True, timeoutMs=1_000)).after(1)
        for at, event in enumerate(sequence):
            _happens(talk, event, at)
        talk.after(4_000)
        ends(waits_for(talk))
        told = [frame["messageId"] for frame in talk.receives("b") if frame["type"] == "ask_retired"]
        assert len(told) == len(set(told)), sequence


def _happens(talk: Conversation, event: str, at: int) -> None:
    if event in {"replies", "recipient leaves"} and not talk.is_closed("b"):
        talk.says("b", {"type": "bad"} if event == "recipient leaves" else reply("alice", f"r{at}", "q0"))
    elif event == "times out":
        talk.after(1)
    elif not talk.is_closed("a"):
        said = {
            "asks": ask("bob", f"q{at}a"),
            "cancels": cancel("q0"),
            "leaves": {"type": "bad"},
            "replaces": replace("bob", f"m{at}", "t"),
        }
        if event in said:
            talk.says("a", said[event])
