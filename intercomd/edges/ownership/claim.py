"""The claim ``broker.spawn.lock``: what other programs of the lineage read before they start a broker.

Owns publishing it so that exactly one program can, keeping it open and locked, and taking only it away again. They take
no start lock, so publication is exclusive by itself: a complete, locked file gets the name by link(2), which fails when
the name is taken. Age never makes a claim stale. Whether an existing claim still counts is ``publishing``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from intercomd.edges.ownership.life import write_owner
from libintercom.ownership.directory import mark_of
from libintercom.ownership.locks import lock_exclusively
from libintercom.ownership.records import CLAIM
from libintercom.ownership.temporaries import discard, make_temporary, remove_if_same
from libintercom.paths import CLAIM_NAME
from libintercom.platforms import ANDROID

if TYPE_CHECKING:
    from typing import Self

    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.verdict import Ours


class Claim:
    """A published claim, until ``release``."""

    def __init__(self, directory: RuntimeDirectory, fd: int) -> None:
        self.directory, self.fd = directory, fd
        self.mark = mark_of(os.fstat(fd))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        self.release()

    def is_current(self) -> bool:
        """Whether the name still is ours: another program may have judged us dead."""
        return self.directory.mark(CLAIM_NAME) == self.mark

    def release(self) -> None:
        """Unlink the claim if it is still ours, then unlock it; harmless when repeated."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            try:
                remove_if_same(self.directory, CLAIM_NAME, self.mark)
            except OSError:
                # A full disk. Unlocked it is a dead one, which the next start takes away.
                pass
            finally:
                os.close(fd)


def publish_claim(directory: RuntimeDirectory, ours: Ours) -> Claim | None:
    """Publish our claim; ``None`` when the name is taken. Raises OSError where no file can be made."""
    if ours.platform == ANDROID:
        return _publish_in_place(directory, ours)
    name, fd = make_temporary(directory)
    try:
        _fill(fd, ours)
        directory.link(name, CLAIM_NAME)
    except FileExistsError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    finally:
        discard(directory, name)
    return Claim(directory, fd)


def _publish_in_place(directory: RuntimeDirectory, ours: Ours) -> Claim | None:
    """Android has no hard links: the name is taken first and filled by one write."""
    try:
        fd = directory.open(CLAIM_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return None
    claim = Claim(directory, fd)
    try:
        _fill(fd, ours)
    except BaseException:
        claim.release()
        raise
    return claim


def _fill(fd: int, ours: Ours) -> None:
    lock_exclusively(fd)
    write_owner(fd, CLAIM, ours)
