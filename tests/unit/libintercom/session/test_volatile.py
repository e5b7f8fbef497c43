"""The stand-in for a journal: the same verbs, bounded."""

from __future__ import annotations

import pytest

from libintercom.session import volatile
from libintercom.session.entries import Entry
from libintercom.session.volatile import VolatileJournal


def entry(message_id: str, kind: str, number: int = 0) -> Entry:
    body = {"from": {}, "message": {"id": message_id}} if kind == "admitted" else {}
    return Entry(entry_id=f"{message_id}-{kind}-{number}", message_id=message_id, kind=kind, at_ms=number, body=body)


def test_what_was_appended_is_found_at_once() -> None:
    journal = VolatileJournal()
    heard: list[object] = []
    first, second = entry("m", "admitted"), entry("m", "handed")
    journal.append([first, second]).add_done(heard.append)
    assert heard == [None]
    standing = journal.find("m")
    assert standing is not None
    assert (standing.kind, standing.was_handed) == ("handed", True)
    assert journal.receipt_rows("m") == [first, second]
    assert journal.find("n") is None
    assert journal.receipt_rows("n") == []


def test_unfinished_are_in_order_of_admission() -> None:
    journal = VolatileJournal()
    for message_id in ("b", "a", "c"):
        journal.append([entry(message_id, "admitted")])
    journal.append([entry("a", "discarded")])
    assert [standing.message_id for standing in journal.unfinished()] == ["b", "c"]


def test_finished_messages_are_forgotten_and_unfinished_ones_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volatile, "MAX_MESSAGES", 50)
    journal = VolatileJournal()
    journal.append([entry("open", "admitted")])
    for number in range(300):
        journal.append([entry(f"m{number}", "admitted"), entry(f"m{number}", "discarded")])
    assert [standing.message_id for standing in journal.unfinished()] == ["open"]
    assert journal.find("m0") is None
    assert journal.find("m299") is not None
    assert sum(journal.find(f"m{number}") is not None for number in range(300)) <= 50
