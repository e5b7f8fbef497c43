"""The writer: one transaction for what waits, bounded, and nobody waits for a thread that is gone."""

from __future__ import annotations

import threading

import pytest

from libintercom.session import faults
from libintercom.session.journal import Journal, JournalFailed
from tests.support.journaled import WAIT_S, admitted


def batches(folder: str, count: int) -> int:
    """Transactions that were needed for ``count`` appends that all waited for the first one."""
    gate, heard = threading.Event(), []

    def hook(name: str) -> None:
        if name == "journal.begun" and not heard:
            gate.wait(WAIT_S)
        heard.append(name)

    with Journal.open("ann", folder=folder) as opened:
        faults.set_hook(hook)
        pendings = [opened.append([admitted(f"m{number}")]) for number in range(count)]
        gate.set()
        pendings[-1].wait(WAIT_S)
        faults.set_hook(None)
    return heard.count("journal.committed")


def test_what_waits_goes_into_one_transaction(folder: str) -> None:
    # The first append alone, then everything that came meanwhile; it may also have been in time for the first.
    assert batches(folder, 100) <= 2


def test_a_transaction_has_a_bound(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libintercom.session.journal.writer.BATCH_LIMIT", 10)
    assert 10 <= batches(folder, 100) <= 11


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_breaks_ends_the_journal_and_leaves_nobody_waiting(folder: str) -> None:
    gate = threading.Event()
    opened = Journal.open("ann", folder=folder)
    faults.set_hook(lambda name: gate.wait(WAIT_S) if name == "journal.begun" else None)
    first = opened.append([admitted("m1")])
    first.add_done(lambda _failure: 1 / 0)
    second = opened.append([admitted("m2")])
    gate.set()
    with pytest.raises(JournalFailed, match="ended by a bug"):
        second.wait(WAIT_S)
    assert first.is_settled
    with pytest.raises(JournalFailed):
        opened.append([admitted("m3")]).wait(WAIT_S)
    faults.set_hook(None)
    opened.close()
    with Journal.open("ann", folder=folder) as again:
        assert again.find("m1") is not None
