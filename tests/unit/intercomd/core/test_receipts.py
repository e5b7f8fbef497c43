"""A sibling's receipts: which way they go, and every way in which they go nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from intercomd.core import events
from intercomd.core.receipts import _MAX_ROUTES
from tests.support.conversation import Conversation
from tests.support.sayings import TIMESTAMP_MS, register, register_sibling, send


def receipt(message_id: str, **members: Any) -> dict[str, Any]:
    told = {"messageId": message_id, "status": "injected", "timestamp": TIMESTAMP_MS, **members}
    return {"type": "message_receipt", "receipt": told}


def siblings(*conns: str, **members: Any) -> Conversation:
    talk = Conversation()
    for conn in conns:
        talk.says(conn, register_sibling(conn, id=f"sib-{conn}", **members)).receives(conn)
    return talk


def sent(*conns: str) -> Conversation:
    """A message m1 from the first sibling to the second."""
    talk = siblings(*conns).says(conns[0], send(conns[1], "m1"))
    for conn in conns:
        talk.receives(conn)
    return talk


def test_a_receipt_goes_to_the_sender_of_its_message() -> None:
    talk = sent("a", "b", "c").says("b", receipt("m1", detail="next turn"))
    told = {"messageId": "m1", "status": "injected", "timestamp": TIMESTAMP_MS, "detail": "next turn"}
    talk.expects("a", {"type": "message_receipt", "from": {"id": "sib-b", "name": "b", "...": True}, "receipt": told})
    talk.expects_nothing()


@pytest.mark.parametrize(("conn", "message_id"), [("c", "m1"), ("a", "m1"), ("b", "m2")])
def test_a_receipt_of_somebody_else_or_for_something_else_is_ignored(conn: str, message_id: str) -> None:
    sent("a", "b", "c").says(conn, receipt(message_id)).expects_open("a", "b", "c").expects_nothing()


def test_a_route_ends_after_an_hour() -> None:
    talk = sent("a", "b").after(3_599.9).says("b", receipt("m1"))
    assert len(talk.receives("a")) == 1
    talk.after(0.1).says("b", receipt("m1")).expects_nothing()


def test_a_sender_that_left_hears_nothing() -> None:
    sent("a", "b").hangs_up("a").says("b", receipt("m1")).expects_open("b")


def test_older_clients_are_never_sent_receipts() -> None:
    talk = siblings("b").joins("g", "gina").says("g", send("b", "m1"))
    talk.receives("g")
    talk.says("b", receipt("m1")).expects_nothing("g").expects_open("b")
    talk = siblings("b").joins("g", "gina").says("b", send("gina", "m1"))
    talk.receives("b")
    talk.says("g", receipt("m1")).expects_nothing("b").expects_open("g")


def test_an_id_that_came_back_in_another_group_learns_nothing() -> None:
    lineage = {"rootSessionId": "R1", "parentSessionId": "R1"}
    talk = siblings("a", "b", **lineage).says("a", send("b", "m1")).hangs_up("a")
    talk.says("x", register_sibling("stranger", id="sib-a")).receives("x")
    talk.says("b", receipt("m1")).expects_nothing("x")


def test_an_id_that_came_back_as_an_older_client_is_not_sent_one() -> None:
    talk = sent("a", "b").hangs_up("a")
    talk.says("x", register("x", id="sib-a12345")).receives("x")
    talk = siblings("b").says("aa", register_sibling("aa", id="sib-a12345"))
    talk.says("aa", send("b", "m1")).hangs_up("aa").says("x", register("x", id="sib-a12345")).receives("x")
    talk.says("b", receipt("m1")).expects_nothing("x").expects_open("x")


def test_receipts_do_not_pile_up_before_a_sender_that_does_not_read() -> None:
    talk = sent("a", "b").holds("a")
    for _round in range(3):
        talk.says("b", receipt("m1", detail="x" * 1_000))
    waiting = talk.listener.sockets[talk.number("a")].waiting_bytes
    assert waiting > 3_000
    talk.happens(events.OutputProgressed(talk.number("a"), 5 * 1024 * 1024, has_moved=False))
    talk.says("b", receipt("m1")).expects_open("b")
    assert talk.listener.sockets[talk.number("a")].waiting_bytes == waiting


def test_a_receipt_too_large_to_pass_on_is_ignored() -> None:
    talk = sent("a", "b").says("b", receipt("m1", detail="x" * 1_048_300))
    talk.expects_nothing("a").expects_open("a", "b")


def test_routes_are_bounded() -> None:
    talk = siblings("a", "b")
    for number in range(_MAX_ROUTES + 10):
        talk.router.receipts.remember(*_sessions(talk), f"m{number}")
    assert len(talk.router.receipts._routes) == _MAX_ROUTES
    talk.says("b", receipt("m0")).expects_nothing("a")
    talk.says("b", receipt("m10"))
    assert len(talk.receives("a")) == 1


def _sessions(talk: Conversation) -> tuple[Any, Any]:
    found = talk.router.state.roster.sessions
    return found["sib-a"], found["sib-b"]
