"""Becoming the owner: one winner, and everything that stands in the way of a second one."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
from typing import TYPE_CHECKING

import pytest

from intercomd.edges.ownership.outcomes import ALREADY, CLAIMED, ERROR, UNCERTAIN
from libintercom.endpoint import dial
from libintercom.ownership.directory import open_directory
from libintercom.ownership.locks import try_lock
from libintercom.ownership.readings import read_ours
from libintercom.ownership.records import read_owner
from tests.support.losing import KEPT, lose, names, read, write
from tests.support.sandbox import as_user, needs_root

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.edges.ownership.holding import Ownership
    from libintercom.paths import Places

# ---------------------------------------------------------------- winning


def test_the_owner_is_reachable_and_on_record(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    with dial(places.socket):
        ownership.listening.accept()[0].close()
    assert names(places) == {"broker.sock", "broker.pid", *KEPT}
    for name, mode in (("broker.sock", 0o600), ("broker.pid", 0o600), (".guard", 0o600), ("", 0o700)):
        assert stat.S_IMODE(os.lstat(f"{places.runtime_dir}/{name}").st_mode) == mode, name
    record = read_owner(read(places.record).encode())
    assert (record.pid, record.problem) == (os.getpid(), "")
    assert record.publication is not None
    assert record.publication.flock
    assert not ownership.listening.getblocking()
    assert ownership.listening.get_inheritable() is False


def test_the_first_line_is_what_every_old_reader_parses(places: Places, own: Callable[[], Ownership]) -> None:
    own()
    lines = read(places.record).split("\n")
    assert lines[0] == str(os.getpid())
    assert lines[1].startswith("linux-v1 ")
    assert json.loads(lines[2])["role"] == "broker"


def test_life_and_directory_stay_locked(places: Places, own: Callable[[], Ownership]) -> None:
    own()
    with open(places.record, "rb") as record, pytest.raises(BlockingIOError):
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # What systemd-tmpfiles tries before it cleans a directory.
    fd = os.open(places.runtime_dir, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)


def test_a_second_one_is_told_already(places: Places, own: Callable[[], Ownership]) -> None:
    own()
    before = {name: os.lstat(f"{places.runtime_dir}/{name}").st_ino for name in names(places)}
    lost = lose(places)
    assert (lost.kind, lost.exit_status) == (ALREADY, 0)
    assert {name: os.lstat(f"{places.runtime_dir}/{name}").st_ino for name in names(places)} == before


def test_a_full_backlog_is_a_broker_too(places: Places, own: Callable[[], Ownership]) -> None:
    own().listening.listen(0)
    with dial(places.socket):
        assert lose(places).kind == ALREADY


def test_after_a_crash_the_next_one_wins(places: Places, own: Callable[[], Ownership]) -> None:
    first = own()
    # As the kernel does for a killed program: descriptors close, files stay.
    first.listening.close()
    first.release()
    assert names(places) == {"broker.sock", "broker.pid", *KEPT}
    own()
    assert names(places) == {"broker.sock", "broker.pid", *KEPT}


def test_leftovers_of_killed_candidates_are_swept(places: Places, runtime: str, own: Callable[[], Ownership]) -> None:
    write(f"{runtime}/.t-00000001", "x")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{runtime}/.t-00000002")
    write(f"{runtime}/notes.txt", "mine")
    own()
    assert names(places) == {"broker.sock", "broker.pid", "notes.txt", *KEPT}


# ---------------------------------------------------------------- what stands in the way


def test_another_candidate_holds_the_start_lock(places: Places, runtime: str) -> None:
    with open_directory(runtime) as directory, try_lock(directory, ".guard"):
        lost = lose(places)
    assert (lost.kind, lost.is_doubtful) == (CLAIMED, False)
    assert ".guard" in lost.reason


def test_a_cleaner_at_work_is_waited_for(places: Places, runtime: str, own: Callable[[], Ownership]) -> None:
    fd = os.open(runtime, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert "cleaner" in lose(places).reason
    os.close(fd)
    own()


def test_a_living_broker_whose_socket_is_gone_is_waited_for(places: Places, own: Callable[[], Ownership]) -> None:
    own()
    os.unlink(places.socket)
    lost = lose(places)
    assert (lost.kind, lost.is_doubtful) == (CLAIMED, False)
    assert "holds the lock on its record, but nobody listens" in lost.reason


RECORDS: list[tuple[str, str, str]] = [
    ("", UNCERTAIN, "it is empty"),
    ("garbled\n", UNCERTAIN, "its first line is not a pid"),
    (f"{os.getppid()}\n", UNCERTAIN, "holds only a pid"),
    ("1\nlinux-v9 anything\n", UNCERTAIN, "unknown form or version"),
    ('1\n{"v":7}\n', UNCERTAIN, "version 7"),
]


@pytest.mark.parametrize(("text", "kind", "reason"), RECORDS)
def test_an_uncertain_record_blocks_and_is_left_alone(
    places: Places, runtime: str, text: str, kind: str, reason: str
) -> None:
    write(places.record, text)
    lost = lose(places)
    assert (lost.kind, lost.exit_status) == (kind, 3)
    assert reason in lost.reason
    assert "broker.pid" in lost.reason
    assert read(places.record) == text
    assert names(places) == {"broker.pid", *KEPT}


@pytest.mark.parametrize(("text", "kind", "reason"), RECORDS)
def test_an_uncertain_claim_blocks_as_a_claim(places: Places, runtime: str, text: str, kind: str, reason: str) -> None:
    write(places.claim, text)
    lost = lose(places)
    assert (lost.kind, lost.is_doubtful) == (CLAIMED, True)
    assert reason in lost.reason
    assert names(places) == {"broker.spawn.lock", *KEPT}


def test_age_never_makes_a_claim_stale(places: Places, runtime: str) -> None:
    write(places.claim, f"{os.getppid()}\n1000000000000\n")
    os.utime(places.claim, (0, 0))
    assert lose(places).kind == CLAIMED


@pytest.mark.parametrize("name", ["broker.pid", "broker.spawn.lock"])
def test_a_record_of_a_dead_pid_is_replaced(
    places: Places, runtime: str, own: Callable[[], Ownership], name: str
) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    write(f"{runtime}/{name}", f"{pid}\n")
    if read_ours().is_initial_pid_ns:
        own()
        assert names(places) == {"broker.sock", "broker.pid", *KEPT}
    else:
        assert lose(places).kind in (UNCERTAIN, CLAIMED)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
@pytest.mark.parametrize("name", ["broker.pid", "broker.spawn.lock", "broker.sock", ".guard"])
def test_what_is_no_file_of_ours_is_never_removed(
    places: Places, runtime: str, make: Callable[[str], None], name: str
) -> None:
    make(f"{runtime}/{name}")
    assert lose(places).kind in (ERROR, UNCERTAIN, CLAIMED)
    assert names(places) - KEPT == {name} - KEPT


def test_an_unsafe_directory(places: Places, runtime: str) -> None:
    os.chmod(runtime, 0o750)
    lost = lose(places)
    assert (lost.kind, lost.exit_status) == (ERROR, 4)
    assert "0750" in lost.reason
    assert os.listdir(runtime) == []


@needs_root
def test_another_users_directory(places: Places, runtime: str) -> None:
    os.chown(runtime, 65534, 65534)
    lost = lose(places)
    assert lost.kind == ERROR
    assert "uid 65534" in lost.reason


@needs_root
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_parent_of_another_user(places: Places, mode: int) -> None:
    parent = os.path.dirname(places.runtime_dir)
    os.chmod(parent, mode)
    os.chown(parent, 65534, 65534)
    lost = lose(places)
    assert lost.kind == ERROR
    assert "can move what lies below" in lost.reason
    os.chown(parent, 0, 0)


@needs_root
def test_a_full_disk_is_told_and_leaves_nothing(places: Places, runtime: str) -> None:
    """In a child, since it limits itself: files of this program may not grow beyond a byte."""
    assert run_in_child(lambda: limit_files_and_lose(places)) == 0
    assert names(places) <= KEPT


def limit_files_and_lose(places: Places) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    lost = lose(places)
    assert lost.kind == ERROR, lost
    assert "disk" in lost.reason or "large" in lost.reason, lost


def run_in_child(act: Callable[[], None]) -> int:
    """Fork, act, and return the child's status: 0 when nothing was raised."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@needs_root
def test_a_read_only_directory_is_told(places: Places, runtime: str) -> None:
    os.chmod(os.path.dirname(runtime), 0o755)
    os.chown(runtime, 65534, 65534)
    os.chmod(runtime, 0o500)

    def act() -> None:
        as_user(65534)
        lost = lose(places.replace(uid=65534))
        assert lost.kind == ERROR, lost

    # The parent belongs to root, the directory to whoever tries.
    assert run_in_child(act) == 0
    assert os.listdir(runtime) == []
