"""The life ``broker.pid``: the record of the owner, locked from before it has its name until the owner ends.

Owns writing the record's file, locking and renaming it. The lock survives the rename and ends with the program, so the
kernel itself answers whether the owner lives. Does not own when a record may be replaced (``publishing``).
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from libintercom.ownership.directory import mark_of
from libintercom.ownership.locks import lock_exclusively
from libintercom.ownership.records import BROKER, CLAIM, Publication, dump_owner
from libintercom.ownership.temporaries import discard, make_temporary, remove_if_same
from libintercom.paths import RECORD_NAME
from libintercom.version import __version__

if TYPE_CHECKING:
    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.verdict import Ours

PROGRAM = "intercomd"


class Life:
    """A locked record: unnamed until ``publish``, then the owner's. ``release`` ends it."""

    def __init__(self, directory: RuntimeDirectory, temporary: str, fd: int) -> None:
        self.directory, self.temporary, self.fd = directory, temporary, fd
        self.mark = mark_of(os.fstat(fd))

    def publish(self) -> None:
        """Give the record its name, over a dead one's."""
        self.directory.rename(self.temporary, RECORD_NAME)

    def is_current(self) -> bool:
        return self.directory.mark(RECORD_NAME) == self.mark

    def withdraw(self) -> None:
        """Take the record's name away if it is still ours; the lock stays. Only under the start lock."""
        remove_if_same(self.directory, RECORD_NAME, self.mark)

    def abandon(self) -> None:
        """Undo everything, published or not. Only under the start lock."""
        discard(self.directory, self.temporary)
        self.withdraw()
        self.release()

    def release(self) -> None:
        """Unlock: from now on the record, if it is still there, is a dead one. Harmless when repeated."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def begin_life(directory: RuntimeDirectory, ours: Ours) -> Life:
    """Write and lock a record that has no name yet. Raises OSError where no file can be made."""
    name, fd = make_temporary(directory)
    try:
        lock_exclusively(fd)
        write_owner(fd, BROKER, ours)
    except BaseException:
        os.close(fd)
        discard(directory, name)
        raise
    return Life(directory, name, fd)


def write_owner(fd: int, role: str, ours: Ours) -> None:
    """Fill the empty file ``fd`` with this program's record, by one write. Raises OSError when it does not fit."""
    now_ms = int(time.time() * 1000)
    publication = Publication(
        v=1,
        role=role,
        platform=ours.platform,
        machine=ours.machine,
        identity=ours.identity,
        file=mark_of(os.fstat(fd)),
        published_at_ms=now_ms,
        program=PROGRAM,
        version=__version__,
        flock=True,
    )
    raw = dump_owner(os.getpid(), publication, now_ms if role == CLAIM else None)
    if os.write(fd, raw) != len(raw):
        raise OSError(f"the record of {len(raw)} bytes was written in part; is the disk full?")
