"""What people read when a journal cannot be had or stops."""

from __future__ import annotations

import sqlite3

import pytest

from libintercom.errors import EXIT_REFUSED, EXIT_UNREACHABLE
from libintercom.session.journal import JournalBusy, JournalFailed, JournalForked, JournalUnavailable
from libintercom.session.journal.failures import explain, failure_of, is_damage


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        (JournalBusy("/j", 12), EXIT_UNREACHABLE, ["/j", "process 12"]),
        (JournalBusy("/j", 0), EXIT_UNREACHABLE, ["another process"]),
        (
            JournalUnavailable("/j", "it is read-only", "Move it."),
            EXIT_UNREACHABLE,
            ["/j", "it is read-only. Move it."],
        ),
        (JournalFailed("/j", "the disk is full"), EXIT_REFUSED, ["/j", "the disk is full", "can still be read"]),
        (JournalForked("/j", 12), EXIT_REFUSED, ["process 12", "one of its own"]),
    ],
)
def test_each_says_what_was_found_and_what_to_do(failure: Exception, status: int, words: list[str]) -> None:
    assert getattr(failure, "exit_status", None) == status
    assert all(word in str(failure) for word in words)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("database or disk is full", "the disk is full"),
        ("attempt to write a readonly database", "read-only"),
        ("disk I/O error", "the disk reports errors"),
        ("unable to open database file", "cannot be opened"),
        ("something new", "something new"),
    ],
)
def test_sqlites_words_are_explained(said: str, meant: str) -> None:
    assert meant in explain(sqlite3.OperationalError(said))
    assert not is_damage(sqlite3.OperationalError(said))


def test_damage_is_told_from_trouble() -> None:
    damage = sqlite3.DatabaseError("database disk image is malformed")
    assert is_damage(damage)
    assert failure_of("/j", damage).is_damaged
    assert not failure_of("/j", sqlite3.OperationalError("disk I/O error")).is_damaged
