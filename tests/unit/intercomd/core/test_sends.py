"""The checks of a send in their order: each lets the message pass or names its refusal, and nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from libintercom.wire.codec import decode_request
from tests.support.conversation import Conversation
from tests.support.sayings import ask, message, register, reply, send


def refused(talk: Conversation, conn: str, frame: dict[str, Any]) -> dict[str, Any]:
    (answer,) = talk.says(conn, frame).receives(conn)
    assert answer["type"] == "delivery_failed", answer
    return answer  # type: ignore[no-any-return]


def pair(**limits: float) -> Conversation:
    return Conversation(**limits).joins("a", "alice", ext=1).joins("b", "bob")


@pytest.mark.parametrize(
    ("frame", "message_id"),
    [
        ({"type": "send", "to": "bob", "message": {}}, "unknown"),
        ({"type": "send", "to": "bob"}, "unknown"),
        ({"type": "send", "to": 7, "message": message("m1")}, "m1"),
        ({"type": "send", "message": message("m1")}, "m1"),
        (send("bob", "m1", "bad\x1b"), "unknown"),
        (send("bob", "m1", delivery="bogus"), "unknown"),
    ],
)
def test_an_invalid_message_is_refused_and_never_a_drop(frame: dict[str, Any], message_id: str) -> None:
    talk = pair()
    answer = refused(talk, "a", frame)
    assert (answer["messageId"], answer["code"], answer["reason"]) == (
        message_id,
        "invalid_message",
        "Invalid message format",
    )
    assert (answer["retryable"], answer["outcomeKnown"]) == (False, True)
    talk.expects_open("a").expects_nothing("b")


def test_invalid_messages_have_the_rate_of_all_messages() -> None:
    talk = pair(send_burst=2)
    bad = {"type": "send", "to": "bob", "message": {}}
    assert [refused(talk, "a", bad)["code"] for _ in range(3)] == ["invalid_message"] * 2 + ["rate_limited"]


def test_an_observers_send_is_refused() -> None:
    talk = pair().joins("o", observer=1)
    answer = refused(talk, "o", send("bob", "m1"))
    assert (answer["code"], answer["reason"]) == ("not_registered", "Sender session not found")


def test_a_message_to_oneself_is_refused_under_any_of_ones_names() -> None:
    talk = pair()
    for to in ("alice", "ALICE", "session-a", " session-a "):
        assert refused(talk, "a", send(to, "m1"))["code"] == "self_target"


def in_trouble() -> Conversation:
    """Every check has something to find: who is first is the order."""
    talk = pair(send_burst=4, sends_per_s=0.001, pair_messages=1, recipient_messages=1, stalled_after_s=1.0)
    talk.holds("b").says("a", send("bob", "m1")).after(1)
    talk.receives("a")
    return talk


def test_the_order_of_the_checks() -> None:
    talk = in_trouble()
    assert refused(talk, "a", send("nobody", "m2", guard={}))["code"] == "guard_invalid"
    assert refused(talk, "a", send("bob", "m1", "other"))["code"] == "message_id_reuse"
    assert refused(talk, "a", send("bob", "m3", "x" * 1_048_450))["code"] == "recipient_stalled"
    assert refused(talk, "a", send("nobody", "m4"))["code"] == "rate_limited"


def test_size_comes_before_budgets_and_the_pair_before_the_queue() -> None:
    talk = pair(pair_messages=1, recipient_messages=1, stalled_after_s=100.0).holds("b").says("a", send("bob", "m1"))
    talk.receives("a")
    assert refused(talk, "a", send("bob", "m2", "x" * 1_048_450))["code"] == "too_large"
    assert refused(talk, "a", send("bob", "m3"))["rule"] == "pair"
    talk.after(61)
    assert refused(talk, "a", send("bob", "m4"))["rule"] == "recipient_messages"


def test_budgets_come_before_circles() -> None:
    talk = pair(pair_messages=1).says("b", ask("alice", "q1")).says("a", send("bob", "m1"))
    talk.receives("a")
    assert refused(talk, "a", ask("bob", "q2"))["code"] == "rate_limited"


def test_the_oldest_question_of_a_client_that_cannot_withdraw_one_makes_room() -> None:
    talk = Conversation(max_asks_per_asker=2).joins("a", "alice").joins("b", "bob", ext=1)
    talk.says("a", ask("bob", "q1"), ask("bob", "q2"), ask("bob", "q3"))
    assert [frame["messageId"] for frame in talk.receives("a")] == ["q1", "q2", "q3"]
    retired = [frame for frame in talk.receives("b") if frame["type"] == "ask_retired"]
    assert [(frame["messageId"], frame["reason"]) for frame in retired] == [("q1", "replaced")]


def test_exactly_so_many_questions_are_open_for_an_asker_and_for_a_recipient() -> None:
    talk = pair(max_asks_per_asker=2).says("a", ask("bob", "q1"), ask("bob", "q2"))
    talk.receives("a")
    answer = refused(talk, "a", ask("bob", "q3"))
    assert (answer["code"], answer["rule"], answer["count"], answer["limit"]) == ("recipient_full", "asker_asks", 2, 2)
    talk.says("b", reply("alice", "r1", "q1"))
    talk.receives("a")
    talk.says("a", ask("bob", "q3")).expects("a", {"type": "delivered", "messageId": "q3"})

    talk = pair(max_asks_per_recipient=1).joins("c", "carol").says("c", ask("bob", "q1")).says("a", send("bob", "m1"))
    talk.receives("a")
    assert refused(talk, "a", ask("bob", "q2"))["rule"] == "recipient_asks"


@pytest.mark.parametrize(
    "frame",
    [
        send("nobody", "m9"),
        send("alice", "m9"),
        send("bob", "m9", "x" * 1_048_450),
        send("bob", "m1", "other"),
        ask("bob", "q9"),
        send("bob", "m9", guard={}),
        {"type": "send", "to": "bob", "message": {}},
    ],
)
def test_a_refused_send_changes_nothing_but_the_rate(frame: dict[str, Any]) -> None:
    """Nothing is remembered, no budget but the sender's own is charged, no ask ends or begins."""
    talk = pair().joins("c", "carol").says("a", send("bob", "m1")).says("b", ask("alice", "q1"))
    for conn in "abc":
        talk.receives(conn)
    before = fingerprint(talk)
    refused(talk, "a", frame)
    assert fingerprint(talk) == before
    talk.expects_nothing("b", "c")


def fingerprint(talk: Conversation) -> tuple[Any, ...]:
    state = talk.router.state
    return (
        copy.deepcopy(state.counters.counts),
        copy.deepcopy(state.counters.held),
        {pair: window.total for pair, window in state.quotas._pairs.items()},
        {sender: dict(memory.known) for sender, memory in state.dedupe._memories.items()},
        [ask.key for ask in state.asks],
        state.deadlines.keys(),
        [bytes(session.row.render(is_extended=True)) for session in state.roster.sessions.values()],
        {peer_id: set(session.partners) for peer_id, session in state.roster.sessions.items()},
    )


def test_an_accepted_message_moves_both_parties_activity() -> None:
    talk = pair().after(7).says("a", send("bob", "m1"))
    talk.receives("a")
    (answer,) = talk.says("a", {"type": "list", "requestId": "l"}).receives("a")
    assert {row["lastIntercomActivity"] for row in answer["sessions"]} == {talk.at_ms}


def test_from_shows_the_sender_as_it_was_before_this_message() -> None:
    talk = pair().after(7).says("a", send("bob", "m1"))
    (first,) = talk.receives("b")
    assert first["from"]["lastSeen"] == talk.at_ms
    assert first["from"]["lastIntercomActivity"] == 0


def test_a_message_goes_out_as_the_very_bytes_it_came_in() -> None:
    raw = b'{"id":"m1" , "timestamp":1.50e3,"content":{"text":"\\u00e9\\ud83d","x":1E2},"zzz":[1.0,{}]}'
    talk = pair()
    talk._decode_request = lambda payload: (decode_request(payload), raw)
    talk.says("a", b'{"type":"send","to":"bob","message":' + raw + b"}")
    assert talk.receives_bytes("b")[0].endswith(b',"message":' + raw + b"}")


def test_a_reply_that_is_an_ask_ends_the_question_it_answers() -> None:
    talk = pair().says("a", ask("bob", "q1")).says("b", ask("alice", "q2", replyTo="q1"))
    assert [asked.key for asked in talk.router.state.asks] == [("session-b", "q2")]


def test_a_reply_ends_a_question_even_when_it_is_staged() -> None:
    talk = pair().says("a", ask("bob", "q1"), {"type": "presence", "status": "idle"})
    talk.says("b", send("alice", "r1", replyTo="q1", delivery="queue", queueMode="replace", threadId="t"))
    assert len(talk.router.state.asks) == 0
    talk.after(1.5)
    assert [frame["type"] for frame in talk.receives("a")] == ["delivered", "message"]


def test_everybody_gets_exactly_one_answer_to_every_send() -> None:
    talk = pair(pair_messages=5, recipient_messages=8, send_burst=30, sends_per_s=0.1).joins("c", "carol").holds("c")
    frames = [
        *[send("bob", f"b{at}") for at in range(8)],
        *[send("carol", f"c{at}") for at in range(8)],
        *[ask(to, f"q-{to}") for to in ("bob", "nobody", "alice", "s", "session-")],
        *[send("bob", "b0"), send("bob", "b0", "changed")],
        *[send("bob", f"z{at}") for at in range(20)],
    ]
    talk.says("a", *frames)
    answers = [frame["messageId"] for frame in talk.receives("a")]
    assert sorted(answers) == sorted(frame["message"]["id"] for frame in frames)


def test_a_session_that_shares_its_name_with_the_sender_can_be_reached() -> None:
    talk = Conversation().joins("a", "twin").joins("b", "twin").says("a", send("twin", "m1"))
    talk.expects("a", {"type": "delivered", "messageId": "m1"})
    assert [frame["type"] for frame in talk.receives("b")] == ["message"]


def test_two_mains_of_one_root_and_their_child_reach_each_other() -> None:
    root = {"rootSessionId": "R1"}
    talk = Conversation().joins("m", "one", **root).joins("n", "two", **root)
    talk.says("k", register("kid", id="session-k", **root, parentSessionId="R1")).receives("k")
    for conn, to in (("m", "two"), ("n", "kid"), ("k", "one"), ("k", "two")):
        talk.says(conn, send(to, f"{conn}-{to}"))
        assert [frame["type"] for frame in talk.receives(conn) if frame["type"] != "message"] == ["delivered"]


def test_a_target_means_what_it_means_now_and_not_what_it_meant_before() -> None:
    """Whatever is kept of an earlier resolution: every change of who can be found counts at once."""
    talk = pair().joins("c", "carol")
    delivered = {"type": "delivered", "messageId": "<any>"}

    def goes_to(conn: str, number: int) -> None:
        talk.says("a", send("bob", f"m{number}")).expects("a", delivered)
        arrived = [frame for frame in talk.receives(conn) if frame["type"] == "message"]
        assert [frame["message"]["id"] for frame in arrived] == [f"m{number}"]

    goes_to("b", 1)
    goes_to("b", 2)
    talk.says("b", {"type": "presence", "name": "robert"}).says("c", {"type": "presence", "name": "bob"})
    goes_to("c", 3)
    talk.says("b", {"type": "presence", "name": "Bob"})
    assert refused(talk, "a", send("bob", "m4"))["code"] == "ambiguous"
    talk.hangs_up("c").receives("a")
    goes_to("b", 5)
    talk.says("b", {"type": "unregister"}).receives("a")
    assert refused(talk, "a", send("bob", "m6"))["code"] == "not_found"
    talk.joins("b2", "bob", id="session-b", rootSessionId="R1", parentSessionId="R1")
    assert refused(talk, "a", send("bob", "m7"))["code"] == "not_found"
    talk.says("a", {"type": "presence", "name": "bob"})
    assert refused(talk, "a", send("bob", "m8"))["code"] == "self_target"


def test_what_is_kept_of_targets_is_bounded() -> None:
    talk = pair(send_burst=10_000)
    for spaces in range(300):
        talk.says("a", send(" " * spaces + "bob", f"m{spaces}")).receives("a")
    session = talk.router.state.roster.sessions["session-a"]
    assert len(session.aims) <= 64
    assert max(map(len, session.aims)) <= 128
