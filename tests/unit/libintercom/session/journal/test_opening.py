"""Opening: a damaged file is set aside and said, a newer one is left alone, and a stray log is never adopted."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest

from libintercom.session import faults
from libintercom.session.journal import Journal, JournalUnavailable
from libintercom.session.journal.folder import stem_of
from tests.support.journaled import FOREVER, WAIT_S, admitted, whole_life


def path_of(folder: str, native_id: str = "ann") -> str:
    return f"{folder}/{stem_of(native_id)}.sqlite"


@pytest.fixture
def filled(folder: str) -> str:
    """The path of a closed journal of some pages."""
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        for number in range(40):
            opened.append(whole_life(f"m{number}", "x" * 300)).wait(WAIT_S)
    return path_of(folder)


def reopen(folder: str) -> tuple[str | None, bool]:
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        return again.set_aside, again.find("m1") is not None


def write_at(path: str, offset: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)


def test_a_sound_file_is_not_set_aside(filled: str, folder: str) -> None:
    assert reopen(folder) == (None, True)


@pytest.mark.parametrize(
    ("offset", "content"),
    [(0, b"no database"), (16, b"\xff\xff"), (68, b"\0\0\0\0"), (100, bytes(400))],
    ids=["magic", "page size", "application id", "schema page"],
)
def test_a_damaged_header_is_set_aside_as_it_was(filled: str, folder: str, offset: int, content: bytes) -> None:
    write_at(filled, offset, content)
    with open(filled, "rb") as file:
        damaged = file.read()
    aside, is_known = reopen(folder)
    assert not is_known
    assert aside
    with open(aside, "rb") as file:
        assert file.read() == damaged
    assert reopen(folder) == (None, False)


def test_a_cut_file_is_set_aside(filled: str, folder: str) -> None:
    os.truncate(filled, os.stat(filled).st_size // 8192 * 4096)
    assert reopen(folder)[0]


def test_a_damaged_page_is_found_after_an_ending_that_was_not_clean(filled: str, folder: str, place: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        opened.append([admitted("last")]).wait(WAIT_S)
        shutil.copytree(folder, f"{place}/killed", ignore=shutil.ignore_patterns("*.lock", "*-shm"))
    killed = path_of(f"{place}/killed")
    # In the middle of the entries: not among the newest, which are always looked at.
    write_at(killed, 4096 * 9, os.urandom(64))
    assert reopen(f"{place}/killed")[0]


def test_another_sessions_journal_under_our_name_is_set_aside(folder: str) -> None:
    Journal.open("bob", folder=folder).close()
    os.rename(path_of(folder, "bob"), path_of(folder))
    aside, is_known = reopen(folder)
    assert aside
    assert not is_known


def test_somebody_elses_database_is_set_aside(folder: str) -> None:
    os.mkdir(folder, 0o700)
    foreign = sqlite3.connect(path_of(folder))
    foreign.execute("CREATE TABLE songs (name TEXT)")
    foreign.close()
    os.chmod(path_of(folder), 0o600)
    assert reopen(folder)[0]


def test_a_newer_schema_is_refused_and_left_alone(filled: str, folder: str) -> None:
    newer = sqlite3.connect(filled)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(JournalUnavailable, match="schema 99") as refused:
        Journal.open("ann", folder=folder, limits=FOREVER)
    assert "newer program" in str(refused.value)
    assert not any("damaged" in name for name in os.listdir(folder))


def test_a_stray_log_is_set_aside_and_not_adopted(filled: str, folder: str, place: str) -> None:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        opened.append([admitted("old")]).wait(WAIT_S)
        shutil.copy(f"{filled}-wal", f"{place}/log")
    os.unlink(filled)
    shutil.copy(f"{place}/log", f"{filled}-wal")
    os.chmod(f"{filled}-wal", 0o600)
    with Journal.open("ann", folder=folder, limits=FOREVER) as again:
        assert again.set_aside
        assert again.find("old") is None
        assert os.path.exists(f"{again.set_aside}-wal")


def test_a_failure_while_opening_gives_the_lock_back(folder: str) -> None:
    def fail(name: str) -> None:
        if name == "journal.migrated":
            raise sqlite3.OperationalError("disk I/O error")

    faults.set_hook(fail)
    with pytest.raises(JournalUnavailable, match="the disk reports errors"):
        Journal.open("ann", folder=folder, limits=FOREVER)
    faults.set_hook(None)
    Journal.open("ann", folder=folder, limits=FOREVER).close()


def test_the_usual_place_is_below_the_users_state(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Journal.open("ann") as opened:
        assert opened.path == path_of(f"{tmp_path}/state/intercom/journals")
