"""What stands in for a journal, held to the journal's own contract; and the bound of memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session import volatile
from libintercom.session.entries import Entry
from libintercom.session.journal import Journal
from libintercom.session.volatile import VolatileJournal
from tests.support.held_ledger import Full, HeldLedger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 10.0


def entry(message_id: str, kind: str, number: int = 0) -> Entry:
    body = {"from": {}, "message": {"id": message_id}} if kind == "admitted" else {}
    return Entry(entry_id=f"{message_id}-{kind}-{number}", message_id=message_id, kind=kind, at_ms=number, body=body)


@pytest.fixture(params=["journal", "volatile", "held"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    makers = {
        "journal": lambda: Journal.open("native", folder=str(tmp_path / "journals")),
        "volatile": VolatileJournal,
        "held": HeldLedger,
    }
    made: Any = makers[request.param]()
    yield made
    made.close()


def store(ledger: Any, *entries: Entry) -> list[object]:
    """Append, and wait for the word."""
    heard: list[object] = []
    done = threading.Event()

    def hear(failure: object) -> None:
        heard.append(failure)
        done.set()

    ledger.append(entries).add_done(hear)
    assert done.wait(DEADLINE_S)
    return heard


def test_what_was_appended_is_found_and_settles_once(ledger: Any) -> None:
    first, second = entry("m", "admitted"), entry("m", "handed")
    assert store(ledger, first, second) == [None]
    standing = ledger.find("m")
    assert (standing.kind, standing.was_handed) == ("handed", True)
    assert ledger.receipt_rows("m") == [first, second]
    assert ledger.find("n") is None
    assert ledger.receipt_rows("n") == []


def test_unfinished_are_in_order_of_admission(ledger: Any) -> None:
    for message_id in ("b", "a", "c"):
        store(ledger, entry(message_id, "admitted"))
    store(ledger, entry("a", "discarded"))
    assert [standing.message_id for standing in ledger.unfinished()] == ["b", "c"]


def test_appends_end_in_order(ledger: Any) -> None:
    ended: list[int] = []
    pendings = [ledger.append([entry(f"m{number}", "admitted", number)]) for number in range(20)]
    for number, pending in enumerate(pendings):
        pending.add_done(lambda _failure, number=number: ended.append(number))
    store(ledger, entry("last", "admitted"))
    assert ended == list(range(20))


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


def test_a_held_append_waits_and_can_fail() -> None:
    ledger, heard = HeldLedger(is_holding=True), list[object]()
    ledger.append([entry("m", "admitted")]).add_done(heard.append)
    assert (heard, ledger.find("m")) == ([], None)
    ledger.failure = Full()
    ledger.release()
    assert (heard, ledger.find("m")) == ([ledger.failure], None)
