"""Being the owner: what is held, whether it is still in its place, publishing again, and letting go.

Owns the descriptors of a living broker (directory, life) and every later step that unlinks or re-publishes. Does not
own the decision what to do about what is seen (``selfcheck``) nor serving the socket (the listener edge).

Nothing here waits: a step that needs the start lock tries once and says that it could not, and its caller comes back.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from intercomd.edges.ownership.life import begin_life
from intercomd.edges.ownership.outcomes import Outcome, claimed, failed
from intercomd.edges.ownership.publishing import Start
from intercomd.edges.ownership.selfcheck import MISSING, OTHER, OURS, Sight
from libintercom.endpoint import REFUSED
from libintercom.errors import UnsafeDirectory
from libintercom.ownership import verdict
from libintercom.ownership.directory import open_directory
from libintercom.ownership.inspection import inspect
from libintercom.ownership.locks import RETRY_S, try_lock
from libintercom.ownership.temporaries import remove_if_same
from libintercom.paths import CLAIM_NAME, GUARD_NAME, RECORD_NAME, SOCKET_NAME
from libintercom.wire.record import dump_record

if TYPE_CHECKING:
    import socket

    from intercomd.edges.ownership.life import Life
    from intercomd.edges.ownership.publishing import Bound, Prepare
    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.records import Mark
    from libintercom.ownership.verdict import Ours
    from libintercom.paths import Places

# Cleaners of temporary files go by age, in days; every six hours is young enough for all of them.
TOUCH_INTERVAL_S = 6 * 3600.0
# ownership.md section 5: past it an ending broker leaves its files, which the next one proves dead.
LEAVE_DEADLINE_S = 5.0


class Ownership:
    """The ownership of one namespace. ``listening`` is the socket at the canonical path, non-blocking.

    ``release`` ends it; a program that simply ends has released it too, since the kernel drops the locks.
    """

    def __init__(
        self,
        places: Places,
        directory: RuntimeDirectory,
        ours: Ours,
        prepare: Prepare,
        life: Life,
        bound: Bound,
    ) -> None:
        self.places, self._directory, self._ours, self._prepare = places, directory, ours, prepare
        self._life = life
        self.listening: socket.socket = bound.listening
        self._socket_mark: Mark = bound.mark

    @property
    def start_identity(self) -> dict[str, object]:
        """What tells this program from a later one with its pid, as its record says it (wire.md 14.9)."""
        return dump_record(self._ours.identity)

    def check(self) -> Sight:
        """Look whether directory, socket and record still stand in their places. Changes nothing."""
        is_current = self._directory.is_current()
        return Sight(
            is_directory_current=is_current,
            socket=self._place_of(SOCKET_NAME, self._socket_mark) if is_current else MISSING,
            record=self._place_of(RECORD_NAME, self._life.mark) if is_current else MISSING,
        )

    def republish(self) -> Outcome | None:
        """Publish record and socket anew, in a new directory where the old one is gone; ``None`` when done.

        Then ``listening`` is a new socket. The former one no longer has a name: whoever serves it accepts what its
        backlog holds and closes it. An outcome ``already`` means that somebody else serves now, ``claimed`` that
        somebody holds a lock (come back), ``uncertain`` and ``error`` that it cannot be done as things are.
        """
        try:
            directory = self._directory if self._directory.is_current() else open_directory(self.places.runtime_dir)
        except UnsafeDirectory as error:
            return failed(str(error), error.exit_status)
        except OSError as error:
            return failed(f"{self.places.runtime_dir} cannot be examined: {error}")
        outcome = self._republish_in(directory)
        if outcome is not None and directory is not self._directory:
            directory.close()
        return outcome

    def restore_record(self) -> bool:
        """Write the record again where it is missing or dead; ``False`` when a lock or a doubt forbids it now.

        For a socket that is still reachable; its owner is the owner, whoever wrote over its record.
        """
        try:
            guard = try_lock(self._directory, GUARD_NAME)
        except (OSError, UnsafeDirectory):
            return False
        if guard is None:
            return False
        try:
            with guard:
                # Somebody in the middle of a start judges the record just now.
                return self._directory.mark(CLAIM_NAME) is None and self._restore_under_lock()
        except OSError:
            return False

    def touch(self) -> None:
        """Make directory, socket and record look used; a missing one is the self-check's business."""
        os.utime(self._directory.fd)
        os.utime(self._life.fd)
        if self._directory.mark(SOCKET_NAME) == self._socket_mark:
            os.utime(SOCKET_NAME, dir_fd=self._directory.fd, follow_symlinks=False)

    def withdraw(self) -> bool:
        """Unlink our socket and record, and nothing else's; ``False`` when the start lock is not free just now.

        The locks stay: accept until the backlog is empty, then ``release``. The listening socket must still be open:
        while it is, no other file can have its inode.
        """
        if self._directory.is_closed:
            return True
        if not self._directory.is_current():
            # Nobody finds these by their path any more, so there is nobody to be kept apart from.
            self._remove_own()
            return True
        try:
            guard = try_lock(self._directory, GUARD_NAME)
        except (OSError, UnsafeDirectory):
            return False
        if guard is None:
            return False
        with guard:
            self._remove_own()
        return True

    def release(self) -> None:
        """End life and give up the directory; files that are still there are now a dead owner's."""
        self._life.release()
        self._directory.close()

    def leave(self, deadline_s: float = LEAVE_DEADLINE_S) -> bool:
        """Withdraw and release, waiting for the start lock at most ``deadline_s`` seconds; for a failed start.

        A serving broker calls ``withdraw`` and ``release`` itself, without blocking its loop. Past the deadline the
        files stay, and ``False`` is returned.
        """
        end = time.monotonic() + deadline_s
        try:
            has_withdrawn = self.withdraw()
            while not has_withdrawn and time.monotonic() < end:
                time.sleep(RETRY_S)
                has_withdrawn = self.withdraw()
        except OSError:
            # A directory that takes no change now; the next broker finds a dead one's files.
            has_withdrawn = False
        self.listening.close()
        self.release()
        return has_withdrawn

    def _place_of(self, name: str, mark: Mark) -> str:
        seen = self._directory.mark(name)
        return MISSING if seen is None else OURS if seen == mark else OTHER

    def _remove_own(self) -> None:
        remove_if_same(self._directory, SOCKET_NAME, self._socket_mark)
        self._life.withdraw()

    def _republish_in(self, directory: RuntimeDirectory) -> Outcome | None:
        try:
            if not directory.share():
                return claimed(f"{self.places.runtime_dir} is locked, as a cleaner of temporary files does")
            guard = try_lock(directory, GUARD_NAME)
            if guard is None:
                return claimed(f"{GUARD_NAME}: a candidate holds the start lock")
            with guard:
                own = self._life.mark if directory is self._directory else None
                published = Start(self.places, directory, guard, self._ours, self._prepare).publish(own)
        except UnsafeDirectory as error:
            return failed(str(error), error.exit_status)
        except OSError as error:
            return failed(f"{self.places.runtime_dir} cannot be used: {error}")
        if isinstance(published, Outcome):
            return published
        self._exchange(directory, *published)
        return None

    def _exchange(self, directory: RuntimeDirectory, life: Life, bound: Bound) -> None:
        self._life.release()
        if directory is not self._directory:
            self._directory.close()
        self._directory, self._life = directory, life
        self.listening, self._socket_mark = bound.listening, bound.mark

    def _restore_under_lock(self) -> bool:
        # The path leads to ourselves, so nobody else listens there: as good a proof as a refused connection.
        finding = inspect(self._directory, RECORD_NAME, self._ours, REFUSED)
        if finding.kind not in (verdict.ABSENT, verdict.DEAD):
            return finding.mark == self._life.mark
        life = begin_life(self._directory, self._ours)
        try:
            life.publish()
        except BaseException:
            life.abandon()
            raise
        self._life.release()
        self._life = life
        return True
