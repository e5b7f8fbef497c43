"""A log that was cut or scribbled on at its end opens to what was committed before: a prefix, never a part."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from libintercom.session.journal import Journal, export
from libintercom.session.journal.folder import LOG_SUFFIX, SUFFIX, stem_of
from tests.integration.journal.appender import NATIVE_ID, entry

if TYPE_CHECKING:
    from pathlib import Path

# SQLite's file format, "The WAL file format": a header of 32 bytes, then frames of 24 bytes and a page.
HEADER, FRAME = 32, 24 + 4096
APPENDS = 5


@pytest.fixture(scope="module")
def copied(quick_path: Path) -> Path:
    """A journal's files as they are while its owner lives: five transactions of two entries in the log."""
    parent = quick_path
    with Journal.open(NATIVE_ID, folder=f"{parent}/j") as journal:
        for number in range(0, 2 * APPENDS, 2):
            journal.append([entry(number), entry(number + 1)]).wait(10)
        shutil.copytree(f"{parent}/j", f"{parent}/copy", ignore=shutil.ignore_patterns("*-shm", "*.lock"))
    return parent / "copy"


def reopened(copied: Path, folder: Path, log: bytes) -> list[str]:
    shutil.copytree(copied, folder)
    (folder / f"{stem_of(NATIVE_ID)}{SUFFIX}{LOG_SUFFIX}").write_bytes(log)
    with Journal.open(NATIVE_ID, folder=str(folder)) as journal:
        assert journal.set_aside is None
        stored = [found["entryId"] for found in export(journal.path) if "kind" in found]
        assert [standing.admitted.entry_id for standing in journal.unfinished() if standing.admitted] == stored
        # It goes on from there.
        journal.append([entry(99)]).wait(10)
    return stored


def log_of(copied: Path) -> bytes:
    return (copied / f"{stem_of(NATIVE_ID)}{SUFFIX}{LOG_SUFFIX}").read_bytes()


def boundaries(size: int) -> list[int]:
    """Each kind of place a log can end at: inside the header, at and beside each frame's two borders, inside a page."""
    frames = range(HEADER, size, FRAME)
    offsets = (-1, 0, 1, 23, 24, 25, 24 + 2048)
    return sorted({0, 1, 31, size - 1, *(at + offset for at in frames for offset in offsets)} & set(range(size)))


def is_prefix_of_appends(stored: list[str]) -> bool:
    return len(stored) % 2 == 0 and stored == [f"e{number}" for number in range(len(stored))]


def test_a_log_cut_anywhere_opens_to_a_prefix(copied: Path, quick_path: Path) -> None:
    log = log_of(copied)
    assert (len(log) - HEADER) % FRAME == 0
    before = 0
    for cut in boundaries(len(log)):
        stored = reopened(copied, quick_path / f"{cut}", log[:cut])
        shutil.rmtree(quick_path / f"{cut}")
        assert is_prefix_of_appends(stored)
        # The longer the log, the more is there.
        assert len(stored) >= before
        before = len(stored)
    assert reopened(copied, quick_path / "whole", log) == [f"e{number}" for number in range(2 * APPENDS)]


def test_a_scribbled_frame_ends_the_log_there(copied: Path, quick_path: Path) -> None:
    log = log_of(copied)
    for number, at in enumerate(range(HEADER + FRAME * 6, len(log), FRAME)):
        wrong = bytearray(log)
        wrong[at + 24 + 100] ^= 0xFF
        stored = reopened(copied, quick_path / f"{number}", bytes(wrong))
        assert is_prefix_of_appends(stored)
        assert len(stored) < 2 * APPENDS
