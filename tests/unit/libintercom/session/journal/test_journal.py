"""An open journal: order, what is visible when, what comes back after it was closed, and what fails how."""

from __future__ import annotations

import os
import sqlite3
import threading
import time

import pytest

from libintercom.session import faults
from libintercom.session.journal import Journal, JournalBusy, JournalFailed, Retention, journal, store
from libintercom.session.journal.memory import Memory
from tests.support.journaled import FOREVER, WAIT_S, admitted, noted, whole_life


def test_what_was_appended_is_seen_before_it_is_stored(folder: str) -> None:
    gate = threading.Event()
    opened = Journal.open("ann", folder=folder, limits=FOREVER)
    faults.set_hook(lambda name: gate.wait(WAIT_S) if name == "journal.begun" else None)
    pending = opened.append([admitted("m1", is_ask=True), noted("m1", "queued")])
    assert not pending.is_settled
    assert opened.backlog == 2
    found = opened.find("m1")
    assert found is not None
    assert (found.kind, found.is_open_ask, found.order) == ("queued", True, 1)
    assert [standing.message_id for standing in opened.unfinished()] == ["m1"]
    # Nobody is told of what a crash may yet take back.
    assert opened.receipt_rows("m1") == []
    gate.set()
    pending.wait(WAIT_S)
    assert opened.backlog == 0
    assert [entry.kind for entry in opened.receipt_rows("m1")] == ["admitted", "queued"]
    opened.close()


def test_what_was_stored_is_there_after_reopening(folder: str) -> None:
    text = "a\ud800b\r\n\x00\u2028é"
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        first = admitted("m1", text, is_ask=True)
        opened.append([first])
        opened.append([noted("m1", "queued"), noted("m1", "handed"), noted("m1", "placed", placement="host-7")])
        opened.append(whole_life("m2"))
        opened.append([admitted("m3")])
        before = [opened.find(name) for name in ("m1", "m2", "m3")]
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        assert [again.find(name) for name in ("m1", "m2", "m3")] == before
        found = again.find("m1")
        assert found is not None
        assert found.admitted == first
        assert found.placement == "host-7"
        assert [standing.message_id for standing in again.unfinished()] == ["m1", "m3"]
        assert [entry.kind for entry in again.receipt_rows("m1")] == ["admitted", "queued", "handed", "placed"]
        again.append([noted("m1", "replied", by="m9")]).wait(WAIT_S)
        assert [standing.message_id for standing in again.unfinished()] == ["m3"]
        assert again.set_aside is None


def test_an_unknown_message_is_none_and_has_no_receipt(journal: Journal) -> None:
    assert journal.find("nobody") is None
    assert journal.receipt_rows("nobody") == []
    assert list(journal.unfinished()) == []


def test_nothing_appended_is_settled_at_once(journal: Journal) -> None:
    assert journal.append([]).is_settled


def test_settling_keeps_the_order_of_appending(journal: Journal) -> None:
    settled: list[int] = []
    for number in range(50):
        journal.append([admitted(f"m{number}")]).add_done(lambda _failure, number=number: settled.append(number))
    journal.append([noted("m0", "queued")]).wait(WAIT_S)
    assert settled == list(range(50))


def test_appends_of_many_threads_keep_each_threads_order(journal: Journal) -> None:
    def write(name: str) -> None:
        for number in range(40):
            journal.append([admitted(f"{name}-{number}")])

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    order = [standing.message_id for standing in journal.unfinished()]
    for name in "abc":
        assert [found for found in order if found.startswith(name)] == [f"{name}-{number}" for number in range(40)]


def test_unfinished_is_read_in_pages_and_goes_on_while_others_append(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libintercom.session.journal.journal._PAGE", 3)
    for number in range(10):
        journal.append([admitted(f"m{number}")]).wait(WAIT_S)
    journal._writer.close()
    journal._writer.fold()
    assert journal._memory.tail == {}
    walk = journal.unfinished()
    assert [next(walk).message_id for _number in range(2)] == ["m0", "m1"]
    assert [standing.message_id for standing in walk] == [f"m{number}" for number in range(2, 10)]


def test_a_message_forgotten_by_memory_is_read_from_disk(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "Memory", lambda stored: Memory(stored, limit=2))
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        for number in range(6):
            opened.append([admitted(f"m{number}"), noted(f"m{number}", "queued")]).wait(WAIT_S)
        assert len(opened._memory.recent) <= 2
        opened.append([noted("m0", "handed")])
        found = opened.find("m0")
        assert found is not None
        assert (found.kind, found.order) == ("handed", 1)


def test_one_process_has_a_journal_once(journal: Journal, folder: str) -> None:
    with pytest.raises(JournalBusy) as refused:
        Journal.open("ann", folder=folder, limits=FOREVER)
    assert refused.value.holder_pid == os.getpid()


def test_two_native_sessions_share_nothing(journal: Journal, folder: str) -> None:
    journal.append([admitted("m1")]).wait(WAIT_S)
    with Journal.open("a fork of ann", folder=folder) as other:
        assert other.find("m1") is None


def test_a_failed_commit_settles_everything_and_stores_nothing_more(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Journal.open("ann", folder=folder, limits=FOREVER)
    opened.append([admitted("m1")]).wait(WAIT_S)

    def refuse(*_given: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store, "insert_entries", refuse)
    failed, later = opened.append([admitted("m2")]), opened.append([admitted("m3")])
    with pytest.raises(JournalFailed, match="the disk reports errors") as failure:
        failed.wait(WAIT_S)
    with pytest.raises(JournalFailed):
        later.wait(WAIT_S)
    monkeypatch.undo()
    assert opened.append([admitted("m4")]).failure is opened.failure is failure.value
    assert [opened.find(name) is not None for name in ("m1", "m2", "m3", "m4")] == [True, False, False, False]
    opened.close()
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        assert [standing.message_id for standing in again.unfinished()] == ["m1"]


def test_a_journal_full_of_unfinished_messages_says_so_and_keeps_them(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libintercom.session.journal.writer.BATCH_LIMIT", 1)
    opened = Journal.open("ann", folder=folder, limits=Retention(max_bytes=200_000))
    pendings = [opened.append([admitted(f"m{number}", "x" * 5_000)]) for number in range(100)]
    with pytest.raises(JournalFailed, match="size limit is reached"):
        pendings[-1].wait(WAIT_S)
    opened.close()
    stored = [f"m{number}" for number, pending in enumerate(pendings) if pending.failure is None]
    assert 10 < len(stored) < 100
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        assert [standing.message_id for standing in again.unfinished()] == stored


def test_a_journal_full_of_finished_messages_drops_their_texts_and_goes_on(folder: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER.replace(max_bytes=400_000)) as opened:
        # A pass over an open journal looks at the real clock.
        now_ms = time.time_ns() // 1_000_000
        kept = opened.append([admitted("kept", "y" * 5_000)])
        for number in range(150):
            opened.append(whole_life(f"m{number}", "x" * 5_000, at_ms=now_ms)).wait(WAIT_S)
        kept.wait(WAIT_S)
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        first, found = again.find("m0"), again.find("kept")
        assert first is not None
        assert first.kind == "placed"
        assert first.admitted is not None
        assert first.admitted.body["message"]["content"]["text"] == ""
        assert first.admitted.body["textSha256"] == "0" * 64
        assert found is not None
        assert found.admitted is not None
        assert found.admitted.body["message"]["content"]["text"] == "y" * 5_000


def test_damage_met_while_reading_is_said_and_the_next_open_looks_at_every_page(folder: str) -> None:
    opened = Journal.open("ann", folder=folder, limits=FOREVER)
    opened._view.chain = _malformed  # type: ignore[method-assign]
    opened.append([admitted("m1")]).wait(WAIT_S)
    opened._memory.forget()
    with pytest.raises(JournalFailed, match="damaged"):
        opened.find("m1")
    opened.close()
    assert any(name.endswith(".suspect") for name in os.listdir(folder))
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        assert again.find("m1") is not None
    assert not any(name.endswith(".suspect") for name in os.listdir(folder))


def _malformed(_last: int) -> list:
    raise sqlite3.DatabaseError("database disk image is malformed")


def test_a_closed_journal_answers_nothing_and_closes_again(folder: str) -> None:
    opened = Journal.open("ann", folder=folder, limits=FOREVER)
    opened.close()
    opened.close()
    with pytest.raises(JournalFailed, match="it was closed"):
        opened.find("m1")
    with pytest.raises(JournalFailed, match="it was closed"):
        opened.append([admitted("m1")])


def test_a_closed_journal_leaves_no_log_and_a_current_index(folder: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        opened.append([admitted("m1")])
    assert sorted(name.rpartition(".")[2] for name in os.listdir(folder)) == ["lock", "sqlite"]
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        assert again._memory.tail == {}


def test_the_index_follows_and_the_log_is_copied(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libintercom.session.journal.writer.FOLD_LIMIT", 10)
    monkeypatch.setattr("libintercom.session.journal.writer.CHECKPOINT_PAGES", 20)
    heard: list[str] = []
    faults.set_hook(heard.append)
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        for number in range(60):
            opened.find(f"m{number}")
            opened.append([admitted(f"m{number}")]).wait(WAIT_S)
        assert len(opened._memory.tail) <= 20
        assert heard.count("journal.folded") >= 4
        assert heard.count("journal.checkpointed") >= 2
        # The log starts anew although the reader looks at one state most of the time.
        assert os.stat(f"{opened.path}-wal").st_size < 60 * 4096
        assert [standing.message_id for standing in opened.unfinished()] == [f"m{number}" for number in range(60)]


def test_closing_applies_the_retention(folder: str) -> None:
    with Journal.open("ann", folder=folder) as opened:
        opened.append([*whole_life("old", at_ms=1), admitted("old-unfinished", at_ms=1)])
        opened.append(whole_life("new", at_ms=time.time_ns() // 1_000_000))
    with Journal.open("ann", folder=folder) as again:
        assert [again.find(name) is not None for name in ("old", "old-unfinished", "new")] == [False, True, True]
