"""Locks on files in the runtime directory: the start lock ``.guard``, the damper ``.gate``, and probing a record.

Owns taking a lock on a file that is never deleted by us, and asking whether somebody holds one. Does not own what
may be done under a lock.

flock(2), not fcntl(2) locks: it belongs to the open file, survives a rename, and ends with the last descriptor, so the
kernel itself says when an owner is gone.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time

from libintercom.errors import UnsafeDirectory
from libintercom.ownership.directory import describe_owner, mark_of
from libintercom.ownership.verdict import FREE, HELD, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Self

    from libintercom.ownership.directory import RuntimeDirectory

# Short beside a candidate's time under the lock (a few milliseconds), and nearly free: one failing system call.
RETRY_S = 0.01
# A cleaner may delete the lock file between opening and locking it; more often than this it is no cleaner.
_REOPEN_LIMIT = 8


class FileLock:
    """An exclusively locked file, until ``release``. ``is_current`` says whether it still has its name."""

    def __init__(self, directory: RuntimeDirectory, name: str, fd: int) -> None:
        self.directory, self.name, self.fd = directory, name, fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        self.release()

    def is_current(self) -> bool:
        return self.directory.mark(self.name) == mark_of(os.fstat(self.fd)) and self.directory.is_current()

    def release(self) -> None:
        """Unlock by closing; harmless when repeated."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def try_lock(directory: RuntimeDirectory, name: str) -> FileLock | None:
    """Lock ``name`` (made when missing) without waiting; ``None`` when somebody holds it.

    Raises:
        UnsafeDirectory: the file is not an ordinary file of ours, or the directory was moved aside meanwhile.
        OSError: it cannot be made (a full or read-only filesystem).

    """
    for _attempt in range(_REOPEN_LIMIT):
        fd = _open(directory, name)
        try:
            if not lock_exclusively(fd):
                os.close(fd)
                return None
        except BaseException:
            os.close(fd)
            raise
        lock = FileLock(directory, name, fd)
        try:
            # The file locked may have lost its name meanwhile; then somebody else can hold a lock under the same name.
            is_current = lock.is_current()
        except BaseException:
            lock.release()
            raise
        if is_current:
            return lock
        lock.release()
        directory.require_current()
    return None


def wait_for_lock(
    directory: RuntimeDirectory,
    name: str,
    deadline_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> FileLock | None:
    """Try every 10 ms for at most ``deadline_s`` seconds; at least once. Raises what ``try_lock`` raises."""
    end = clock() + deadline_s
    while True:
        lock = try_lock(directory, name)
        if lock is not None or clock() >= end:
            return lock
        sleep(RETRY_S)


def lock_exclusively(fd: int) -> bool:
    """Lock an open file without waiting; ``False`` when somebody holds it. Raises OSError where locks do not work."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def probe_lock(fd: int) -> str:
    """``held`` or ``free``; ``unknown`` where the filesystem has no locks.

    The attempt is shared and undone at once: an exclusive one would make a second prober see "held".
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return HELD
    except OSError:
        return UNKNOWN
    return FREE


def _open(directory: RuntimeDirectory, name: str) -> int:
    fd = directory.open(name, os.O_RDWR | os.O_CREAT)
    seen = os.fstat(fd)
    if stat.S_ISREG(seen.st_mode) and seen.st_uid == directory.uid:
        return fd
    os.close(fd)
    reason = f"{name} in it is not an ordinary file of yours"
    raise UnsafeDirectory(directory.path, reason, describe_owner(seen.st_uid))
