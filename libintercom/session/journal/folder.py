"""The folder of journals: whose it is, which file is whose, and who holds one.

Owns making the folder (0700) and an empty journal file (0600, before its first byte), the names of files, the lock
with its holder's process id, and moving a damaged file aside. Does not own what is in a journal (``schema``,
``store``).

The checks are those of the runtime directory (``libintercom.ownership.directory``): through a descriptor, by owner,
mode and kind, never on a network filesystem, where locks and SQLite's shared memory mean nothing.
"""

from __future__ import annotations

import os
import stat
import time
from hashlib import sha256

from libintercom.errors import UnsafeDirectory
from libintercom.ownership.directory import PRIVATE_MODE, open_directory
from libintercom.ownership.filesystems import read_network_type
from libintercom.ownership.locks import wait_for_lock
from libintercom.session.faults import reach
from libintercom.session.journal.failures import JournalBusy, JournalUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.locks import FileLock

SUFFIX = ".sqlite"
# SQLite's own names beside a database: the write-ahead log and the shared memory over it.
LOG_SUFFIX, SHARED_SUFFIX = "-wal", "-shm"
# Beside a file that is not yet in its mode with a log: the first moments of its life.
ROLLBACK_SUFFIX = "-journal"
LOCK_SUFFIX = ".lock"
# Left when a journal found itself damaged while it worked: the next open examines every page.
SUSPECT_SUFFIX = ".suspect"
# Between a journal's name and the time at which its file was set aside.
ASIDE = ".damaged-"
_FILE_MODE = 0o600
# A process id has at most seven digits on Linux and fewer elsewhere; the rest is a newline.
_PID_BYTES = 16

# Somebody who only asks whether a journal is held, holds its lock for some microseconds.
_PROBE_S = 0.05

_SAFE_PLACE = "Set XDG_STATE_HOME to a private folder of yours on a local filesystem, or go without a journal."
_NO_ROOM = "Free some space, or set XDG_STATE_HOME to a folder that can be written."


def stem_of(native_id: str) -> str:
    """The file name without suffix: native ids may hold anything, file names may not."""
    return sha256(native_id.encode("utf-8", "surrogatepass")).hexdigest()


def open_folder(path: str, *, network_type: Callable[[int], str] = read_network_type) -> RuntimeDirectory:
    """Open the folder of journals, made with its parents when missing. Raises JournalUnavailable with the reason."""
    try:
        _make_parents(os.path.dirname(path))
        is_new = not os.path.lexists(path)
        folder = open_directory(path, network_type=network_type)
    except UnsafeDirectory as refusal:
        owner = f" (owner: {refusal.owner})" if refusal.owner else ""
        raise JournalUnavailable(path, f"the folder cannot be used{owner}: {refusal.reason}", _SAFE_PLACE) from refusal
    except OSError as error:
        raise JournalUnavailable(path, f"the folder cannot be made ({error.strerror})", _SAFE_PLACE) from error
    if is_new:
        sync_folder(os.path.dirname(path))
    return folder


def lock_journal(folder: RuntimeDirectory, stem: str) -> FileLock:
    """Become the one owner of a journal, and write our process id where the next one looks for it.

    Raises:
        JournalBusy: a live process is its owner.
        JournalUnavailable: the lock file cannot be made, or is not ours.

    """
    name = stem + LOCK_SUFFIX
    path = f"{folder.path}/{stem}{SUFFIX}"
    try:
        create_private(folder, name)
        lock = wait_for_lock(folder, name, _PROBE_S)
    except UnsafeDirectory as refusal:
        raise JournalUnavailable(path, refusal.reason, _SAFE_PLACE) from refusal
    except OSError as error:
        raise JournalUnavailable(path, f"its lock cannot be made ({error.strerror})", _NO_ROOM) from error
    if lock is None:
        raise JournalBusy(path, read_holder(folder, stem))
    _write_holder(lock, path)
    reach("journal.locked")
    return lock


def read_holder(folder: RuntimeDirectory, stem: str) -> int:
    """The process id in the lock file; 0 when there is none yet. It means something while the lock is held."""
    try:
        fd = folder.open(stem + LOCK_SUFFIX, os.O_RDONLY)
    except OSError:
        return 0
    try:
        said = os.read(fd, _PID_BYTES).strip()
        return int(said) if said.isdigit() else 0
    finally:
        os.close(fd)


def create_private(folder: RuntimeDirectory, name: str) -> bool:
    """Make an empty file of mode 0600, whatever the umask; ``False`` when the name is taken. Raises OSError."""
    try:
        fd = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    except FileExistsError:
        return False
    try:
        os.fchmod(fd, _FILE_MODE)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.fsync(folder.fd)
    return True


def require_private(folder: RuntimeDirectory, name: str) -> None:
    """Raise JournalUnavailable unless ``name`` is missing or an ordinary file of ours that nobody else may open.

    Looked at without opening: closing a second descriptor would end SQLite's own locks in this process.
    """
    try:
        seen = folder.stat(name)
    except FileNotFoundError:
        return
    path = f"{folder.path}/{name}"
    if not stat.S_ISREG(seen.st_mode) or seen.st_uid != folder.uid:
        raise JournalUnavailable(path, "it is not an ordinary file of yours", "Move it away.")
    if seen.st_nlink != 1:
        reason = f"it has {seen.st_nlink} names, and SQLite a log for each"
        raise JournalUnavailable(path, reason, "Remove the other name.")
    if seen.st_mode & 0o077:
        reason = f"its mode is {stat.S_IMODE(seen.st_mode):04o}; nobody else may have access"
        raise JournalUnavailable(path, reason, f"Look at what others did with it, then: chmod 600 {path}")


def set_aside(folder: RuntimeDirectory, stem: str, now_s: float | None = None) -> str:
    """Give a damaged journal a name of its own, never one that exists; the path of what was the database.

    The log first: a log without its database is harmless, but a fresh database would swallow the log of an old one.
    """
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_s))
    aside = _free_name(folder, f"{stem}{ASIDE}{moment}")
    for suffix in (ROLLBACK_SUFFIX, LOG_SUFFIX):
        if folder.mark(stem + SUFFIX + suffix) is not None:
            folder.rename(stem + SUFFIX + suffix, aside + suffix)
    os.fsync(folder.fd)
    reach("journal.aside_log")
    if folder.mark(stem + SUFFIX) is not None:
        folder.rename(stem + SUFFIX, aside)
    os.fsync(folder.fd)
    reach("journal.aside")
    for name in (stem + SUFFIX + SHARED_SUFFIX, stem + SUSPECT_SUFFIX):
        remove(folder, name)
    return f"{folder.path}/{aside}"


def mark_suspect(folder: RuntimeDirectory, stem: str) -> None:
    """Have the next open examine every page. Where nothing can be written the file is examined in part, as ever."""
    try:
        create_private(folder, stem + SUSPECT_SUFFIX)
    except OSError:
        pass


def remove(folder: RuntimeDirectory, name: str) -> None:
    """Unlink a file that may be gone already."""
    try:
        folder.unlink(name)
    except FileNotFoundError:
        pass


def sync_folder(path: str) -> None:
    """Make names in a directory durable (open(2) and fsync(2) of a file do not)."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _free_name(folder: RuntimeDirectory, wanted: str) -> str:
    """``wanted``, or with a number: the owner's lock keeps others from taking it meanwhile."""
    taken = set(folder.names())
    names = (f"{wanted}{f'-{number}' if number else ''}{SUFFIX}" for number in range(len(taken) + 1))
    return next(name for name in names if name not in taken and name + LOG_SUFFIX not in taken)


def _make_parents(path: str) -> None:
    """Each missing one with mode 0700 and its name on disk."""
    if os.path.isdir(path):
        return
    _make_parents(os.path.dirname(path))
    try:
        os.mkdir(path, PRIVATE_MODE)
    except FileExistsError:
        return
    sync_folder(os.path.dirname(path))


def _write_holder(lock: FileLock, path: str) -> None:
    try:
        os.ftruncate(lock.fd, 0)
        os.pwrite(lock.fd, b"%d\n" % os.getpid(), 0)
    except OSError as error:
        lock.release()
        raise JournalUnavailable(path, f"its lock cannot be written ({error.strerror})", _NO_ROOM) from error
