"""What a row shows to whom, and that its cached bytes never show what was."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from intercomd.core.rows import RowBytes
from libintercom.wire.messages import Registration, Row
from libintercom.wire.record import parse_record
from tests.support.conversation import Conversation
from tests.support.sayings import list_sessions, presence, register_sibling, send, session

AT_MS = 1_700_000_000_000
FULL = {
    "name": "alice",
    "projectId": "ab" * 32,
    "status": "thinking",
    "pendingAsks": 2,
    "acceptsAsks": False,
    "runtimeFallbackAlias": True,
    "contextPct": 12.5,
    "contextTokens": 7,
    "contextWindow": 9,
    "tmuxPane": "%1",
}
LINEAGE = {"rootSessionId": "root-1", "parentSessionId": "root-1", "incarnation": "i1", "host": {"steer": True}}


def row(at_ms: int = AT_MS, **members: Any) -> RowBytes:
    return RowBytes("peer-0001", parse_record(Registration, session(**members)), "epoch-1", at_ms)


def shown(made: RowBytes, *, is_extended: bool = True) -> dict[str, Any]:
    value = json.loads(made.render(is_extended=is_extended))
    assert parse_record(Row, value).id == "peer-0001"
    return value  # type: ignore[no-any-return]


def test_the_smallest_row_has_all_that_older_clients_require() -> None:
    assert shown(row(), is_extended=False) == {
        "id": "peer-0001",
        "cwd": "/home/pi",
        "model": "test-model",
        "pid": 0,
        "startedAt": AT_MS,
        "endpointEpoch": "epoch-1",
        "trustedLocal": True,
        "lastSeen": AT_MS,
        "lastActivity": AT_MS,
        "lastIntercomActivity": 0,
    }


def test_a_full_row_shows_what_was_registered() -> None:
    value = shown(row(**FULL, **LINEAGE))
    assert {name: value[name] for name in (*FULL, *LINEAGE)} == {**FULL, **LINEAGE}


def test_only_extended_rows_show_lineage_incarnation_host_and_stalling() -> None:
    made = row(**FULL, **LINEAGE)
    made.stall(is_stalled=True)
    assert not {*LINEAGE, "stalled"} & shown(made, is_extended=False).keys()
    assert {*LINEAGE, "stalled"} <= shown(made).keys()


def test_no_member_is_ever_null() -> None:
    for made in (row(), row(**FULL, **LINEAGE), row(contextPct=1)):
        for is_extended in (True, False):
            assert None not in shown(made, is_extended=is_extended).values()


def test_times_that_were_given_are_kept_zero_included() -> None:
    value = shown(row(lastSeen=0, startedAt=0, lastIntercomActivity=5, lastActivity=3, pid=0))
    assert (value["lastSeen"], value["startedAt"], value["lastIntercomActivity"]) == (0, 0, 5)


def test_a_row_without_times_takes_the_brokers() -> None:
    assert shown(row(at_ms=77))["startedAt"] == 77


CHANGES = {
    "seen": lambda made: made.seen(AT_MS + 1),
    "exchanged": lambda made: made.exchanged(AT_MS + 2),
    "stall": lambda made: made.stall(is_stalled=True),
    "recover": lambda made: made.stall(is_stalled=False),
    "change": lambda made: made.change(parse_record(Registration, session(name="renamed"))),
}


def test_every_short_history_shows_what_an_uncached_row_shows() -> None:
    for history in itertools.product(CHANGES, repeat=3):
        cached, fresh = row(name="alice", **LINEAGE), row(name="alice", **LINEAGE)
        for change in history:
            for is_extended in (True, False):
                cached.render(is_extended=is_extended)
            CHANGES[change](cached)
            CHANGES[change](fresh)
        assert shown(cached) == shown(fresh), history
        assert shown(cached, is_extended=False) == shown(fresh, is_extended=False), history


def test_a_rows_size_is_that_of_its_largest_form() -> None:
    """A row is judged once; it must not outgrow its limit when times and stalling come to it."""
    made = row(at_ms=0, **FULL, **LINEAGE, lastSeen=0)
    judged = made.size_bytes()
    made.exchanged(AT_MS)
    made.stall(is_stalled=True)
    assert len(made.render(is_extended=True)) <= judged


@pytest.mark.parametrize("text", ['"\\', "\ud83d", "\U0001f600", "ünï"])
def test_any_label_survives(text: str) -> None:
    assert shown(row(name=text))["name"] == text


# -- in conversation -----------------------------------------------------------------------------------------


def row_of(talk: Conversation, name: str, viewer: str = "b") -> dict[str, Any]:
    (answer,) = talk.says(viewer, list_sessions()).receives(viewer)
    return next(found for found in answer["sessions"] if found.get("name") == name)


def test_the_brokers_word_on_activity_is_not_undone_by_an_unrelated_presence() -> None:
    """A time given at registration must not come back with every later presence."""
    talk = Conversation().joins("a", "alice", lastIntercomActivity=1_000).joins("b", "bob")
    assert row_of(talk, "alice")["lastIntercomActivity"] == 1_000
    talk.after(5).says("b", send("alice", "m1")).receives("b")
    at_ms = talk.at_ms
    talk.says("a", presence(status="thinking"))
    assert row_of(talk, "alice")["lastIntercomActivity"] == at_ms
    talk.says("a", presence(lastIntercomActivity=at_ms + 7))
    talk.says("a", presence(status="idle"))
    assert row_of(talk, "alice")["lastIntercomActivity"] == at_ms + 7
    talk.says("b", send("alice", "m2")).receives("b")
    talk.says("a", presence(pendingAsks=1))
    assert row_of(talk, "alice")["lastIntercomActivity"] == at_ms


def test_a_client_may_reset_its_activity_to_none() -> None:
    talk = Conversation().joins("a", "alice", lastIntercomActivity=1_000).joins("b", "bob")
    talk.says("a", presence(lastIntercomActivity=0))
    assert row_of(talk, "alice")["lastIntercomActivity"] == 0


def test_every_frame_refreshes_last_seen() -> None:
    talk = Conversation().joins("a", "alice", lastSeen=5).joins("b", "bob")
    assert row_of(talk, "alice")["lastSeen"] == 5
    talk.after(3).says("a", {"type": "cancel_ask", "messageId": "x"})
    assert row_of(talk, "alice")["lastSeen"] == talk.at_ms
    talk.after(3)
    assert row_of(talk, "alice")["lastSeen"] == talk.at_ms - 3_000


def test_a_sibling_may_clear_its_usage() -> None:
    talk = Conversation().joins("b", "bob")
    talk.says("a", register_sibling("alice", contextPct=50, contextTokens=5))
    assert row_of(talk, "alice")["contextPct"] == 50
    talk.says("a", presence(contextWindow=9)).says("a", {"type": "presence", "contextPct": None})
    found = row_of(talk, "alice")
    assert "contextPct" not in found
    assert (found["contextTokens"], found["contextWindow"]) == (5, 9)


def test_from_is_the_row_for_the_reader_it_goes_to() -> None:
    talk = (
        Conversation().joins("a", "alice", ext=1, rootSessionId="root-1").joins("b", "bob").joins("c", "carol", ext=1)
    )
    talk.says("a", send("bob", "m1"), send("carol", "m2"))
    (plain,), (extended,) = talk.receives("b"), talk.receives("c")
    assert "rootSessionId" not in plain["from"]
    assert extended["from"]["rootSessionId"] == "root-1"
