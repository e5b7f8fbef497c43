"""Joining, changing and leaving: who becomes whom, what is refused, who hears of an end."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.conversation import Conversation
from tests.support.sayings import list_sessions, presence, register, register_sibling, send

LEAVE = {"type": "unregister"}


def left(conn: str) -> dict[str, str]:
    return {"type": "session_left", "sessionId": f"session-{conn}"}


def registered_id(talk: Conversation, conn: str, frame: dict[str, Any]) -> str:
    (answer,) = talk.says(conn, frame).receives(conn)
    assert answer["type"] == "registered"
    return str(answer["sessionId"])


# -- ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["abcdefgh", "A-_9" * 20])
def test_a_wanted_id_of_the_right_form_is_given(wanted: str) -> None:
    assert registered_id(Conversation(), "a", register("alice", id=wanted)) == wanted


@pytest.mark.parametrize(
    "wanted", ["abcdefg", "x" * 81, "abcdefg.", "abcdefgh\n", "äbcdefgh", 12345678, True, ["abcdefgh"]]
)
def test_any_other_wanted_id_becomes_a_new_one_silently(wanted: Any) -> None:
    talk = Conversation()
    found = registered_id(talk, "a", {**register("alice"), "requestedId": wanted})
    assert found != wanted
    assert len(found) == 36


def test_a_live_id_is_not_given_twice_and_nobody_is_evicted() -> None:
    talk = Conversation().joins("a", "alice")
    assert registered_id(talk, "b", register("bob", id="session-a")) != "session-a"
    assert registered_id(talk, "c", register_sibling("carol", id="session-a")) != "session-a"
    talk.expects_open("a", "b", "c").expects_nothing("a")
    talk.hangs_up("a")
    assert registered_id(talk, "d", register("dan", id="session-a")) == "session-a"


@pytest.mark.parametrize("wanted", ["x", "any thing", "ünï", "1.2/3"])
def test_a_sibling_is_given_any_id_that_can_be_shown(wanted: str) -> None:
    assert registered_id(Conversation(), "a", register_sibling("alice", id=wanted)) == wanted


@pytest.mark.parametrize("wanted", ["a\x1b[0m", "x" * 1_025])
def test_a_siblings_id_that_cannot_be_shown_becomes_a_new_one(wanted: str) -> None:
    assert len(registered_id(Conversation(), "a", register_sibling("alice", id=wanted))) == 36


def test_ids_inside_the_session_play_no_part() -> None:
    frame = register("alice", id="abcdefgh")
    frame["session"]["id"] = "chosen-by-me"
    assert registered_id(Conversation(), "a", frame) == "abcdefgh"


# -- refused registrations -----------------------------------------------------------------------------------


def test_an_older_client_is_refused_without_a_word() -> None:
    talk = Conversation().says("a", register("bad\x1bname"))
    talk.expects_closed("a").expects_nothing("a")


def test_a_client_with_extensions_is_told_why() -> None:
    talk = Conversation().says("a", register("x" * 1_025, ext=1))
    talk.expects("a", {"type": "error", "error": "<has:name is not a label>", "code": "invalid_registration"})
    talk.expects_closed("a")


def test_a_row_over_its_limit_is_refused_with_both_numbers() -> None:
    talk = Conversation(max_row_bytes=400).joins("b", "bob").says("a", register("n" * 300, ext=1))
    (answer,) = talk.receives("a")
    assert answer["code"] == "row_too_large"
    assert "(limit 400)" in answer["error"]
    talk.expects_closed("a").expects_nothing("b")


def test_exactly_so_many_sessions_are_let_in() -> None:
    talk = Conversation(max_sessions=2).joins("a").joins("b").says("c", register("carol"))
    talk.expects_closed("c").expects_nothing("c").says("d", register("dan", ext=1))
    talk.expects("d", {"type": "error", "code": "too_many_sessions", "error": "<has:2 sessions are connected>"})
    talk.says("e", register_sibling("eve")).expects("e", {"type": "error", "code": "too_many_sessions", "...": True})
    talk.hangs_up("a").joins("f")


def test_what_is_behind_a_refused_registration_is_not_read() -> None:
    talk = Conversation(max_sessions=0).says("a", register("alice"), {"type": "health", "requestId": "h"})
    talk.expects_closed("a").expects_nothing("a")


def test_a_second_registration_ends_the_connection() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").says("a", register("again"))
    talk.expects_closed("a").expects("b", left("a"))


def test_capabilities_are_echoed_to_those_who_asked() -> None:
    talk = Conversation().says("a", register("alice")).expects("a", {"type": "registered", "sessionId": "<uuid>"})
    talk.says("b", register("bob", ext=1))
    (answer,) = talk.receives("b")
    assert answer["ext"] == 1
    assert answer["broker"]["program"] == "intercomd"
    assert answer["limits"] == {
        "maxFrameBytes": 1_048_576,
        "maxSessions": 10_000,
        "recipientBytes": 4_194_304,
        "recipientMessages": 1_000,
        "sendBurst": 1_000,
        "sendsPerSecond": 500.0,
        "inputBytesPerSecond": 16_777_216.0,
        "pairMessagesPerMinute": 600,
    }


@pytest.mark.parametrize("version", [0, 2, True, "1", [1], None])
def test_other_versions_of_a_capability_are_not_negotiated(version: Any) -> None:
    talk = Conversation().says("a", {**register("alice"), "ext": version})
    talk.expects("a", {"type": "registered", "sessionId": "<uuid>"})


# -- presence ------------------------------------------------------------------------------------------------


def row_of(talk: Conversation, peer_id: str, viewer: str = "b") -> dict[str, Any]:
    (answer,) = talk.says(viewer, list_sessions()).receives(viewer)
    return next(found for found in answer["sessions"] if found["id"] == peer_id)


def test_presence_changes_what_it_names_and_nobody_is_told() -> None:
    talk = Conversation().joins("a", "alice", status="idle").joins("b", "bob")
    talk.says("a", presence(name="anna", pendingAsks=1)).says("a", presence(acceptsAsks=True, model="other"))
    talk.expects_nothing("a", "b")
    row = row_of(talk, "session-a")
    assert (row["name"], row["pendingAsks"], row["acceptsAsks"]) == ("anna", 1, True)
    assert (row["model"], row["status"]) == ("other", "idle")
    talk.says("b", send("anna", "m1"), send("alice", "m2"))
    assert [frame["type"] for frame in talk.receives("b")] == ["delivery_failed", "delivered"]


@pytest.mark.parametrize(
    "member",
    [
        {"id": "other"},
        {"cwd": "/other"},
        {"projectId": "ab" * 32},
        {"rootSessionId": "R9"},
        {"parentSessionId": "R9"},
        {"incarnation": "i9"},
        {"host": {"steer": True}},
        {"unknown": 1},
    ],
)
def test_presence_never_changes_who_a_session_is(member: dict[str, Any]) -> None:
    talk = Conversation().joins("a", "alice", ext=1, rootSessionId="R1", incarnation="i1").joins("b", "bob", ext=1)
    before = row_of(talk, "session-a")
    talk.says("a", presence(**member))
    after = row_of(talk, "session-a")
    assert {**after, "lastSeen": 0, "lastActivity": 0} == {**before, "lastSeen": 0, "lastActivity": 0}


@pytest.mark.parametrize("member", [{"name": ""}, {"status": "a\x1b"}, {"model": "x" * 1_025}, {"name": "a\nb"}])
def test_presence_that_would_make_the_row_invalid_ends_the_connection(member: dict[str, Any]) -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").says("a", presence(**member))
    talk.expects_closed("a").expects("b", left("a"))


def test_presence_that_would_make_the_row_too_large_ends_the_connection() -> None:
    talk = Conversation(max_row_bytes=500).joins("a", "alice").says("a", presence(status="s" * 200))
    talk.expects_closed("a")


def test_a_siblings_labels_are_scrubbed() -> None:
    talk = Conversation().joins("b", "bob").says("a", register_sibling("a\nb", id="sib", cwd="", status="\x1b[2J"))
    row = row_of(talk, "sib")
    assert (row["name"], row["cwd"], row["status"]) == ("a\ufffdb", "?", "\ufffd[2J")
    talk.says("a", presence(name="")).expects_open("a")
    assert row_of(talk, "sib")["name"] == "?"


# -- leaving -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["unregister", "hang up", "violation"])
def test_an_end_is_told_once_to_those_who_could_see_the_session(how: str) -> None:
    talk = Conversation().joins("a", "alice", rootSessionId="R1").joins("b", "bob")
    talk.joins("k", "kid", rootSessionId="R1", parentSessionId="R1")
    talk.joins("x", "other", rootSessionId="R2", parentSessionId="R2").joins("o", observer=1)
    if how == "hang up":
        talk.hangs_up("a")
    else:
        talk.says("a", LEAVE if how == "unregister" else {"type": "bad"})
    talk.expects("b", left("a")).expects("k", left("a")).expects_nothing()
    if how == "unregister":
        talk.hangs_up("a").expects_nothing("b", "k", "x", "o")


def test_the_end_of_a_child_is_told_in_its_group_only() -> None:
    talk = Conversation().joins("k", "kid", rootSessionId="R1", parentSessionId="R1")
    for conn, members in {
        "m": {"rootSessionId": "R1"},
        "t": {"rootSessionId": "R1"},
        "s": {"rootSessionId": "R1", "parentSessionId": "R1"},
        "b": {},
        "x": {"rootSessionId": "R2"},
        "y": {"rootSessionId": "R2", "parentSessionId": "R2"},
    }.items():
        talk.joins(conn, conn, **members)
    talk.hangs_up("k")
    talk.expects("m", left("k")).expects("t", left("k")).expects("s", left("k")).expects_nothing("b", "x", "y")


def test_clients_with_extensions_hear_only_of_those_they_exchanged_messages_with() -> None:
    talk = Conversation().joins("a", "alice")
    for conn in ("sent", "got", "other"):
        talk.joins(conn, conn, ext=1)
    talk.says("sent", send("alice", "m1")).says("a", send("got", "m2"))
    for conn in ("a", "sent", "got"):
        talk.receives(conn)
    talk.hangs_up("a").expects("sent", left("a")).expects("got", left("a")).expects_nothing("other")
    talk.joins("a2", "alice", id="session-a").hangs_up("a2").expects_nothing("sent", "got", "other")


def test_a_refused_send_makes_no_acquaintance() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob", ext=1)
    talk.says("b", send("alice", "m1", delivery="bogus")).receives("b")
    talk.hangs_up("a").expects_nothing("b")


def test_after_unregistering_only_health_and_register_are_allowed() -> None:
    for frame in (list_sessions(), send("bob", "m1"), presence(), LEAVE):
        talk = Conversation().joins("a", "alice").says("a", LEAVE, frame)
        talk.expects_closed("a").expects_nothing("a")


def test_a_session_may_come_back_on_its_socket_as_somebody_else() -> None:
    talk = Conversation().joins("a", "alice", ext=1, rootSessionId="R1", incarnation="i1").joins("b", "bob", ext=1)
    talk.says("a", LEAVE, register("kid", id="session-a", rootSessionId="R2", parentSessionId="R2"))
    talk.expects("a", {"type": "registered", "sessionId": "session-a"})
    talk.says("b", send("session-a", "m1")).expects("b", {"type": "delivery_failed", "code": "not_found", "...": True})
    talk.says("a", {"type": "stats", "requestId": "s"}).expects_closed("a")


# -- observers -----------------------------------------------------------------------------------------------


def test_an_observer_is_no_session() -> None:
    talk = Conversation().joins("a", "alice").says("o", register("watch", id="session-o", observer=1))
    talk.expects("o", {"type": "registered", "sessionId": "session-o", "observer": 1})
    talk.says("a", list_sessions(), send("watch", "m1"), send("session-o", "m2"))
    kinds = [frame.get("code") or len(frame["sessions"]) for frame in talk.receives("a")]
    assert kinds == [1, "not_found", "not_found"]
    talk.hangs_up("o").expects_nothing("a")


@pytest.mark.parametrize(
    ("lineage", "seen"),
    [
        ({}, ["alice", "main1", "main2"]),
        ({"rootSessionId": "R1"}, ["alice", "kid1", "main1", "main2"]),
        ({"rootSessionId": "R1", "parentSessionId": "R1"}, ["kid1", "main1"]),
        ({"rootSessionId": "R9", "parentSessionId": "R9"}, []),
    ],
)
def test_an_observer_sees_what_its_lineage_sees(lineage: dict[str, str], seen: list[str]) -> None:
    talk = Conversation().joins("a", "alice")
    for number in "12":
        root = f"R{number}"
        talk.joins(f"m{number}", f"main{number}", rootSessionId=root)
        talk.joins(f"k{number}", f"kid{number}", rootSessionId=root, parentSessionId=root)
    talk.joins("o", observer=1, **lineage).says("o", list_sessions())
    (answer,) = talk.receives("o")
    assert [row["name"] for row in answer["sessions"]] == seen


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ({"type": "health", "requestId": "h"}, "health_ok"),
        ({"type": "stats", "requestId": "s"}, "stats_result"),
        (list_sessions(), "sessions"),
        (send("alice", "m1"), "delivery_failed"),
        ({"type": "send", "to": 1, "message": {}}, "delivery_failed"),
        (presence(status="x"), "closed"),
        ({"type": "dead_letters", "requestId": "d"}, "closed"),
        ({"type": "cancel_ask", "messageId": "q"}, "closed"),
        ({"type": "cancel_message", "messageId": "q"}, "closed"),
        ({"type": "extension_publish"}, "closed"),
        (register("again"), "closed"),
    ],
)
@pytest.mark.parametrize("members", [{}, {"ext": 1}])
def test_what_an_observer_may_say(frame: dict[str, Any], expected: str, members: dict[str, Any]) -> None:
    talk = Conversation().joins("a", "alice").joins("o", observer=1, **members).says("o", frame)
    found = [answer["type"] for answer in talk.receives("o")]
    assert (found or ["closed"]) == [expected]
    assert talk.is_closed("o") is (expected == "closed")
    talk.expects_nothing("a")


def test_an_observer_may_become_a_session_on_its_socket_and_back() -> None:
    talk = Conversation().joins("a", "alice")
    for _round, observes in itertools.product(range(2), (True, False)):
        members = {"observer": 1} if observes else {}
        talk.joins("o", "turn", **members).says("a", list_sessions())
        (answer,) = talk.receives("a")
        assert len(answer["sessions"]) == (1 if observes else 2)
        talk.says("o", LEAVE)
        talk.expects("a", *([] if observes else [left("o")]))
