"""What a client may ask the broker about, in what words it is answered, and who may ask."""

from __future__ import annotations

from typing import Any

import pytest

from intercomd.core.queries import _STATS_BYTES
from libintercom.wire.frames import encode_json
from tests.support.conversation import Conversation
from tests.support.sayings import ask, register_sibling, replace, send, stats

LETTERS = {"type": "dead_letters", "requestId": "d1"}


def test_stats_name_every_counter_and_gauge() -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob", status="idle").connects("u")
    talk.says("a", ask("bob", "q1"), ask("bob", "q2", timeoutMs=0), replace("bob", "m1", "t"), send("nobody", "m2"))
    talk.holds("b").says("a", send("bob", "m3")).receives("a")
    (answer,) = talk.says("a", stats("s1")).receives("a")
    assert answer.keys() == {"type", "requestId", "counters", "gauges"}
    assert answer["counters"] == {
        "accepted": 4,
        "delivered": 2,
        "replaced": 0,
        "drained": 0,
        "fetched": 0,
        "dead_recipient_left": 0,
        "dead_expired": 0,
        "dead_discarded": 0,
        "dead_store_failed": 0,
        "refused_not_found": 1,
        "asks": 2,
    }
    gauges = answer["gauges"]
    assert gauges.pop("heldBytes") > 100
    assert gauges.pop("stagedBytes") > 100
    assert gauges == {
        "buffered": 1,
        "staged": 1,
        "parked": 0,
        "kept": 0,
        "sessions": 2,
        "connections": 3,
        "openAsks": 2,
        "waitingAsks": 1,
        "deadLetters": 0,
        "parkedChildren": 0,
        "keptAsks": 0,
        "unstored": 0,
    }


def test_stats_are_charged_about_what_they_weigh() -> None:
    talk = Conversation()
    assert len(encode_json(talk.router.queries.stats())) < _STATS_BYTES


@pytest.mark.parametrize("frame", [stats(), LETTERS])
def test_only_those_who_negotiated_it_may_ask(frame: dict[str, Any]) -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob").says("s", register_sibling("sib"))
    talk.says("a", frame).expects_open("a")
    talk.says("b", frame).says("s", frame).expects_closed("b", "s")


def lossy() -> Conversation:
    """Two messages of a to b are lost, and one of c."""
    talk = Conversation().joins("a", "alice", ext=1).joins("c", "carol", ext=1).joins("b", "bob").holds("b")
    talk.says("a", send("bob", "m1"), ask("bob", "m2")).says("c", send("bob", "m3")).hangs_up("b")
    for conn in "ac":
        talk.receives(conn)
    return talk


def ids(talk: Conversation, conn: str, **members: Any) -> list[str]:
    (answer,) = talk.says(conn, {**LETTERS, **members}).receives(conn)
    assert (answer["type"], answer["requestId"]) == ("dead_letters_result", "d1")
    return [letter["messageId"] for letter in answer["letters"]]


def test_everybody_is_told_of_ones_own_letters() -> None:
    talk = lossy()
    assert (ids(talk, "a"), ids(talk, "c")) == (["m1", "m2"], ["m3"])
    talk.joins("d", "dan", ext=1)
    assert ids(talk, "d") == []


def test_a_letter_tells_all_but_the_message() -> None:
    talk = lossy()
    (answer,) = talk.says("c", LETTERS).receives("c")
    (letter,) = answer["letters"]
    assert letter == {
        "id": letter["id"],
        "senderId": "session-c",
        "recipientId": "session-b",
        "messageId": "m3",
        "reason": "recipient_left",
        "atMs": talk.at_ms,
    }


def test_letters_since_a_time() -> None:
    talk = lossy()
    at_ms = talk.at_ms
    assert ids(talk, "a", sinceMs=at_ms) == ["m1", "m2"]
    assert ids(talk, "a", sinceMs=at_ms + 1) == []
    assert ids(talk, "a", sinceMs=-5.5) == ["m1", "m2"]


def test_a_sender_that_came_back_still_has_its_letters() -> None:
    talk = lossy().hangs_up("a").joins("a2", "alice", id="session-a", ext=1)
    assert ids(talk, "a2") == ["m1", "m2"]


@pytest.mark.parametrize("lineage", [{"rootSessionId": "R1"}, {"rootSessionId": "R1", "parentSessionId": "R1"}])
def test_an_id_that_came_back_with_another_lineage_has_none(lineage: dict[str, str]) -> None:
    talk = lossy().hangs_up("a").joins("a2", "alice", id="session-a", ext=1, **lineage)
    assert ids(talk, "a2") == []
