"""What this machine says about itself, about this program and about a pid.

Owns the readers of identity: /proc on Linux and Android, the system calls of macOS (``macos``). Judges nothing
(``verdict``). Every reader answers ``None`` where the machine does not say; ``proc`` is where /proc is, so that
tests can put another one there.
"""

from __future__ import annotations

import os
import time

from libintercom.ownership.records import Identity
from libintercom.ownership.verdict import EXISTS, FORBIDDEN, MISSING, UNKNOWN, Ours
from libintercom.platforms import ANDROID, LINUX, MACOS, current_platform

TYPE_CHECKING = False

PROC = "/proc"
# machine-id(5), and its older place on systems without systemd.
MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")

# The inode of the first pid namespace is fixed in the kernel (PROC_PID_INIT_INO, include/linux/proc_ns.h).
_INITIAL_PID_NS = "pid:[4026531836]"
# proc(5): state is the first member after the command name and starttime the twentieth (the 22nd of the line).
_STATE_INDEX, _START_INDEX = 0, 19
# Everything read here is one short line or page.
_READ_LIMIT_BYTES = 16384
_MACHINE_ID_CHARS = 32


def read_ours(platform: str = "", proc: str = PROC, machine_id_files: tuple[str, ...] = MACHINE_ID_FILES) -> Ours:
    """What this program is, on this machine, for comparing with a record or writing one."""
    name = platform or current_platform()
    return Ours(
        platform=name,
        pid=os.getpid(),
        machine=_read_machine(name, machine_id_files),
        identity=_read_identity(name, proc),
        # macOS has no pid namespaces: nothing hides there.
        is_initial_pid_ns=name == MACOS or _read_link(f"{proc}/self/ns/pid") == _INITIAL_PID_NS,
        tick_ms=1000.0 / os.sysconf("SC_CLK_TCK"),
    )


def read_signal(pid: int) -> str:
    """Ask for a pid with signal 0, the only signal ever sent to a program that is not ours."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return MISSING
    except PermissionError:
        return FORBIDDEN
    except OSError:
        return UNKNOWN
    return EXISTS


def read_stat(pid: int, proc: str = PROC) -> tuple[str | None, int | None]:
    """State letter and start tick of a pid; ``(None, None)`` where /proc hides it or shows another namespace's pids."""
    if not _shows_our_pids(proc):
        return None, None
    return parse_stat(_read_file(f"{proc}/{pid}/stat") or b"")


def parse_stat(line: bytes) -> tuple[str | None, int | None]:
    """State and start tick of a line of /proc/<pid>/stat.

    Split after the **last** parenthesis: the command name before it may hold spaces and parentheses of its own.
    """
    members = line.rpartition(b")")[2].split()
    if len(members) <= _START_INDEX or not members[_START_INDEX].isdigit():
        return None, None
    return members[_STATE_INDEX].decode("ascii", "replace"), int(members[_START_INDEX])


def read_birth_us(pid: int, platform: str = "") -> int | None:
    """macOS: when a pid was started, in Unix microseconds; absent elsewhere."""
    if (platform or current_platform()) != MACOS:
        return None
    from libintercom.ownership import macos  # imported here: it needs ctypes

    return macos.read_birth_us(pid)


def _read_machine(platform: str, files: tuple[str, ...]) -> str | None:
    if platform == MACOS:
        from libintercom.ownership import macos  # imported here: it needs ctypes

        return macos.read_host_uuid()
    if platform == LINUX:
        read = (_read_text(path) for path in files)
        return next((text for text in read if text and len(text) == _MACHINE_ID_CHARS and text.isalnum()), None)
    return None


def _read_identity(platform: str, proc: str) -> Identity:
    if platform == LINUX:
        return Identity(
            boot_id=_read_text(f"{proc}/sys/kernel/random/boot_id"),
            pid_ns=_read_link(f"{proc}/self/ns/pid"),
            # Absent before Linux 5.6, where there is only one.
            time_ns=_read_link(f"{proc}/self/ns/time"),
            start_ticks=parse_stat(_read_file(f"{proc}/self/stat") or b"")[1],
        )
    if platform == ANDROID:
        return Identity(boottime_ms=time.clock_gettime(time.CLOCK_BOOTTIME) * 1000.0)
    if platform == MACOS:
        from libintercom.ownership import macos  # imported here: it needs ctypes

        return Identity(boot_id=macos.read_boot_session(), birth_us=macos.read_birth_us(os.getpid()))
    return Identity()


def _shows_our_pids(proc: str) -> bool:
    """Whether this /proc counts pids as this program does.

    A program in a new pid namespace may still see its parent's /proc, where the same number is another program.
    ``NSpid`` lists a pid once for each namespace below the one that /proc was mounted in.
    """
    status = _read_file(f"{proc}/self/status") or b""
    line = next((line for line in status.split(b"\n") if line.startswith(b"NSpid:")), None)
    if line is not None:
        return line.split()[1:] == [str(os.getpid()).encode()]
    return _read_link(f"{proc}/self") == str(os.getpid())


def _read_file(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, _READ_LIMIT_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)


def _read_text(path: str) -> str | None:
    raw = _read_file(path)
    return raw.decode("ascii", "replace").strip() or None if raw else None


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
