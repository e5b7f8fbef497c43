"""Who has a journal: two processes, an owner that died, children that were forked or started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from libintercom.session.journal import Journal, JournalBusy, JournalForked, export, list_journals
from tests.integration.journal.appender import NATIVE_ID, entry
from tests.support.executables import ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

# Opens a journal, says so and waits for its input to end.
OWNER = """
import sys
from libintercom.session.journal import Journal
from tests.integration.journal.appender import NATIVE_ID, entry
journal = Journal.open(NATIVE_ID, folder=sys.argv[1])
journal.append([entry(0)]).wait(10)
sys.stdout.write("open\\n"); sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path: Path):
    program = [sys.executable, "-c", OWNER, f"{tmp_path}/j"]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        assert running.stdout.readline() == "open\n"
        yield running
        running.kill()


def test_a_second_process_is_told_who_has_it(owner: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(JournalBusy) as refused:
        Journal.open(NATIVE_ID, folder=f"{tmp_path}/j")
    assert refused.value.holder_pid == owner.pid
    assert f"process {owner.pid}" in str(refused.value)
    # Another native session is none of its business.
    Journal.open("another", folder=f"{tmp_path}/j").close()


def test_a_live_journal_is_listed_and_exported_and_its_owner_goes_on(
    owner: subprocess.Popen[str], tmp_path: Path
) -> None:
    (listed,) = list_journals(f"{tmp_path}/j")
    assert (listed.is_held, listed.holder_pid, listed.native_id, listed.note) == (True, owner.pid, NATIVE_ID, "")
    assert [found.get("entryId") for found in export(listed.path)] == [None, "e0"]
    assert owner.poll() is None


def test_the_journal_of_an_owner_that_was_killed_is_free_and_whole(
    owner: subprocess.Popen[str], tmp_path: Path
) -> None:
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    with Journal.open(NATIVE_ID, folder=f"{tmp_path}/j") as journal:
        assert journal.find("m0") is not None
        assert list_journals(f"{tmp_path}/j")[0].holder_pid == os.getpid()


# Opens a journal and forks; the child tries what it must not, ends as programs end, and the parent goes on.
FORKING = """
import os, sys
from libintercom.session.journal import Journal, JournalForked
from tests.integration.journal.appender import NATIVE_ID, entry
journal = Journal.open(NATIVE_ID, folder=sys.argv[1])
journal.append([entry(0)]).wait(10)
pid = os.fork()
if pid == 0:
    for attempt in (lambda: journal.append([entry(7)]), lambda: journal.find("m0"), lambda: list(journal.unfinished())):
        try:
            attempt()
        except JournalForked as refused:
            print("refused", refused.owner_pid == os.getppid(), flush=True)
    journal.close()
    del journal
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
log = os.stat(journal.path + "-wal")
journal.append([entry(1)]).wait(10)
assert os.stat(journal.path + "-wal").st_ino == log.st_ino and log.st_nlink == 1
print("alive", journal.find("m0") is not None, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_forked_child_is_refused_and_leaves_its_parents_journal_alone(tmp_path: Path) -> None:
    program = [sys.executable, "-c", FORKING, f"{tmp_path}/j"]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines() == ["refused True"] * 3 + ["alive True"], ended.stderr
    with Journal.open(NATIVE_ID, folder=f"{tmp_path}/j") as journal:
        assert [found["entryId"] for found in export(journal.path) if "kind" in found] == ["e0", "e1"]


# The parent ends and its forked child lives on.
ORPHAN = """
import os, sys, time
from libintercom.session.journal import Journal
from tests.integration.journal.appender import NATIVE_ID, entry
journal = Journal.open(NATIVE_ID, folder=sys.argv[1])
journal.append([entry(0)]).wait(10)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os._exit(0)
"""


def test_a_child_that_outlives_the_owner_does_not_keep_the_lock(tmp_path: Path) -> None:
    program = [sys.executable, "-c", ORPHAN, f"{tmp_path}/j"]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        child = int(running.stdout.readline())
        assert running.wait() == 0
        os.kill(child, 0)
        Journal.open(NATIVE_ID, folder=f"{tmp_path}/j").close()
        assert running.stdin
        running.stdin.close()


def test_a_started_program_does_not_inherit_the_lock(tmp_path: Path) -> None:
    journal = Journal.open(NATIVE_ID, folder=f"{tmp_path}/j")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        journal.append([entry(0)]).wait(10)
        journal.close()
        Journal.open(NATIVE_ID, folder=f"{tmp_path}/j").close()
        assert running.poll() is None
        running.kill()


def test_waiting_is_for_what_was_appended_last(tmp_path: Path) -> None:
    """A process that ends without closing leaves a journal like a crash; what it waited for is there."""
    script = "import sys\n" + OWNER.split("sys.stdout.write", maxsplit=1)[0]
    subprocess.run([sys.executable, "-c", script, f"{tmp_path}/j"], cwd=ROOT, check=True)
    wait_until(lambda: not list_journals(f"{tmp_path}/j")[0].is_held, "the lock's end")
    with Journal.open(NATIVE_ID, folder=f"{tmp_path}/j") as journal:
        assert journal.find("m0") is not None


def test_refusing_a_fork_is_an_error_that_says_what_to_do() -> None:
    assert "opens one of its own" in str(JournalForked("/x", 7))
