"""Listing, exporting and collecting: what is told, what goes, and what never goes."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest

from libintercom.session.journal import Journal, JournalUnavailable, Retention, collect_garbage, export, list_journals
from libintercom.session.journal.folder import stem_of
from tests.support.journaled import FOREVER, WAIT_S, admitted, noted, whole_life

KEEP = Retention(keep_ms=1_000)
LONG_AFTER_MS = 10**15


def fill(folder: str, native_id: str = "ann") -> str:
    """Old and new, finished and not; the journal's path."""
    with Journal.open(native_id, folder=folder, limits=FOREVER) as opened:
        opened.append(whole_life("old", "x" * 9_000, at_ms=5_000))
        opened.append([admitted("old-unfinished", at_ms=5_000)])
        opened.append([admitted("old-asked", is_ask=True, at_ms=5_000), noted("old-asked", "handed", 5_000)])
        opened.append([noted("old-asked", "placed", 5_000)])
        opened.append([admitted("old-touched", at_ms=5_000), noted("old-touched", "discarded", 9_500)])
        opened.append(whole_life("new", at_ms=9_900)).wait(WAIT_S)
        return opened.path


def known(folder: str) -> list[str]:
    names = ("old", "old-unfinished", "old-asked", "old-touched", "new")
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        return [name for name in names if opened.find(name) is not None]


def test_a_list_tells_of_each_journal(folder: str) -> None:
    fill(folder)
    with Journal.open("bob", folder=folder):
        listed = {one.native_id: one for one in list_journals(folder)}
    assert set(listed) == {"ann", "bob"}
    ann, bob = listed["ann"], listed["bob"]
    assert (ann.messages, ann.unfinished, ann.newest_at_ms, ann.is_held, ann.holder_pid) == (5, 2, 9_900, False, 0)
    assert (bob.messages, bob.is_held, bob.holder_pid) == (0, True, os.getpid())
    assert ann.size_bytes >= os.stat(ann.path).st_size


def test_listing_leaves_a_closed_journal_closed(folder: str) -> None:
    fill(folder)
    list_journals(folder)
    assert known(folder) == ["old", "old-unfinished", "old-asked", "old-touched", "new"]


def test_no_folder_means_no_journals_and_none_is_made(folder: str) -> None:
    assert list_journals(folder) == []
    assert collect_garbage(folder) == []
    assert not os.path.exists(folder)


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(folder: str) -> None:
    path = fill(folder)
    with open(path, "r+b") as file:
        file.write(b"no database")
    (listed,) = list_journals(folder)
    assert "damaged" in listed.note
    with pytest.raises(JournalUnavailable, match="damaged"):
        list(export(path))
    with pytest.raises(JournalUnavailable):
        list(export(f"{folder}/nothing.sqlite"))


def test_an_export_is_json_and_whole(folder: str) -> None:
    path = fill(folder)
    lines = [json.loads(json.dumps(line)) for line in export(path)]
    assert lines[0] == {"journal": 1, "nativeId": "ann"}
    assert [line["number"] for line in lines[1:]] == list(range(1, 15))
    assert lines[1]["body"]["message"]["content"]["text"] == "x" * 9_000


def test_only_what_is_finished_and_old_goes(folder: str) -> None:
    path = fill(folder)
    before = os.stat(path).st_size
    (dry,) = collect_garbage(folder, KEEP, is_dry_run=True, now_ms=10_000)
    assert dry.removed_messages == 1
    assert os.stat(path).st_size == before
    (collected,) = collect_garbage(folder, KEEP, now_ms=10_000)
    assert (collected.removed_messages, collected.trimmed_messages, collected.is_removed) == (1, 0, False)
    assert collected.freed_bytes > 0
    assert known(folder) == ["old-unfinished", "old-asked", "old-touched", "new"]


def test_unfinished_messages_stay_however_old(folder: str) -> None:
    fill(folder)
    collect_garbage(folder, KEEP, now_ms=LONG_AFTER_MS)
    assert known(folder) == ["old-unfinished", "old-asked"]


def test_numbers_are_never_given_twice(folder: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        opened.append(whole_life("m1", at_ms=1)).wait(WAIT_S)
    collect_garbage(folder, KEEP, now_ms=100_000)
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        again.append([admitted("m2")]).wait(WAIT_S)
        found = again.find("m2")
        assert found is not None
        assert found.order == 5


def test_a_large_journal_loses_texts_before_facts(folder: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        for number in range(60):
            opened.append(whole_life(f"m{number}", "x" * 4_000)).wait(WAIT_S)
        opened.append([admitted("kept", "y" * 4_000)]).wait(WAIT_S)
    (collected,) = collect_garbage(folder, FOREVER.replace(max_bytes=100_000), now_ms=2_000)
    assert (collected.removed_messages, collected.trimmed_messages) == (0, 60)
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        assert [again.find(f"m{number}") is not None for number in range(60)] == [True] * 60
        kept = again.find("kept")
        assert kept is not None
        assert kept.admitted is not None
        assert kept.admitted.body["message"]["content"]["text"] == "y" * 4_000


def test_a_held_journal_is_left_to_its_owner(folder: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        opened.append(whole_life("m1")).wait(WAIT_S)
        (collected,) = collect_garbage(folder, KEEP, now_ms=LONG_AFTER_MS)
        assert f"process {os.getpid()}" in collected.note
        assert opened.find("m1") is not None


def test_an_empty_journal_that_nobody_used_goes_as_a_whole(folder: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        opened.append(whole_life("m1")).wait(WAIT_S)
    (collected,) = collect_garbage(folder, KEEP, now_ms=LONG_AFTER_MS)
    assert collected.is_removed
    assert os.listdir(folder) == []


def test_a_damaged_journal_is_set_aside_and_goes_when_it_is_old(folder: str) -> None:
    path = fill(folder)
    with open(path, "r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(200))
    (dry,) = collect_garbage(folder, KEEP, is_dry_run=True, now_ms=10_000)
    assert dry.note.startswith("damaged")
    assert os.path.exists(path)
    (collected,) = collect_garbage(folder, KEEP, now_ms=10_000)
    assert "set aside as" in collected.note
    assert not os.path.exists(path)
    gone = collect_garbage(folder, KEEP, now_ms=LONG_AFTER_MS)
    assert [one.note for one in gone] == ["was set aside"]
    assert [name for name in os.listdir(folder) if "damaged" in name] == []


def test_a_newer_journal_is_not_touched(folder: str) -> None:
    path = fill(folder)
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    (collected,) = collect_garbage(folder, KEEP, now_ms=LONG_AFTER_MS)
    assert "schema 99" in collected.note
    assert os.path.exists(f"{folder}/{stem_of('ann')}.sqlite")
