"""Reads: one question to the owner, one fitting answer back, and every way it ends without one."""

from __future__ import annotations

from typing import Any

import pytest

from intercomd.core import reads
from libintercom.wire.frames import MAX_FRAME_BYTES
from libintercom.wire.reads import MAX_PAGE_UNITS
from tests.support.conversation import Conversation
from tests.support.covering import covers
from tests.support.sayings import register

ASTRAL = "\U0001f600"
RECEIPT = {
    "version": 1,
    "rootSessionId": "root-b",
    "messageId": "m1",
    "sender": {"peerId": "session-a", "rootSessionId": "root-a", "incarnation": "i"},
    "delivery": "steer",
    "receivedAt": 5,
    "checkpointEntryId": "e1",
    "textSha256": "ab" * 32,
    "queued": True,
    "nativeHandoff": True,
    "placementEntryId": None,
    "discarded": False,
}


def last(request_id: str = "r1", to: str = "session-b", **members: Any) -> dict[str, Any]:
    return {"type": "read", "requestId": request_id, "kind": "last", "to": to, **members}


def receipt(request_id: str = "r1", to: str = "session-b", **members: Any) -> dict[str, Any]:
    asked = {"rootSessionId": "root-b", "messageId": "m1", **members}
    return {"type": "read", "requestId": request_id, "kind": "receipt", "to": to, **asked}


def page(text: str = "hello", offset: int = 0, total: int | None = None, **members: Any) -> dict[str, Any]:
    end = offset + len(text.encode("utf-16-le", "surrogatepass")) // 2
    known = {"entryId": "e1", "offset": offset, "text": text, "total": end if total is None else total}
    return {**known, "nextOffset": None if known["total"] == end else end, **members}


def pair(**limits: Any) -> Conversation:
    talk = Conversation(**limits)
    talk.joins("a", "alice", ext=1, receiptReads=1).joins("b", "bob", ext=1, receiptReads=1, rootSessionId="root-b")
    talk.receives("a")
    return talk


def asked(talk: Conversation, frame: dict[str, Any], conn: str = "a", owner: str = "b") -> dict[str, Any]:
    """Say a read and return what its owner is asked."""
    (question,) = talk.says(conn, frame).receives(owner)
    assert question["type"] == "read_request"
    return dict(question)


def answers(talk: Conversation, token: str, conn: str = "b", kind: str = "last", **answer: Any) -> Conversation:
    return talk.says(conn, {"type": "read_response", "token": token, "kind": kind, **answer})


def code(talk: Conversation, conn: str = "a") -> str:
    (result,) = talk.receives(conn)
    assert result["type"] == "read_result"
    assert result["error"]["reason"]
    return str(result["error"]["code"])


def test_a_page_goes_from_its_owner_to_who_asked() -> None:
    talk = pair()
    question = asked(talk, last(to="bob"))
    token = question["token"]
    assert question == {"type": "read_request", "token": token, "kind": "last", "offset": 0, "limit": MAX_PAGE_UNITS}
    answers(talk, token, page=page())
    talk.expects("a", {"type": "read_result", "requestId": "r1", "kind": "last", "peerId": "session-b", "page": page()})
    assert not len(talk.router.reads)


def test_a_receipt_goes_from_its_owner_to_who_asked() -> None:
    talk = pair()
    question = asked(talk, receipt())
    members = {"rootSessionId": "root-b", "messageId": "m1"}
    assert question == {"type": "read_request", "token": question["token"], "kind": "receipt", **members}
    answers(talk, question["token"], kind="receipt", receipt=RECEIPT)
    told = {"type": "read_result", "requestId": "r1", "kind": "receipt", "peerId": "session-b", "receipt": RECEIPT}
    talk.expects("a", told)


@pytest.mark.parametrize("code_", ["unsupported", "empty_history", "entry_not_found", "invalid_offset"])
def test_an_owners_error_reaches_the_reader(code_: str) -> None:
    talk = pair()
    error = {"code": code_, "reason": "so it is"}
    answers(talk, asked(talk, last())["token"], error=error)
    talk.expects("a", {"type": "read_result", "requestId": "r1", "kind": "last", "peerId": "session-b", "error": error})


def test_offset_entry_and_limit_travel_and_a_limit_is_clamped() -> None:
    talk = pair()
    question = asked(talk, last(entryId="e7", offset=3, limit=10**6))
    assert (question["entryId"], question["offset"], question["limit"]) == ("e7", 3, MAX_PAGE_UNITS)
    answers(talk, question["token"], page=page("x", 3, entryId="e7"))
    assert talk.receives("a")[0]["page"]["text"] == "x"


MISFITS: list[dict[str, Any]] = [
    {},
    {"page": page(offset=1)},
    {"page": page(entryId="e2")},
    {"page": page("12345678901")},
    {"page": page(nextOffset=3)},
    {"page": page(total=3)},
    {"page": {"entryId": "e1"}},
    {"page": None},
    {"page": "text"},
    {"receipt": RECEIPT},
    {"page": page(), "error": {"code": "empty_history", "reason": "r"}},
    {"error": {"code": "not_found", "reason": "r"}},
    {"error": {"code": "receipt_not_found", "reason": "r"}},
    {"error": {"code": "empty_history", "reason": "a\nb"}},
    {"error": {"code": "empty_history", "reason": "x" * 1025}},
    {"error": {"code": "empty_history"}},
    {"kind": "receipt", "page": page()},
    {"kind": "tea", "page": page()},
]


@pytest.mark.parametrize("answer", MISFITS, ids=str)
def test_an_answer_that_does_not_fit_ends_the_read_and_not_its_owner(answer: dict[str, Any]) -> None:
    talk = pair()
    answers(talk, asked(talk, last(entryId="e1", limit=10))["token"], **answer)
    assert code(talk) == "invalid_response"
    talk.expects_open("a", "b")


@pytest.mark.parametrize(
    "change",
    [
        {"rootSessionId": "root-x"},
        {"messageId": "m2"},
        {"version": 2},
        {"textSha256": "AB" * 32},
        {"placementEntryId": 5},
        {"sender": {}},
    ],
)
def test_a_receipt_of_something_else_does_not_fit(change: dict[str, Any]) -> None:
    talk = pair()
    answers(talk, asked(talk, receipt())["token"], kind="receipt", receipt={**RECEIPT, **change})
    assert code(talk) == "invalid_response"


def test_a_fork_cannot_attest_what_another_root_holds() -> None:
    talk = pair()
    answer = {**RECEIPT, "rootSessionId": "root-old"}
    question = asked(talk, receipt(rootSessionId="root-old"))
    answers(talk, question["token"], kind="receipt", receipt=answer)
    assert code(talk) == "invalid_response"


def test_only_the_connection_that_was_asked_can_answer_and_only_once() -> None:
    talk = pair().joins("c", "carol", ext=1)
    token = asked(talk, last())["token"]
    answers(talk, token, conn="c", page=page()).expects_nothing("a").expects_open("c")
    answers(talk, token, conn="a", page=page()).expects_nothing("a").expects_open("a")
    answers(talk, "session-b", page=page()).expects_nothing("a")
    answers(talk, token, page=page())
    assert talk.receives("a")[0]["page"]
    answers(talk, token, page=page()).expects_nothing("a").expects_open("b")


def test_an_owner_that_says_nothing_times_out_and_its_late_answer_is_ignored() -> None:
    talk = pair()
    token = asked(talk, last())["token"]
    talk.after(4.9).expects_nothing("a").after(0.2)
    assert code(talk) == "timeout"
    answers(talk, token, page=page()).expects_nothing("a").expects_open("b")
    assert talk.router.reads._of_reader == talk.router.reads._of_owner == {}


@pytest.mark.parametrize("way", ["hangs_up", "unregister"])
def test_an_owner_that_leaves_is_offline(way: str) -> None:
    talk = pair()
    asked(talk, last())
    if way == "hangs_up":
        talk.hangs_up("b")
    else:
        talk.says("b", {"type": "unregister"})
    assert code(talk) == "peer_offline"
    assert "read" not in {str(key[0]) for key in set(talk.router.state.deadlines.keys())}


@pytest.mark.parametrize("way", ["hangs_up", "unregister"])
def test_a_reader_that_leaves_hears_nothing_whoever_comes_on_its_connection(way: str) -> None:
    talk = pair()
    token = asked(talk, last())["token"]
    if way == "hangs_up":
        talk.hangs_up("a")
    else:
        talk.says("a", {"type": "unregister"}, register("alice", id="session-a", ext=1))
        talk.receives("a")
    assert not len(talk.router.reads)
    answers(talk, token, page=page()).expects_open("b")
    if way == "unregister":
        talk.expects_nothing("a")


def test_a_token_tells_nothing_and_each_read_has_its_own() -> None:
    talk = pair()
    tokens = {asked(talk, last(f"r{number}"))["token"] for number in range(3)}
    assert len(tokens) == 3
    assert not any("r" in token or "session" in token for token in tokens)


def test_thirty_two_reads_of_one_session_may_be_open() -> None:
    talk = pair().joins("c", "carol", ext=1)
    tokens = [asked(talk, last(f"r{number}"))["token"] for number in range(32)]
    talk.says("a", last("r32"))
    assert code(talk) == "rate_limited"
    asked(talk, last(), "c")
    answers(talk, tokens[0], page=page())
    assert talk.receives("a")[0]["requestId"] == "r0"
    asked(talk, last("r33"))


@pytest.mark.parametrize(
    ("to", "wanted"),
    [
        ("nobody", "not_found"),
        ("", "not_found"),
        ("a\nb", "not_found"),
        ("twin", "ambiguous"),
        ("sess", "too_short"),
        ("session-a", "self_target"),
        ("ALICE", "self_target"),
    ],
)
def test_a_target_is_resolved_as_for_a_send(to: str, wanted: str) -> None:
    talk = pair().joins("c", "twin", ext=1).joins("d", "Twin", ext=1)
    talk.says("a", last(to=to))
    assert code(talk) == wanted
    talk.expects_nothing("b", "c", "d")


def test_a_hidden_target_is_byte_for_byte_an_unknown_one() -> None:
    talk = pair().joins("c", "kid", ext=1, rootSessionId="root-x", parentSessionId="root-x")
    for kind in (last, receipt):
        talk.says("a", kind("r1", "session-c"), kind("r1", "session-x"), kind("r1", "kid"), kind("r1", "kiddo"))
        told = talk.receives_bytes("a")
        assert [answer.replace(b"session-c", b"session-x") for answer in told[:1]] == told[1:2]
        assert told[2] == told[3].replace(b"kiddo", b"kid")
    talk.expects_nothing("c")


@pytest.mark.parametrize(
    ("reader", "owner", "kind", "is_asked"),
    [
        ({"ext": 1}, {"ext": 1}, last, True),
        ({"ext": 1}, {"receiptReads": 1}, last, False),
        ({"receiptReads": 1}, {"ext": 1}, last, False),
        ({"receiptReads": 1}, {"receiptReads": 1}, receipt, True),
        ({"receiptReads": 1}, {"ext": 1}, receipt, False),
        ({"ext": 1}, {"ext": 1, "receiptReads": 1}, receipt, False),
        ({"ext": 1, "receiptReads": 1}, {"ext": 1, "receiptReads": 2}, receipt, False),
        ({"ext": 1}, {}, last, False),
    ],
)
def test_each_kind_of_read_is_negotiated_by_both(reader: Any, owner: Any, kind: Any, is_asked: bool) -> None:
    talk = Conversation().joins("a", "alice", **reader).joins("b", "bob", **owner)
    talk.receives("a")
    talk.says("a", kind())
    assert [frame["type"] for frame in talk.receives("b")] == ["read_request"] * is_asked
    if not is_asked:
        assert code(talk) == "unsupported"


@pytest.mark.parametrize("frame", [last(), {"type": "read_response", "token": "t", "kind": "last"}])
def test_who_negotiated_no_reads_said_something_unknown(frame: dict[str, Any]) -> None:
    Conversation().joins("a", "alice", guardedDelivery=1).says("a", frame).expects_closed("a")


def test_a_session_whose_socket_takes_nothing_is_not_asked() -> None:
    talk = pair(stalled_after_s=1.0, recipient_bytes=2_000)
    talk.holds("b")
    for number in range(20):
        talk.says("a", last(f"r{number}"))
    told = {result["error"]["code"] for result in talk.receives("a")}
    assert told == {"rate_limited"}
    assert 0 < len(talk.router.reads) < 20
    talk.after(1.1).says("a", last("late"))
    assert code(talk) == "peer_offline"


@covers("9.4-size")
def test_the_largest_answer_fits_a_frame() -> None:
    """The longest request id that is answered, and a page of characters that take six bytes each."""
    talk = pair()
    request_id = "\x01" * 65_536
    question = asked(talk, last(request_id))
    answers(talk, question["token"], page=page("\x01" * MAX_PAGE_UNITS, entryId="e" * 1024))
    (payload,) = talk.receives_bytes("a")
    assert len(payload) < MAX_FRAME_BYTES
    talk.says("a", last(request_id, "t" * 900_000))
    assert len(talk.receives_bytes("a")[0]) < MAX_FRAME_BYTES


def test_a_page_may_be_one_character_that_needs_two_units() -> None:
    talk = pair()
    answers(talk, asked(talk, last(limit=1))["token"], page=page(ASTRAL, total=5))
    assert talk.receives("a")[0]["page"]["nextOffset"] == 2


def test_answers_are_charged_to_who_asked() -> None:
    talk = pair(input_burst_bytes=40_000, input_bytes_per_s=1.0)
    for number in range(2):
        answers(talk, asked(talk, last(f"r{number}"))["token"], page=page("x" * MAX_PAGE_UNITS))
        talk.receives("a")
    budget = talk.router.state.quotas.allowance(talk.number("a"), talk.now).input
    assert budget.level(talk.now) < 40_000 - 2 * MAX_PAGE_UNITS


def test_a_read_needs_a_session() -> None:
    talk = Conversation().joins("a", observer=1, ext=1).says("a", last()).expects_closed("a")
    assert not len(talk.router.reads)
    connection = reads.Reads(talk.router.state, lambda *_given: None)
    assert not len(connection)
