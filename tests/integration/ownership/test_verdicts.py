"""Verdicts over real programs: killed owners, reused pids, zombies, other users and namespaces, a hidden /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from libintercom.ownership.directory import mark_of, open_directory
from libintercom.ownership.inspection import Finding, inspect
from libintercom.ownership.locks import lock_exclusively
from libintercom.ownership.readings import read_ours, read_stat
from libintercom.ownership.records import dump_owner, native_line
from libintercom.ownership.verdict import DEAD, LIVE, UNCERTAIN, Ours
from tests.support.executables import ROOT
from tests.support.owners import make_publication
from tests.support.pids import REUSE_ATTEMPTS, end, reuse
from tests.support.sandbox import needs_root
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from libintercom.paths import Places

pytestmark = pytest.mark.skipif(not read_ours().is_initial_pid_ns, reason="needs the initial pid namespace")


def look(places: Places, endpoint: str = "absent") -> Finding:
    with open_directory(places.runtime_dir) as directory:
        return inspect(directory, "broker.pid", read_ours(), endpoint)


def in_child(act: Callable[[], None]) -> int:
    """A child that acts and then waits to be killed; returns its pid once it has acted."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os.write(writing, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    try:
        assert os.read(reading, 1) == b"x"
    finally:
        os.close(reading)
    return pid


def publish_locked(places: Places) -> None:
    """As intercomd does: complete, locked, with the file's own mark."""
    ours, fd = read_ours(), os.open(places.record, os.O_CREAT | os.O_RDWR, 0o600)
    assert lock_exclusively(fd)
    mark = mark_of(os.fstat(fd))
    publication = make_publication(machine=ours.machine, identity=ours.identity, file=mark, flock=True)
    os.write(fd, dump_owner(os.getpid(), publication))


def publish_native(places: Places) -> None:
    """As newer programs of the lineage do: two lines, no lock."""
    text = f"{os.getpid()}\n{native_line(read_ours().identity)}\n"
    Path(places.record).write_text(text, encoding="ascii")


def publish_legacy(places: Places) -> None:
    Path(places.record).write_text(str(os.getpid()), encoding="ascii")


@pytest.mark.parametrize(
    ("publish", "living"), [(publish_locked, LIVE), (publish_native, UNCERTAIN), (publish_legacy, UNCERTAIN)]
)
def test_a_living_owner_and_a_killed_one(
    places: Places, runtime: str, publish: Callable[[Places], None], living: str
) -> None:
    pid = in_child(lambda: publish(places))
    try:
        assert look(places).kind == living
    finally:
        end(pid)
    assert look(places).kind == DEAD


@pytest.mark.parametrize("publish", [publish_locked, publish_native])
def test_a_zombie_owns_nothing(places: Places, runtime: str, publish: Callable[[Places], None]) -> None:
    pid = in_child(lambda: publish(places))
    try:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: read_stat(pid)[0] == "Z", "the child to be a zombie")
        assert look(places).kind == DEAD
    finally:
        os.waitpid(pid, 0)


def test_a_stopped_owner_lives(places: Places, runtime: str) -> None:
    pid = in_child(lambda: publish_locked(places))
    try:
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: read_stat(pid)[0] == "T", "the child to stop")
        assert look(places).kind == LIVE
    finally:
        end(pid)


@needs_root
@pytest.mark.parametrize("publish", [publish_locked, publish_native, publish_legacy])
def test_a_reused_pid_is_never_taken_for_the_owner(
    places: Places, runtime: str, publish: Callable[[Places], None]
) -> None:
    """Equal start ticks are the rule in such a reuse, so only our own lock proves the death; the rest is uncertain."""
    for _attempt in range(REUSE_ATTEMPTS):
        pid = in_child(lambda: publish(places))
        recorded = read_stat(pid)[1]
        end(pid)
        if not reuse(pid):
            os.unlink(places.record)
            continue
        try:
            are_ticks_equal = read_stat(pid)[1] == recorded
            found = look(places).kind
        finally:
            end(pid)
        if publish is publish_locked:
            assert found == DEAD
        elif publish is publish_native:
            assert found == (UNCERTAIN if are_ticks_equal else DEAD)
        else:
            assert found == UNCERTAIN
        return
    pytest.fail(f"no pid was reused in {REUSE_ATTEMPTS} attempts")


INSPECT = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from libintercom.ownership.directory import open_directory
from libintercom.ownership.inspection import inspect
from libintercom.ownership.readings import read_ours, read_signal, read_stat
from tests.support.sandbox import as_user
"""


def look_from(prefix: list[str], path: str, restriction: str = "") -> tuple[str, str]:
    """The verdict that a program started through ``prefix`` comes to, and its reason."""
    code = f"""{INSPECT}
with open_directory({path!r}) as directory:
    {restriction or "pass"}
    found = inspect(directory, "broker.pid", read_ours(), "absent")
print(found.kind); print(found.reason)
"""
    command = [*prefix, sys.executable, "-I", "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    kind, reason = ended.stdout.strip().split("\n")
    return kind, reason


# A program in a new pid namespace: with its own /proc, and with its parent's, where equal numbers are other programs.
OWN_PROC = ["unshare", "--pid", "--fork", "--mount-proc"]
PARENTS_PROC = ["unshare", "--pid", "--fork"]
HIDDEN_PROC = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"]


@needs_root
@pytest.mark.parametrize("prefix", [OWN_PROC, PARENTS_PROC])
@pytest.mark.parametrize("is_dead", [False, True])
def test_another_pid_namespace(places: Places, runtime: str, prefix: list[str], is_dead: bool) -> None:
    for publish, living, dead in (
        (publish_locked, LIVE, DEAD),
        (publish_native, UNCERTAIN, UNCERTAIN),
        (publish_legacy, UNCERTAIN, UNCERTAIN),
    ):
        pid = in_child(lambda publish=publish: publish(places))
        try:
            if is_dead:
                end(pid)
            assert look_from(prefix, runtime)[0] == (dead if is_dead else living), publish.__name__
        finally:
            if not is_dead:
                end(pid)
        os.unlink(places.record)


@needs_root
def test_a_hidden_proc_and_a_foreign_pid(places: Places, runtime: str) -> None:
    """Under hidepid another user's program looks gone to who only reads /proc; kill() says that it is there."""
    for publish, kind in ((publish_locked, LIVE), (publish_native, UNCERTAIN), (publish_legacy, UNCERTAIN)):
        pid = in_child(lambda publish=publish: publish(places))
        try:
            hand_over = f"os.chown({places.record!r}, 65534, 65534); directory.uid = 65534; as_user(65534)"
            hidden = f"{hand_over}; assert not os.path.exists('/proc/{pid}')"
            seen, reason = look_from(HIDDEN_PROC, runtime, f"os.chown({runtime!r}, 65534, 65534); {hidden}")
            assert seen == kind, reason
            assert kind == LIVE or "belongs to another user" in reason
        finally:
            os.chown(runtime, 0, 0)
            end(pid)
        os.unlink(places.record)


def test_another_boot_and_another_machine_over_a_living_pid(places: Places, runtime: str) -> None:
    """The record of before a restart: whoever has its pid now is somebody else."""
    ours = read_ours()
    assert ours.machine is not None, "this machine has no /etc/machine-id"
    former = ours.identity.replace(boot_id="00000000-0000-4000-8000-000000000000")

    def kind_of(machine: str | None, here: Ours) -> str:
        publication = make_publication(machine=machine, identity=former)
        Path(places.record).write_bytes(dump_owner(os.getppid(), publication))
        with open_directory(places.runtime_dir) as directory:
            return inspect(directory, "broker.pid", here, "absent").kind

    assert kind_of(ours.machine, ours) == DEAD
    assert kind_of("f" * 32, ours) == UNCERTAIN
    assert kind_of(None, ours) == UNCERTAIN
    assert kind_of(ours.machine, ours.replace(machine=None)) == UNCERTAIN
