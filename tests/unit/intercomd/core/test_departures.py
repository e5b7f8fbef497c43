"""What a departure costs: what it has to tell, however many sessions there are, and nothing to those who are gone."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

from intercomd.core.events import ConnectionClosed, ConnectionsLost
from tests.support.conversation import Conversation
from tests.support.sayings import send


def crowd(count: int, **members: Any) -> Conversation:
    talk = Conversation()
    for number in range(count):
        talk.joins(f"c{number}", f"c{number}", **members)
    return talk


def calls_of_leaving(talk: Conversation, conn: str) -> int:
    """How many calls, Python's and C's, the core makes for a connection's end."""
    count = 0

    def note(_frame: object, event: str, _called: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    event = ConnectionClosed(talk.number(conn), "closed by peer")
    sys.setprofile(note)
    try:
        talk.router.handle(event, talk.now)
    finally:
        sys.setprofile(None)
    return count


def told(talk: Conversation, conn: str) -> list[str]:
    return [frame["sessionId"] for frame in talk.receives(conn) if frame["type"] == "session_left"]


def test_a_session_that_talked_to_nobody_leaves_at_the_same_cost_among_few_and_many() -> None:
    few, many = (calls_of_leaving(crowd(count, ext=1), "c1") for count in (20, 400))
    # Finding its place in the sorted list takes a few steps more.
    assert many <= few + 20


def test_an_older_client_costs_one_frame() -> None:
    few, many = (crowd(count, ext=1).joins("old", "old") for count in (20, 400))
    costs = [calls_of_leaving(talk, "c1") for talk in (few, many)]
    assert costs[1] <= costs[0] + 20


def test_partners_forget_one_another_in_both_directions() -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob", ext=1).joins("c", "carol")
    talk.says("a", send("bob", "m1")).says("c", send("alice", "m2")).says("b", send("carol", "m3"))
    sessions = talk.router.state.roster.sessions
    assert {name: session.partners for name, session in sessions.items()} == {
        "session-a": {"session-b", "session-c"},
        "session-b": {"session-a", "session-c"},
        "session-c": {"session-a", "session-b"},
    }
    talk.hangs_up("c")
    assert {name: session.partners for name, session in sessions.items()} == {
        "session-a": {"session-b"},
        "session-b": {"session-a"},
    }
    assert told(talk, "a") == told(talk, "b") == ["session-c"]


def test_whoever_takes_the_id_of_a_partner_that_left_is_no_partner() -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob", ext=1)
    talk.says("a", send("bob", "m1")).hangs_up("b")
    assert told(talk, "a") == ["session-b"]
    talk.joins("b2", "bob", id="session-b", ext=1).hangs_up("b2")
    assert told(talk, "a") == []


@pytest.mark.parametrize("seed_", range(20))
def test_who_is_told_is_who_could_see_it_or_exchanged_a_message(seed_: int) -> None:
    """Against the plain rule, over random groups, dialects and messages."""
    rng = random.Random(seed_)
    talk, kinds, friends = Conversation(), {}, set()
    for number in range(14):
        root = rng.choice([None, "r1", "r2"])
        lineage = {"rootSessionId": root, **({"parentSessionId": root} if rng.random() < 0.5 else {})} if root else {}
        has_ext = rng.random() < 0.5
        # Of one length: no id is the beginning of another.
        kinds[f"s{number:02}"] = (lineage, has_ext)
        talk.joins(f"s{number:02}", f"s{number:02}", **lineage, **({"ext": 1} if has_ext else {}))
    for number in range(40):
        sender, recipient = rng.sample(sorted(kinds), 2)
        talk.says(sender, send(f"session-{recipient}", f"m{number}"))
        if "delivered" in {frame["type"] for frame in talk.receives(sender)}:
            friends.add(frozenset((sender, recipient)))
    while len(kinds) > 1:
        gone = rng.choice(sorted(kinds))
        lineage, _ext = kinds.pop(gone)
        for other in kinds:
            talk.receives(other)
        talk.hangs_up(gone)
        for other, (theirs, has_ext) in kinds.items():
            are_mains = "parentSessionId" not in lineage and "parentSessionId" not in theirs
            is_visible = are_mains or (bool(lineage) and lineage["rootSessionId"] == theirs.get("rootSessionId"))
            is_told = is_visible and (not has_ext or frozenset((gone, other)) in friends)
            assert told(talk, other) == [f"session-{gone}"] * is_told, (seed_, gone, other)


def test_those_who_are_lost_are_not_told_of_one_another() -> None:
    talk = crowd(6).joins("b", "bob")
    lost = [f"c{number}" for number in range(5)]
    numbers = tuple(talk.number(conn) for conn in lost)
    talk.happens(ConnectionsLost((*numbers, 999)))
    for conn in lost:
        talk.happens(ConnectionClosed(talk.number(conn), "writing failed"))
    assert [told(talk, conn) for conn in lost] == [[]] * 5
    assert told(talk, "b") == told(talk, "c5") == [f"session-{conn}" for conn in lost]


def test_a_lost_connection_is_still_heard_to_its_end() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob")
    talk.happens(ConnectionsLost((talk.number("a"),)))
    talk.says("a", send("bob", "m1"))
    assert [frame["type"] for frame in talk.receives("b")] == ["message"]
    talk.says("a", {"type": "unregister"})
    assert told(talk, "b") == ["session-a"]


def test_a_lost_child_is_not_told_in_its_group() -> None:
    lineage = {"rootSessionId": "root-id1"}
    talk = Conversation().joins("m", "main", **lineage)
    for conn in ("a", "b", "c"):
        talk.joins(conn, conn, **lineage, parentSessionId="root-id1")
    talk.happens(ConnectionsLost((talk.number("a"), talk.number("b")))).hangs_up("b")
    assert [told(talk, conn) for conn in ("m", "a", "c")] == [["session-b"], [], ["session-b"]]
