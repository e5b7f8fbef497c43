"""What the machine says, read from a made-up /proc: every file missing, hidden, garbled, or of another namespace."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from libintercom.ownership import macos, readings
from libintercom.ownership.records import Identity
from libintercom.ownership.verdict import EXISTS, FORBIDDEN, MISSING, UNKNOWN
from libintercom.platforms import ANDROID, LINUX, MACOS
from tests.support.owners import BOOT, MACHINE, PID_NS, TIME_NS

if TYPE_CHECKING:
    from pathlib import Path

STAT = b"4711 (%s) S 1 4711 4711 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 197720 3133440 388 18446744073709551615"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc that shows this program's pids: boot id, namespaces, status and one line of stat."""
    own = tmp_path / "self"
    (own / "ns").mkdir(parents=True)
    (own / "ns" / "pid").symlink_to(PID_NS)
    (own / "ns" / "time").symlink_to(TIME_NS)
    (own / "stat").write_bytes(STAT % b"python")
    (own / "status").write_text(f"Name:\tpython\nNSpid:\t{os.getpid()}\nThreads:\t1\n")
    random = tmp_path / "sys" / "kernel" / "random"
    random.mkdir(parents=True)
    (random / "boot_id").write_text(f"{BOOT}\n")
    (tmp_path / "4711").mkdir()
    (tmp_path / "4711" / "stat").write_bytes(STAT % b"node")
    return tmp_path


@pytest.fixture
def machine_id(tmp_path: Path) -> Path:
    path = tmp_path / "machine-id"
    path.write_text(f"{MACHINE}\n")
    return path


def test_linux_identity(proc: Path, machine_id: Path) -> None:
    ours = readings.read_ours(LINUX, str(proc), (str(machine_id),))
    assert (ours.platform, ours.machine, ours.is_initial_pid_ns) == (LINUX, MACHINE, True)
    assert ours.identity == Identity(boot_id=BOOT, pid_ns=PID_NS, time_ns=TIME_NS, start_ticks=197_720)
    assert ours.tick_ms == pytest.approx(1000 / os.sysconf("SC_CLK_TCK"))


def test_nothing_is_guessed_where_linux_says_nothing(tmp_path: Path) -> None:
    ours = readings.read_ours(LINUX, str(tmp_path), (str(tmp_path / "machine-id"),))
    assert (ours.machine, ours.identity, ours.is_initial_pid_ns) == (None, Identity(), False)


def test_another_pid_namespace_is_not_the_initial_one(proc: Path) -> None:
    (proc / "self" / "ns" / "pid").unlink()
    (proc / "self" / "ns" / "pid").symlink_to("pid:[4026532500]")
    assert not readings.read_ours(LINUX, str(proc)).is_initial_pid_ns


def test_a_kernel_without_time_namespaces(proc: Path) -> None:
    (proc / "self" / "ns" / "time").unlink()
    assert readings.read_ours(LINUX, str(proc)).identity.time_ns is None


@pytest.mark.parametrize("text", ["", "\n", "uninitialized\n", "3d1219c7\n", "z" * 31 + "\n", "-" * 32])
def test_a_machine_id_that_is_none(tmp_path: Path, text: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(text)
    assert readings.read_ours(LINUX, str(tmp_path), (str(first),)).machine is None
    second.write_text(MACHINE)
    assert readings.read_ours(LINUX, str(tmp_path), (str(first), str(second))).machine == MACHINE


@pytest.mark.parametrize(
    "command", [b"node", b"", b"a b", b") S 1 2 3", b"(((", b"))))", b"tmux: server) Z (", b"\xff\xfe"]
)
def test_stat_is_split_after_the_last_parenthesis(command: bytes) -> None:
    assert readings.parse_stat(STAT % command) == ("S", 197_720)


@pytest.mark.parametrize("line", [b"", b"4711", b"4711 (node", b"4711 (node) S 1 2", STAT.replace(b"197720", b"x")])
def test_a_garbled_stat_says_nothing(line: bytes) -> None:
    assert readings.parse_stat(line) == (None, None)


def test_stat_of_a_pid(proc: Path) -> None:
    assert readings.read_stat(4711, str(proc)) == ("S", 197_720)
    assert readings.read_stat(4712, str(proc)) == (None, None)


@pytest.mark.parametrize("pids", ["1 1", "77 OWN", "77", ""])
def test_stat_of_another_namespace_is_not_read(proc: Path, pids: str) -> None:
    """A parent's /proc shows another program under the same number."""
    (proc / "self" / "status").write_text(f"Name:\tpython\nNSpid:\t{pids.replace('OWN', str(os.getpid()))}\n")
    assert readings.read_stat(4711, str(proc)) == (None, None)


def test_an_old_kernel_is_asked_for_its_own_link(proc: Path) -> None:
    """Before Linux 4.1 there is no NSpid; /proc/self then is a link to the number, here as a folder's link."""
    status = f"Name:\tpython\nPid:\t{os.getpid()}\n"
    (proc / "self" / "status").write_text(status)
    assert readings.read_stat(4711, str(proc)) == (None, None)
    (proc / "self").rename(proc / str(os.getpid()))
    (proc / "self").symlink_to(str(os.getpid()))
    assert readings.read_stat(4711, str(proc)) == ("S", 197_720)


def test_a_hidden_proc_says_nothing(tmp_path: Path) -> None:
    assert readings.read_stat(4711, str(tmp_path)) == (None, None)


def test_this_program_reads_itself() -> None:
    assert readings.read_signal(os.getpid()) == EXISTS
    state, ticks = readings.read_stat(os.getpid())
    assert state == "R"
    assert ticks == readings.read_ours(LINUX).identity.start_ticks


@pytest.mark.parametrize(
    ("error", "signal"),
    [(ProcessLookupError(), MISSING), (PermissionError(), FORBIDDEN), (OSError(22, "EINVAL"), UNKNOWN)],
)
def test_signal_zero_and_its_errors(monkeypatch: pytest.MonkeyPatch, error: OSError, signal: str) -> None:
    sent = []

    def refuse(pid: int, number: int) -> None:
        sent.append((pid, number))
        raise error

    monkeypatch.setattr(os, "kill", refuse)
    assert readings.read_signal(4711) == signal
    assert sent == [(4711, 0)]


def test_android_reads_its_boot_clock_and_nothing_else() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
    ours = readings.read_ours(ANDROID, "/nonexistent")
    assert ours.machine is None
    boottime_ms = ours.identity.boottime_ms
    assert boottime_ms is not None
    assert before <= boottime_ms <= time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
    assert ours.identity == Identity(boottime_ms=boottime_ms)


def test_macos_reads_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos, "read_host_uuid", lambda: "HOST")
    monkeypatch.setattr(macos, "read_boot_session", lambda: "BOOT")
    monkeypatch.setattr(macos, "read_birth_us", lambda pid: pid * 10)
    ours = readings.read_ours(MACOS, "/nonexistent")
    assert (ours.machine, ours.is_initial_pid_ns) == ("HOST", True)
    assert ours.identity == Identity(boot_id="BOOT", birth_us=os.getpid() * 10)
    assert readings.read_birth_us(7, MACOS) == 70
    assert readings.read_birth_us(7, LINUX) is None
