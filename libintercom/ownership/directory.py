"""The runtime directory: opened once, judged, and then used through its descriptor (ownership.md section 1).

Owns creating, checking and opening the directory, file operations inside it, and the shared lock that keeps a
cleaner of /tmp away. Does not own which directory it is (``libintercom.paths``) nor the files in it.

A directory that is not safe is refused with its path, owner and remedy; it is never deleted or repaired. A directory
that was moved aside still answers through its descriptor, so ``require_current`` compares it with its path.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from libintercom.errors import UnsafeDirectory
from libintercom.ownership.filesystems import read_network_type
from libintercom.ownership.records import Mark
from libintercom.platforms import ANDROID, current_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Self

PRIVATE_MODE = 0o700
# What nobody but the owner may have on the directory.
_OTHERS_MASK = 0o077
_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Android's "system" user owns the folders above those of an app.
_ANDROID_SYSTEM_UID = 1000
# path_resolution(7): the kernel itself follows no more symbolic links than this.
_LINK_LIMIT = 40
# A directory that vanishes more often right after it was made is taken away by more than a cleaner.
_MAKE_LIMIT = 8
# user_namespaces(7): what the first user namespace shows as its map.
_FULL_UID_MAP = ["0", "0", "4294967295"]


class RuntimeDirectory:
    """An open, checked runtime directory. Close it, or use it in a ``with`` statement."""

    def __init__(self, path: str, fd: int, uid: int) -> None:
        self.path, self.fd, self.uid = path, fd, uid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the descriptor and with it the shared lock; harmless when repeated."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    @property
    def is_closed(self) -> bool:
        return self.fd < 0

    def is_current(self) -> bool:
        """Whether the path still leads to this directory."""
        try:
            return mark_of(os.lstat(self.path)) == mark_of(os.fstat(self.fd))
        except OSError:
            return False

    def require_current(self) -> None:
        """Raise ``UnsafeDirectory`` when the directory was moved aside or replaced since it was opened."""
        if not self.is_current():
            raise UnsafeDirectory(self.path, "it was moved or replaced while it was in use")

    def share(self) -> bool:
        """Take or keep the shared lock, without waiting; systemd-tmpfiles leaves a directory alone that has one."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Open a file in the directory; a symbolic link is never followed and a FIFO never waited for."""
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        return os.open(name, flags, mode, dir_fd=self.fd)

    def mark(self, name: str) -> Mark | None:
        """Which file has that name now, or ``None``; a link is looked at itself."""
        try:
            return mark_of(self.stat(name))
        except FileNotFoundError:
            return None

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def names(self) -> list[str]:
        return os.listdir(self.fd)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def link(self, old: str, new: str) -> None:
        os.link(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)

    def unlink(self, name: str) -> None:
        os.unlink(name, dir_fd=self.fd)


def mark_of(seen: os.stat_result) -> Mark:
    return Mark(dev=seen.st_dev, ino=seen.st_ino)


def open_directory(
    path: str,
    *,
    uid: int | None = None,
    is_created: bool = True,
    network_type: Callable[[int], str] = read_network_type,
) -> RuntimeDirectory:
    """Open ``path`` (absolute) if it is ours, private, local and nobody else can move it.

    Created with mode 0700 when it is missing and ``is_created``; its parents are not.

    Raises:
        UnsafeDirectory: it is missing, foreign, a link, too open, on a network filesystem, or below a directory that
            belongs to somebody else.

    """
    user = os.getuid() if uid is None else uid
    trusted = trusted_owners(user)
    _check_ancestors(path, trusted)
    fd = _make_and_open(path, user) if is_created else _open(path, user)
    try:
        _check_opened(path, os.fstat(fd), user)
        _check_local(path, network_type(fd))
    except BaseException:
        os.close(fd)
        raise
    return RuntimeDirectory(path, fd, user)


def trusted_owners(uid: int, platform: str = "", proc: str = "/proc") -> frozenset[int]:
    """Whose directories and settings may decide for us: root, ourselves, Android's system, the unmapped owner.

    In a user namespace the owners outside it, root among them, all show as the overflow uid.
    """
    owners = {0, uid}
    if (platform or current_platform()) == ANDROID:
        owners.add(_ANDROID_SYSTEM_UID)
    if _read_words(f"{proc}/self/uid_map") not in ([], _FULL_UID_MAP):
        owners.update(int(word) for word in _read_words(f"{proc}/sys/kernel/overflowuid"))
    return frozenset(owners)


def describe_owner(uid: int) -> str:
    """``uid 1000 (alice)``, for a message."""
    import pwd  # imported here: only a refusal names somebody, and the lookup may ask a directory server

    try:
        return f"uid {uid} ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        return f"uid {uid}"


def _read_words(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


def _check_ancestors(path: str, trusted: frozenset[int]) -> None:
    """Walk to the parent of ``path`` as the kernel would, judging each directory and link on the way."""
    pending = os.path.dirname(path).split("/")[::-1]
    current, links = "/", 0
    _check_ancestor(path, current, os.lstat(current), trusted)
    while pending:
        name = pending.pop()
        if name in ("", "."):
            continue
        if name == "..":
            current = os.path.dirname(current)
            continue
        step = os.path.join(current, name)
        seen = _look(path, step)
        _check_ancestor(path, step, seen, trusted)
        if not stat.S_ISLNK(seen.st_mode):
            current = step
            continue
        links += 1
        if links > _LINK_LIMIT:
            raise UnsafeDirectory(path, f"more than {_LINK_LIMIT} symbolic links lead to it")
        target = os.readlink(step)
        current = "/" if target.startswith("/") else current
        pending.extend(target.split("/")[::-1])


def _look(path: str, step: str) -> os.stat_result:
    try:
        return os.lstat(step)
    except OSError as error:
        raise UnsafeDirectory(path, f"its parent {step} cannot be examined ({error.strerror})") from error


def _check_ancestor(path: str, step: str, seen: os.stat_result, trusted: frozenset[int]) -> None:
    if seen.st_uid not in trusted:
        reason = f"its parent {step} belongs to somebody else, who can move what lies below"
        raise UnsafeDirectory(path, reason, describe_owner(seen.st_uid))
    is_open = stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_IWOTH and not seen.st_mode & stat.S_ISVTX
    if is_open:
        reason = f"everybody may rename what lies in its parent {step} (mode {stat.S_IMODE(seen.st_mode):04o})"
        raise UnsafeDirectory(path, reason, describe_owner(seen.st_uid))


def _make_and_open(path: str, uid: int) -> int:
    """Again when a cleaner took the empty directory away between its making and its opening."""
    for _attempt in range(_MAKE_LIMIT):
        _create(path)
        try:
            return _open(path, uid)
        except UnsafeDirectory as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            vanished = error
    raise vanished


def _create(path: str) -> None:
    try:
        os.mkdir(path, PRIVATE_MODE)
    except FileExistsError:
        pass
    except OSError as error:
        raise UnsafeDirectory(path, f"it cannot be created ({error.strerror})") from error


def _check_entry(path: str, uid: int) -> None:
    """Judge the name first: it says more than the error of opening it."""
    try:
        seen = os.lstat(path)
    except OSError as error:
        raise UnsafeDirectory(path, f"it cannot be examined ({error.strerror})") from error
    if stat.S_ISLNK(seen.st_mode):
        raise UnsafeDirectory(path, "it is a symbolic link", describe_owner(seen.st_uid))
    _check_opened(path, seen, uid)


def _check_opened(path: str, seen: os.stat_result, uid: int) -> None:
    if not stat.S_ISDIR(seen.st_mode):
        raise UnsafeDirectory(path, "it is not a directory", describe_owner(seen.st_uid))
    if seen.st_uid != uid:
        raise UnsafeDirectory(path, "it belongs to another user", describe_owner(seen.st_uid))
    if seen.st_mode & _OTHERS_MASK:
        reason = f"its mode is {stat.S_IMODE(seen.st_mode):04o}; nobody else may have access (0700)"
        raise UnsafeDirectory(path, reason, describe_owner(seen.st_uid))


def _check_local(path: str, network_type: str) -> None:
    if network_type:
        reason = f"it is on a network filesystem ({network_type}), where locks and pids mean nothing"
        raise UnsafeDirectory(path, reason)


def _open(path: str, uid: int) -> int:
    _check_entry(path, uid)
    try:
        return os.open(path, _OPEN_FLAGS)
    except OSError as error:
        swapped = error.errno in (errno.ELOOP, errno.ENOTDIR)
        reason = "it was replaced while it was opened" if swapped else f"it cannot be opened ({error.strerror})"
        raise UnsafeDirectory(path, reason) from error
