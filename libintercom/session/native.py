"""The native id that a session keeps for a name: one for each (name, real working directory).

Owns the small file that remembers it and the lock that shows it is in use (sessions.md section 1). Does not own what
else gives an id (``libintercom.identity``) nor the journal that the id names.
"""

from __future__ import annotations

import json
import os

from libintercom.errors import InvalidConfiguration
from libintercom.identity import find_native_id, make_uuid, sha256_hex
from libintercom.session.errors import NativeIdUnavailable
from libintercom.wire.values import js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

# The folder below the state directory; beside it are the journals.
NAMES = "names"
# A remembered id is a line of well under a hundred bytes; what is longer was not written by us.
_MOST_BYTES = 4096


class NativeClaim:
    """A native id in use. ``is_kept``: the one of its name, which the next session of that name gets again.

    Release it when the session has left; it ends with the program at the latest.
    """

    def __init__(self, native_id: str, descriptor: int = -1) -> None:
        self.native_id = native_id
        self._descriptor = descriptor

    @property
    def is_kept(self) -> bool:
        return self._descriptor >= 0

    def release(self) -> None:
        """Let the next session of this name have the id."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.release()


def claim_native_id(name: str, cwd: str, *, folder: str | None = None) -> NativeClaim:
    """The id of ``name`` in ``cwd``; a fresh one, kept for nobody, while another live session has it.

    ``folder`` defaults to ``names`` below the state directory; it is made when missing, for this user alone.

    Raises:
        NativeIdUnavailable: the folder or the file cannot be used; the reason says why.

    """
    place = folder or _default_folder()
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        descriptor = _open(os.path.join(place, _file_name(name, cwd)))
    except OSError as error:
        raise NativeIdUnavailable(name, place, error.strerror or str(error)) from None
    try:
        return _claim(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise NativeIdUnavailable(name, place, error.strerror or str(error)) from None


def find_kept_id(name: str, cwd: str, *, folder: str | None = None) -> str:
    """The id that ``name`` has in ``cwd``, whoever uses it now; ``""`` when no session of that name joined there."""
    try:
        descriptor = os.open(
            os.path.join(folder or _default_folder(), _file_name(name, cwd)),
            os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC,
        )
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise NativeIdUnavailable(name, folder or _default_folder(), error.strerror or str(error)) from None
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


def _default_folder() -> str:
    from libintercom.paths import find_places

    return os.path.join(find_places().state_dir, NAMES)


def _file_name(name: str, cwd: str) -> str:
    # The name as others read it; the directory by what it is, so that a link to it is the same place.
    key = js_trim(name).encode("utf-8", "surrogatepass") + b"\0" + os.fsencode(os.path.realpath(cwd))
    return f"{sha256_hex(key)}.json"


def _open(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _claim(descriptor: int) -> NativeClaim:
    # Imported here: only a session that has a name of its own keeps an id.
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return NativeClaim(make_uuid())
    return NativeClaim(_read(descriptor) or _write(descriptor, make_uuid()), descriptor)


def _read(descriptor: int) -> str:
    """The remembered id; empty when none was written, or not by us."""
    try:
        told = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
        return find_native_id(str(told["nativeId"]), {})
    except (ValueError, KeyError, TypeError, InvalidConfiguration):
        return ""


def _write(descriptor: int, native_id: str) -> str:
    # Synced before anybody joins under it: an id that is forgotten after a power loss would lose its journal.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"nativeId": native_id}).encode() + b"\n", 0)
    os.fsync(descriptor)
    return native_id
