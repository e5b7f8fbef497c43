"""A disk that is full, and a folder that nobody may write: a clear word, and nothing that was stored is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.executables import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# Appends until the disk refuses, then says what happened and what is still there; opens again after making room.
FILLING = """
import os, sys
from libintercom.session.journal import Journal, JournalFailed, JournalUnavailable, export
from tests.integration.journal.appender import NATIVE_ID, entry
folder = sys.argv[1]
ballast = os.path.dirname(folder) + "/ballast"
with open(ballast, "wb") as file:
    file.write(bytes(64 * 1024))
journal = Journal.open(NATIVE_ID, folder=folder)
settled = []
try:
    for number in range(10_000):
        journal.append([entry(number)]).wait(10)
        settled.append(number)
except JournalFailed as failure:
    print("failed:", failure.reason)
assert journal.failure is not None
assert journal.find(f"m{settled[-1]}") is not None
assert journal.find(f"m{settled[-1] + 1}") is None
later = journal.append([entry(0)])
assert later.is_settled and later.failure is journal.failure
journal.close()
try:
    Journal.open("another", folder=folder)
except JournalUnavailable as refused:
    print("another:", refused.reason)
os.unlink(ballast)
journal = Journal.open(NATIVE_ID, folder=folder)
stored = [found["entryId"] for found in export(journal.path) if "kind" in found]
print("kept:", journal.set_aside is None, stored[: len(settled)] == [f"e{number}" for number in settled])
journal.append([entry(99_999)]).wait(10)
journal.close()
"""


def in_own_mounts(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)


def require_own_mounts(folder: Path) -> None:
    tried = in_own_mounts(f"mount -t tmpfs none {folder}")
    if tried.returncode:
        pytest.skip(f"this machine allows no mounts of one's own: {tried.stderr.strip()}")


@pytest.mark.needs("unshare", "mount")
def test_a_full_disk_is_said_and_nothing_stored_is_lost(tmp_path: Path) -> None:
    require_own_mounts(tmp_path)
    program = f"{tmp_path.parent}/filling.py"
    with open(program, "w", encoding="utf-8") as file:
        file.write(FILLING)
    mount = f"mount -t tmpfs -o size=512k,mode=0700 none {tmp_path}"
    ended = in_own_mounts(f"{mount} && PYTHONPATH={ROOT} exec {sys.executable} {program} {tmp_path}/j")
    said = ended.stdout.splitlines()
    assert said, ended.stderr
    assert said[0].startswith("failed: the disk is full")
    assert said[-1] == "kept: True True", ended.stderr
    assert ended.returncode == 0, ended.stderr


@pytest.mark.needs("unshare", "mount")
def test_a_read_only_filesystem_is_said_and_what_is_there_stays(tmp_path: Path) -> None:
    require_own_mounts(tmp_path)
    opening = (
        "import sys; from libintercom.session.journal import *\n"
        "from tests.integration.journal.appender import NATIVE_ID, entry\n"
        "try: Journal.open(NATIVE_ID, folder=sys.argv[1]).append([entry(0)]).wait(10)\n"
        "except JournalUnavailable as refused: print(refused)"
    )
    program = tmp_path.parent / "opening.py"
    program.write_text(opening, encoding="utf-8")
    run = f"PYTHONPATH={ROOT} {sys.executable} {program} {tmp_path}/j"
    script = f"mount -t tmpfs none {tmp_path} && {run} && mount -o remount,ro {tmp_path} && {run} && ls {tmp_path}/j"
    ended = in_own_mounts(script)
    first, *files = ended.stdout.splitlines()
    assert "Read-only file system" in first or "read-only" in first, ended.stderr
    assert "no journal at" in first
    assert any(name.endswith(".sqlite") for name in files)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; the read-only filesystem stands for it")
def test_a_folder_without_the_right_to_write_is_said(tmp_path: Path) -> None:
    from libintercom.session.journal import Journal, JournalUnavailable

    folder = tmp_path / "j"
    folder.mkdir(0o500)
    with pytest.raises(JournalUnavailable, match="Permission denied"):
        Journal.open("x", folder=str(folder))
