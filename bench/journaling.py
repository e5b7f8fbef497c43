"""What the journal's figures are made of: the messages, the bare SQLite floor, a full journal, and where they stand.

Owns the load and the floor. Does not own any figure (``figures.journal``).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import sqlite3
import tempfile
import time
import uuid
from typing import TYPE_CHECKING

from libintercom.ownership.filesystems import find_mount_type
from libintercom.session.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from libintercom.session.journal import Journal

# The bars' message: 512 bytes of text. With the sender's row an admission is about a kilobyte of JSON.
_TEXT = "x" * 512
_AT_MS = time.time_ns() // 1_000_000
_LIFE = ("queued", "handed", "placed")
# Unfinished messages of a full journal: what a session may have in hand when it ends.
_UNFINISHED = 100
_FILLING_WAIT_S = 120.0
# Appends between two waits while a journal is filled: bounds what is in memory.
_FILLING_STEP = 50

_TABLE = """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, previous INTEGER NOT NULL, first INTEGER NOT NULL, unfinished INTEGER NOT NULL,
    at_ms INTEGER NOT NULL, entry_id TEXT NOT NULL, message_id TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL
)
"""
_INSERT = "INSERT INTO entries VALUES (NULL, 0, 0, 1, ?, ?, ?, ?, ?)"


def admission() -> Entry:
    message_id = str(uuid.uuid4())
    row = {"id": str(uuid.uuid4()), "name": "planner", "cwd": "/home/someone/project", "model": "a-model", "pid": 4711}
    body = {
        "from": {**row, "startedAt": _AT_MS, "lastActivity": _AT_MS},
        "message": {"id": message_id, "timestamp": _AT_MS, "content": {"text": _TEXT}},
        "receivedAt": _AT_MS,
        "textSha256": "0" * 64,
        "generation": str(uuid.uuid4()),
    }
    return Entry(entry_id=str(uuid.uuid4()), message_id=message_id, kind="admitted", at_ms=_AT_MS, body=body)


class Bare:
    """The floor: one connection, one table with the same columns and no index, the same settings, nothing else."""

    def __init__(self, folder: str) -> None:
        self._connection = sqlite3.connect(f"{folder}/bare.sqlite", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(_TABLE)

    def store(self, entries: Sequence[Entry]) -> None:
        """One transaction: make the rows (an entry is JSON before it is one) and commit."""
        rows = [(e.at_ms, e.entry_id, e.message_id, e.kind, json.dumps(e.body, separators=(",", ":"))) for e in entries]
        self._connection.execute("BEGIN")
        self._connection.executemany(_INSERT, rows)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def receive_one(journal: Journal, entry: Entry) -> None:
    """What a session has to have done before it offers a message: not known yet, and on disk."""
    if journal.find(entry.message_id) is not None:
        raise AssertionError(entry.message_id)
    journal.append([entry]).wait(_FILLING_WAIT_S)


def receive_many(journal: Journal, entries: Sequence[Entry], window: int) -> float:
    """Receive all, with at most ``window`` on the way to the disk; seconds."""
    settled: queue.SimpleQueue[object] = queue.SimpleQueue()
    for _free in range(window):
        settled.put(None)
    began_s = time.perf_counter()
    for entry in entries:
        _raise(settled.get())
        journal.find(entry.message_id)
        journal.append([entry]).add_done(settled.put)
    for _free in range(window):
        _raise(settled.get())
    return time.perf_counter() - began_s


def _raise(failure: object) -> None:
    if isinstance(failure, BaseException):
        raise failure


def fill(journal: Journal, records: int) -> None:
    """So many entries: admissions, of which all but the last hundred were queued, handed and placed."""
    messages = records // (1 + len(_LIFE))
    pending = None
    for number in range(messages):
        entry = admission()
        kinds = _LIFE if number < messages - _UNFINISHED else _LIFE[:2]
        later = [entry.replace(entry_id=str(uuid.uuid4()), kind=kind, body={}) for kind in kinds]
        pending = journal.append([entry, *later])
        if number % _FILLING_STEP == 0:
            pending.wait(_FILLING_WAIT_S)
    if pending is not None:
        pending.wait(_FILLING_WAIT_S)


@contextlib.contextmanager
def disk_folder() -> Iterator[str]:
    """A private folder that outlives a restart, hence on a disk where the machine has one (hier(7), /var/tmp)."""
    folder = tempfile.mkdtemp(prefix="intercom-bench-", dir="/var/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def filesystem(folder: str) -> str:
    """The type of the filesystem below ``folder``, for instance ext4."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
            mount_id = next((line.split()[1] for line in lines if line.startswith("mnt_id:")), "")
    finally:
        os.close(fd)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        return find_mount_type(file.read(), mount_id) or "an unknown filesystem"


def make_cold(folder: str) -> None:
    """Have the kernel forget what it keeps of these files, as after a restart."""
    for name in os.listdir(folder):
        fd = os.open(f"{folder}/{name}", os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
