"""Receipts from one message's entries."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.session.entries import Entry
from libintercom.session.hashes import text_sha256
from libintercom.session.receipts import make_receipt
from libintercom.wire.reads import NativeReceipt, ReadError
from libintercom.wire.record import dump_record
from tests.support.inbox_rig import NOW_MS, SESSION, InboxRig, inbound

GUARD = {"rootSessionId": "root-1", "peerId": "pi-me", "incarnation": "i1", "applicationGuard": "rev-1"}
HINT = {"tool": "publish", "commandId": "0a1b2c3d-0000-4000-8000-00000000000a", "commandFingerprint": "ab" * 32}
TEXT = "one\r\ntwo \u00e9 e\u0301 😀"


def rows(*kinds: str, **members: Any) -> list[Entry]:
    raw = inbound("m1", TEXT, delivery="steer", **members).raw
    raw["from"] = {**raw["from"], "rootSessionId": "root-9", "incarnation": "i9"}
    body = {**raw, "receivedAt": NOW_MS, "textSha256": text_sha256(TEXT), "session": SESSION, "generation": "g1"}
    bodies = {"admitted": body, "placed": {"placement": "h1"}, "discarded": {"reason": "old"}}
    return [
        Entry(entry_id=f"e{number}", message_id="m1", kind=kind, at_ms=NOW_MS, body=bodies.get(kind, {}))
        for number, kind in enumerate(kinds)
    ]


def receipt_of(entries: list[Entry], **asked: str) -> Any:
    wanted = {"root_session_id": "root-1", "message_id": "m1", "session": SESSION, "root": "root-1", **asked}
    return make_receipt(entries, **wanted)


def test_every_field():
    receipt = receipt_of(
        rows("admitted", "queued", "handed", "placed", guard=GUARD, replyHint=HINT, expectsReply=False)
    )
    assert dump_record(receipt) == {
        "version": 1,
        "rootSessionId": "root-1",
        "messageId": "m1",
        "sender": {"peerId": "pi-ann00001", "rootSessionId": "root-9", "incarnation": "i9"},
        "delivery": "steer",
        "receivedAt": NOW_MS,
        "checkpointEntryId": "e0",
        "guard": GUARD,
        "replyHint": HINT,
        "textSha256": text_sha256(TEXT),
        "queued": True,
        "nativeHandoff": True,
        "placementEntryId": "h1",
        "discarded": False,
    }
    assert receipt.violation() == ""


@pytest.mark.parametrize(
    ("kinds", "facts"),
    [
        (("admitted",), (False, False, None, False)),
        (("admitted", "queued"), (True, False, None, False)),
        (("admitted", "handed"), (False, True, None, False)),
        (("admitted", "handed", "queued"), (True, True, None, False)),
        (("admitted", "queued", "discarded"), (True, False, None, True)),
        (("admitted", "handed", "uncertain", "discarded", "placed"), (False, True, "h1", True)),
        (("admitted", "handed", "placed", "consumed", "replied"), (False, True, "h1", False)),
    ],
)
def test_facts_stay_apart(kinds, facts):
    told = receipt_of(rows(*kinds))
    assert (told.queued, told.native_handoff, told.placement_entry_id, told.discarded) == facts


def test_what_was_not_recorded_is_left_out():
    entries = rows("admitted")
    del entries[0].body["from"]["rootSessionId"], entries[0].body["from"]["incarnation"]
    assert dump_record(receipt_of(entries))["sender"] == {"peerId": "pi-ann00001"}
    assert "guard" not in dump_record(receipt_of(entries))


def test_another_root_is_unavailable():
    told = receipt_of(rows("admitted"), root_session_id="root-2")
    assert told.code == "publication_unavailable"


def test_a_fork_that_copied_the_history_attests_nothing():
    told = receipt_of(rows("admitted", "handed", "placed"), session="forked", root="root-1")
    assert told.code == "receipt_not_found"


@pytest.mark.parametrize("entries", [[], rows("admitted")[:0], rows("replied")])
def test_no_checkpoint_no_receipt(entries):
    assert receipt_of(entries).code == "receipt_not_found"


def test_entries_of_another_message_are_not_taken():
    assert receipt_of(rows("admitted"), message_id="m2").code == "receipt_not_found"


@pytest.mark.parametrize("member", ["from", "message", "receivedAt", "textSha256"])
def test_a_damaged_checkpoint_is_none(member):
    (entry,) = rows("admitted")
    del entry.body[member]
    told = receipt_of([entry])
    assert isinstance(told, ReadError)
    assert told.code == "receipt_not_found"


def test_what_the_inbox_writes_makes_a_receipt():
    rig = InboxRig()
    rig.arrives("m1", TEXT)
    told = make_receipt(rig.entries, root_session_id="root-1", message_id="m1", session=SESSION, root="root-1")
    assert isinstance(told, NativeReceipt)
    assert (told.text_sha256, told.native_handoff, told.delivery) == (text_sha256(TEXT), True, None)
