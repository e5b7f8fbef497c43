"""What a refusal says: codes, the literal texts of older clients, and nothing about whom the sender cannot see."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from intercomd.core import refusals
from intercomd.core.quotas import Excess
from libintercom.wire.codes import CODES
from libintercom.wire.frames import MAX_FRAME_BYTES
from tests.support.conversation import Conversation
from tests.support.sayings import ask, register_sibling, send


def refused(talk: Conversation, conn: str, frame: dict[str, Any]) -> dict[str, Any]:
    (answer,) = talk.says(conn, frame).receives(conn)
    assert answer["type"] == "delivery_failed"
    return answer  # type: ignore[no-any-return]


# -- texts ---------------------------------------------------------------------------------------------------


def test_the_texts_that_older_clients_compare() -> None:
    assert refusals.INVALID_FORMAT == "Invalid message format"
    assert refusals.SENDER_NOT_FOUND == "Sender session not found"
    assert refusals.NOT_FOUND == "Session not found"
    assert refusals.RECIPIENT_LEFT == "Recipient disconnected before delivery"
    assert refusals.STAGE_FULL == "Replace-mode delivery queue is full; retry after pending updates are delivered."
    assert refusals.STAGED == "Queued for replace-mode delivery"


def test_an_ambiguous_name_has_its_literal_text() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "twin").joins("c", "Twin")
    answer = refused(talk, "a", send("TWIN", "m1"))
    assert answer["reason"] == 'Multiple sessions named "TWIN" are connected. Use the session ID instead.'
    assert answer["code"] == "ambiguous"


@pytest.mark.parametrize("code", CODES)
def test_every_code_says_whether_to_retry_and_what_is_known(code: str) -> None:
    frame = refusals.refusal("m1", code, "because")
    assert (frame.retryable, frame.outcome_known) == CODES[code]


def test_a_rate_names_rule_count_limit_and_when_it_opens() -> None:
    frame = refusals.over_limit("m1", "bob", Excess("pair", 600, 600, 1_250))
    assert frame.reason == 'Message to "bob": 600 messages a minute to this recipient (limit 600); retry in 1.2 s'
    assert (frame.code, frame.rule, frame.count, frame.limit, frame.retry_after_ms) == (
        "rate_limited",
        "pair",
        600,
        600,
        1_250,
    )


def test_a_full_queue_names_rule_count_and_limit() -> None:
    frame = refusals.over_limit("m1", "bob", Excess("recipient_messages", 1_000, 1_000, 0))
    assert (frame.code, frame.retry_after_ms, frame.retryable) == ("recipient_full", None, True)
    assert (
        frame.reason
        == 'Message to "bob": 1000 messages waiting for this recipient (limit 1000); retry when some were taken'
    )


def test_every_rule_has_words() -> None:
    for rule in ("sends", "bytes", "pair", "recipient_messages", "recipient_bytes", "outbound_bytes"):
        assert refusals.over_limit("m1", "bob", Excess(rule, 1, 1, 1)).rule == rule
    for rule in ("recipient_asks", "asker_asks"):
        assert refusals.over_limit("m1", "bob", Excess(rule, 1, 1, 0)).rule == rule


def test_a_message_too_large_is_told_both_sizes() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob")
    answer = refused(talk, "a", send("bob", "m1", "x" * 1_048_450))
    assert answer["code"] == "too_large"
    assert answer["reason"].startswith("Intercom message too large (")
    sizes = [int(word) for word in answer["reason"].replace("(", " ").split() if word.isdigit()]
    assert sizes[0] > MAX_FRAME_BYTES == 1_048_576
    assert sizes[1] < sizes[0]


def test_the_largest_message_that_fits_arrives() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob")
    reason = refused(talk, "a", send("bob", "m1", "x" * 1_048_450))["reason"]
    over = int(reason.split("(")[1].split()[0]) - MAX_FRAME_BYTES
    talk.says("a", send("bob", "m1", "x" * (1_048_450 - over))).expects("a", {"type": "delivered", "messageId": "m1"})
    assert [len(payload) for payload in talk.receives_bytes("b")] == [MAX_FRAME_BYTES]


def test_a_sibling_reads_that_it_failed() -> None:
    talk = Conversation().joins("b", "bob").says("a", register_sibling("alice"))
    talk.receives("a")
    assert refused(talk, "a", send("nobody", "m1"))["delivery"] == "failed"
    assert "delivery" not in refused(talk, "b", send("nobody", "m1"))


LONG = " " * 900_000 + "twin"
BIG = "x" * 900_000


@pytest.mark.parametrize(
    ("to", "code"),
    [
        (LONG, "ambiguous"),
        (" " * 900_000 + "alice", "self_target"),
        (BIG, "not_found"),
        (" " * 900_000 + "se", "too_short"),
    ],
)
def test_a_target_as_long_as_a_frame_is_not_repeated(to: str, code: str) -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "twin").joins("c", "twin")
    payload = talk.says("a", send(to, "m1")).receives_bytes("a")[0]
    assert len(payload) < 4_000
    assert refused(talk, "a", send(to, "m1"))["code"] == code


def test_a_long_target_is_not_repeated_in_any_other_refusal() -> None:
    to = " " * 900_000 + "bob"
    talk = Conversation(pair_messages=1).joins("a", "alice").joins("b", "bob").says("b", ask("alice", "q1"))
    for conn in "ab":
        talk.receives(conn)
    for frame, code in (
        (ask(to, "q2"), "ask_cycle"),
        (send(to, "m1", guard={"a": 1}), "guard_invalid"),
        (send(to, "m1"), None),
        (send(to, "m1", "other"), "message_id_reuse"),
        (send(to, "m2"), "rate_limited"),
    ):
        payload = talk.says("a", frame).receives_bytes("a")[0]
        assert len(payload) < 4_000
        assert code is None or code.encode() in payload


@pytest.mark.parametrize("kind", ["list", "health", "stats", "dead_letters", "read"])
def test_an_id_that_no_answer_could_carry_ends_the_connection(kind: str) -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob")
    talk.says("b", {"type": "list", "requestId": "\x00" * 65_536}).expects_open("b")
    assert len(talk.receives_bytes("b")[0]) < MAX_FRAME_BYTES
    more = {"kind": "last", "to": "bob"} if kind == "read" else {}
    talk.says("a", {"type": kind, "requestId": "x" * 65_537, **more}).expects_closed("a").expects_nothing("a")


def test_taking_back_a_message_with_an_endless_id_ends_the_connection() -> None:
    talk = Conversation().joins("a", "alice").says("a", {"type": "cancel_message", "messageId": "x" * 65_536})
    talk.expects("a", {"type": "delivery_failed", "...": True})
    talk.says("a", {"type": "cancel_message", "messageId": "x" * 65_537}).expects_closed("a")


# -- candidates and nearest ------------------------------------------------------------------------------------


def crowd(**members: Any) -> Conversation:
    """A standalone main between two groups; every group has a "worker" and a "reviewer"."""
    talk = Conversation().joins("a", "alice", **members)
    for number in "123":
        root = {"rootSessionId": f"R{number}"}
        talk.joins(f"m{number}", "worker", id=f"worker-{number}-main", **root)
        talk.joins(f"k{number}", "worker", id=f"worker-{number}-kid", **root, parentSessionId=f"R{number}")
        talk.joins(f"r{number}", "reviewer", id=f"reviewer-{number}-kid", **root, parentSessionId=f"R{number}")
    return talk


def test_candidates_are_at_most_three_of_the_visible_and_can_be_used() -> None:
    talk = crowd(ext=1)
    candidates = refused(talk, "a", send("worker", "m1"))["candidates"]
    assert [found["id"] for found in candidates] == ["worker-1-main", "worker-2-main", "worker-3-main"]
    for found in candidates:
        assert found["name"] == "worker"
        talk.says("a", send(found["target"], f"m-{found['id']}"))
        assert [answer["type"] for answer in talk.receives("a")] == ["delivered"]


def test_a_child_sees_its_own_group_only() -> None:
    talk = crowd().joins("c", "child", ext=1, rootSessionId="R2", parentSessionId="R2")
    candidates = refused(talk, "c", send("worker", "m1"))["candidates"]
    assert [found["id"] for found in candidates] == ["worker-2-kid", "worker-2-main"]
    assert refused(talk, "c", send("alice", "m2"))["code"] == "not_found"


def test_similar_names_are_offered_among_the_visible() -> None:
    talk = crowd(ext=1)
    assert [found["id"] for found in refused(talk, "a", send("worcker", "m1"))["nearest"]] == [
        "worker-1-main",
        "worker-2-main",
        "worker-3-main",
    ]
    assert "nearest" not in refused(talk, "a", send("revewer", "m2"))
    talk.joins("c", "child", ext=1, rootSessionId="R2", parentSessionId="R2")
    assert [found["id"] for found in refused(talk, "c", send("revewer", "m2"))["nearest"]] == ["reviewer-2-kid"]


def test_ones_own_name_is_not_offered() -> None:
    talk = Conversation().joins("a", "alice", ext=1)
    assert "nearest" not in refused(talk, "a", send("alicee", "m1"))


def test_older_clients_get_neither() -> None:
    talk = crowd()
    assert not {"candidates", "nearest"} & refused(talk, "a", send("worker", "m1")).keys()
    assert not {"candidates", "nearest"} & refused(talk, "a", send("worcker", "m2")).keys()


def test_looking_for_similar_names_has_a_budget_of_its_own() -> None:
    talk = crowd(ext=1)
    found = ["nearest" in refused(talk, "a", send("worcker", f"m{at}")) for at in range(12)]
    assert found == [True] * 10 + [False] * 2
    talk.after(0.25)
    assert "nearest" in refused(talk, "a", send("worcker", "m99"))


TARGETS = ("reviewer", "reviewer-1-kid", "reviewer-1", "REVIEWER-1-KID", "rev", " reviewer ", "reviewer-1-kid-x", "x")


@pytest.mark.parametrize(("to", "has_ext"), list(itertools.product(TARGETS, [True, False])))
def test_a_hidden_target_is_byte_for_byte_an_unknown_one(to: str, has_ext: bool) -> None:
    """The same conversation with and without the hidden sessions ends in the same bytes."""
    members = {"ext": 1} if has_ext else {}
    answers = []
    for is_there in (True, False):
        talk = Conversation().joins("a", "alice", **members).joins("b", "bob")
        if is_there:
            for number, root in enumerate(("R1", "R1", "R2")):
                lineage = {"rootSessionId": root, "parentSessionId": root}
                talk.joins(f"k{number}", "reviewer", id=f"reviewer-{number}-kid", **lineage)
        for message_id in ("m1", "m1", "m2"):
            talk.says("a", send(to, message_id), ask(to, f"{message_id}-ask"), send(to, message_id, replyTo="q9"))
        talk.says("a", {"type": "list", "requestId": "l"})
        answers.append([payload for payload in talk.receives_bytes("a") if b"sessions" not in payload])
    assert answers[0] == answers[1]
    assert all(b"not_found" in payload for payload in answers[0])


def test_a_hidden_name_does_not_make_a_visible_one_ambiguous() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "twin")
    talk.joins("k", "twin", id="hidden-1", rootSessionId="R1", parentSessionId="R1")
    talk.says("a", send("twin", "m1")).expects("a", {"type": "delivered", "messageId": "m1"})
    assert [frame["type"] for frame in talk.receives("b")] == ["message"]
    talk.expects_nothing("k")


# -- cycles ----------------------------------------------------------------------------------------------------


def test_a_cycle_names_its_sessions_in_order() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").joins("c", None)
    talk.says("b", ask("session-c", "q1")).says("c", ask("alice", "q2"))
    answer = refused_after(talk, "a", ask("bob", "q3"))
    assert answer["code"] == "ask_cycle"
    assert answer["reason"].startswith('Ask to "bob": it would wait in a circle (bob -> session-c -> you);')
    assert answer["retryable"] is False


def refused_after(talk: Conversation, conn: str, frame: dict[str, Any]) -> dict[str, Any]:
    talk.receives(conn)
    return refused(talk, conn, frame)


def test_a_cycle_of_many_names_is_told_in_a_few() -> None:
    frame = refusals.cycle("q1", "bob", [f"{number:04d}" + "n" * 1_000 for number in range(2_000)])
    assert len(frame.reason) < 20_000
    assert "0015n" in frame.reason
    assert "0016n" not in frame.reason
    assert "-> 1984 more -> you" in frame.reason


def test_a_cycle_through_hidden_sessions_says_nothing_about_them() -> None:
    """Two mains of one root can wait for each other through a child that others cannot see."""
    root = {"rootSessionId": "R1"}
    talk = Conversation().joins("a", "alice").joins("m1", "main1", **root).joins("m2", "main2", **root)
    talk.joins("k", "secret", **root, parentSessionId="R1")
    talk.says("m1", ask("secret", "q1")).says("k", ask("main2", "q2")).says("m2", ask("alice", "q3"))
    answer = refused_after(talk, "a", ask("main1", "q4"))
    assert answer["reason"].startswith('Ask to "main1": it would wait in a circle (main1 -> main2 -> you);')
    assert "cannot see" not in answer["reason"]
    assert answer["code"] == "ask_cycle"
