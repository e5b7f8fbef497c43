"""What can go wrong with a journal, as callers see it: somebody else has it, it cannot be had, it stopped.

Owns the classes and their sentences, and telling them from SQLite's errors. None of them means that something
stored was lost.
"""

from __future__ import annotations

import sqlite3

from libintercom.errors import EXIT_UNREACHABLE, IntercomError

# sqlite3's words (the same for every version we run on) -> what a reader can do something about.
_WORDS = (
    ("full", "the disk is full, or the journal's size limit is reached (intercomctl journal gc)"),
    ("readonly", "the file or its filesystem is read-only"),
    ("disk I/O error", "the disk reports errors"),
    ("locked", "another program keeps the database locked"),
    ("unable to open", "the file cannot be opened"),
    ("malformed", "the file is damaged; it is examined and set aside when the journal is opened again"),
    ("not a database", "the file is damaged; it is examined and set aside when the journal is opened again"),
)


class JournalBusy(IntercomError):
    """A live process has this journal. ``holder_pid`` is 0 while it has not yet said who it is."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, path: str, holder_pid: int) -> None:
        super().__init__(path, holder_pid)
        self.path, self.holder_pid = path, holder_pid

    def __str__(self) -> str:
        holder = f"process {self.holder_pid}" if self.holder_pid else "another process"
        return f"the journal {self.path} is in use by {holder}. One process at a time has a native session's journal."


class JournalUnavailable(IntercomError):
    """There can be no journal here. ``reason`` says why, ``remedy`` what to do; nothing was changed."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, path: str, reason: str, remedy: str = "") -> None:
        super().__init__(path, reason, remedy)
        self.path, self.reason, self.remedy = path, reason, remedy

    def __str__(self) -> str:
        tail = f" {self.remedy}" if self.remedy else ""
        return f"no journal at {self.path}: {self.reason}.{tail}"


class JournalFailed(IntercomError):
    """The journal stopped taking entries; those of this call are not known to be stored. What was stored stays.

    ``is_damaged``: the file itself is wrong, so the next open examines all of it.
    """

    def __init__(self, path: str, reason: str, *, is_damaged: bool = False) -> None:
        super().__init__(path, reason)
        self.path, self.reason, self.is_damaged = path, reason, is_damaged

    def __str__(self) -> str:
        return (
            f"the journal {self.path} takes no more entries: {self.reason}. What it holds can still be read; open it "
            "again when that is mended."
        )


class JournalForked(IntercomError):
    """A forked child used its parent's journal. It belongs to the parent; a child opens one of its own."""

    def __init__(self, path: str, owner_pid: int) -> None:
        super().__init__(path, owner_pid)
        self.path, self.owner_pid = path, owner_pid

    def __str__(self) -> str:
        return f"the journal {self.path} belongs to process {self.owner_pid}. A forked child opens one of its own."


def explain(error: sqlite3.Error) -> str:
    """What an error of SQLite means, with its own words behind."""
    said = str(error)
    return next((f"{words} ({said})" for part, words in _WORDS if part in said), said)


def failure_of(path: str, error: sqlite3.Error) -> JournalFailed:
    return JournalFailed(path, explain(error), is_damaged=is_damage(error))


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is wrong: malformed, or no database. Python 3.9 tells no code, but this class."""
    return type(error) is sqlite3.DatabaseError
