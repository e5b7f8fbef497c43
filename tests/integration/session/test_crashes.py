"""Killed at each fault point of a session, then started again: nothing lost, nothing twice, nothing claimed.

The sender's word is the reference: what the broker accepted for a connected session is what must be accounted for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session.faults import POINTS
from libintercom.session.journal import Journal
from libintercom.session.receipts import make_receipt
from libintercom.wire.reads import NativeReceipt
from libintercom.wire.record import dump_record
from tests.support.sessions import ActorDied
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from libintercom.session.blocking import Session
    from tests.support.daemon import Daemon
    from tests.support.sessions import SessionActor, Site

SESSION_POINTS = [point for point in POINTS if point.startswith("session.")]
ASKS = 3
# The second time differs where the first question is still open, or answered.
LATER = [("session.arrived", 2), ("session.stored", 2), ("session.stored", 5), ("session.given", 2)]


class Lived:
    """What was seen of one life: the questions that reached it, that it took, that it answered."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.taken: list[str] = []
        self.answered: list[str] = []


def live(actor: SessionActor, asker: Session) -> Lived:
    """One life until it died: it is asked, takes and replies, three times, then asks and leaves."""
    lived = Lived()
    try:
        for number in range(ASKS):
            sent = asker.send("b", f"ask {number}", message_id=f"ask-{number}", expects_reply=True, delivery="steer")
            assert sent.is_accepted or sent.code in ("not_found", "recipient_left")
            lived.sent += [sent.message_id] if sent.is_accepted else []
            lived.taken.append(actor.tell("take")["id"])
            if actor.tell("reply", "yes", lived.taken[-1]) == "delivered":
                lived.answered.append(lived.taken[-1])
        actor.begin("ask", "a", "and you?")
        question = asker.next_inbound(10.0)
        while question is not None and not question.message.is_ask:
            question = asker.next_inbound(10.0)
        asker.reply(question, "fine")
        actor.read()
        actor.tell("leave")
    except ActorDied:
        return lived
    raise AssertionError("it lived on")


@pytest.mark.parametrize(("point", "count"), [*((point, 1) for point in SESSION_POINTS), *LATER])
def test_killed_at(place: Site, broker: Daemon, point: str, count: int) -> None:
    with place.join_blocking("a", journal=False) as asker:
        with place.actor("b", "", point, str(count)) as actor:
            lived = live(actor, asker)
        wait_until(lambda: "b" not in [row.name for row in asker.list_sessions().rows], "the killed session to be gone")
        receipts = _receipts(place)
        with place.actor("b") as second:
            offered = _drain(second, asker)
            pending = [view["messageId"] for view in second.tell("pending")]
            # The kernel had a last one for it, which it did not read any more.
            assert len(set(lived.sent) - receipts.keys()) <= 1, "nothing knows of it"
            seen = [*lived.taken, *offered]
            assert len(seen) == len(set(seen)), "placed twice"
            for message_id, receipt in receipts.items():
                is_seen = message_id in seen
                # Placed on record and never seen: only the one that was being given.
                assert is_seen or receipt["placementEntryId"], f"{message_id} was lost"
                assert not (receipt["placementEntryId"] and message_id in offered), "known placed, placed again"
            for message_id in lived.answered:
                assert message_id not in pending, "an answered question was revived"
                assert second.tell("reply", "again", message_id) == "not_sent"
            lost = [message_id for message_id in receipts if message_id not in seen]
            assert len(lost) <= 1


def _receipts(place: Site) -> dict[str, Any]:
    """What the journal knows of each question."""
    known: dict[str, Any] = {}
    with Journal.open("native-b", folder=place.places.journals) as journal:
        for number in range(ASKS):
            message_id = f"ask-{number}"
            receipt = make_receipt(
                journal.receipt_rows(message_id),
                root_session_id="native-b",
                message_id=message_id,
                session="native-b",
                root="native-b",
            )
            if isinstance(receipt, NativeReceipt):
                known[message_id] = dump_record(receipt)
    return known


def _drain(actor: SessionActor, asker: Session) -> list[str]:
    """Everything that a fresh start is offered, up to a message sent now."""
    asker.send("b", "the last", message_id="last")
    offered: list[str] = []
    while True:
        arrival = actor.tell("take")
        if arrival["id"] == "last":
            return offered
        offered.append(arrival["id"])
