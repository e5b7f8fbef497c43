"""Locks on files: one holder, the inode looked at again, probes that leave no trace."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from libintercom.errors import UnsafeDirectory
from libintercom.ownership import locks
from libintercom.ownership.directory import RuntimeDirectory, open_directory
from libintercom.ownership.locks import FREE, HELD, UNKNOWN, probe_lock, try_lock, wait_for_lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RuntimeDirectory]:
    with open_directory(str(tmp_path / "run")) as opened:
        yield opened


def test_one_holder_at_a_time(directory: RuntimeDirectory) -> None:
    first = try_lock(directory, ".guard")
    assert first is not None
    assert first.is_current()
    assert try_lock(directory, ".guard") is None
    first.release()
    first.release()
    with try_lock(directory, ".guard") as second:
        assert second is not None


def test_the_file_stays(directory: RuntimeDirectory) -> None:
    with try_lock(directory, ".guard"):
        mark = directory.mark(".guard")
    assert directory.mark(".guard") == mark
    assert directory.stat(".guard").st_mode & 0o777 == 0o600


def test_a_lock_file_deleted_by_a_cleaner_is_made_again(
    directory: RuntimeDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking: the lock on the old file is worth nothing, and must not be taken for one."""
    take, deletions = locks.lock_exclusively, iter([True, True, False])

    def delete_first(fd: int) -> bool:
        if next(deletions):
            directory.unlink(".guard")
        return take(fd)

    monkeypatch.setattr(locks, "lock_exclusively", delete_first)
    with try_lock(directory, ".guard") as lock:
        assert lock is not None
        assert lock.is_current()


def test_a_holder_notices_that_its_file_is_gone(directory: RuntimeDirectory) -> None:
    with try_lock(directory, ".guard") as lock:
        assert lock is not None
        directory.unlink(".guard")
        assert not lock.is_current()
        os.close(directory.open(".guard", os.O_CREAT | os.O_RDWR))
        assert not lock.is_current()


def test_a_directory_moved_aside_is_no_place_to_lock(directory: RuntimeDirectory) -> None:
    os.rename(directory.path, directory.path + "-aside")
    with pytest.raises(UnsafeDirectory, match="moved or replaced"):
        try_lock(directory, ".guard")


@pytest.mark.parametrize("kind", ["fifo", "folder", "link"])
def test_what_is_no_ordinary_file_is_no_lock(directory: RuntimeDirectory, kind: str) -> None:
    path = f"{directory.path}/.guard"
    {"fifo": os.mkfifo, "folder": os.mkdir, "link": lambda p: os.symlink("/etc/passwd", p)}[kind](path)
    with pytest.raises((UnsafeDirectory, OSError)):
        try_lock(directory, ".guard")
    assert os.path.lexists(path)


def test_waiting_tries_every_10_ms_until_the_deadline(directory: RuntimeDirectory) -> None:
    now, naps = [0.0], []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        now[0] += seconds

    with try_lock(directory, ".guard"):
        assert wait_for_lock(directory, ".guard", 0.095, clock=lambda: now[0], sleep=nap) is None
    assert naps == [0.01] * 10


def test_waiting_ends_when_the_lock_is_free(directory: RuntimeDirectory) -> None:
    held = try_lock(directory, ".guard")
    assert held is not None
    with wait_for_lock(directory, ".guard", 1.0, clock=lambda: 0.0, sleep=lambda _s: held.release()) as lock:
        assert lock is not None


def test_a_probe_tells_and_leaves_no_trace(directory: RuntimeDirectory) -> None:
    with try_lock(directory, "record"):
        pass
    first, second = directory.open("record", os.O_RDONLY), directory.open("record", os.O_RDONLY)
    try:
        assert [probe_lock(first), probe_lock(second), probe_lock(first)] == [FREE, FREE, FREE]
        with try_lock(directory, "record") as owner:
            assert owner is not None
            assert [probe_lock(first), probe_lock(second)] == [HELD, HELD]
        # Two probers at the very same moment do not see each other.
        fcntl.flock(first, fcntl.LOCK_SH)
        assert probe_lock(second) == FREE
    finally:
        os.close(first)
        os.close(second)


def test_a_filesystem_without_locks_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert probe_lock(0) == UNKNOWN
