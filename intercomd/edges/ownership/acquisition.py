"""Taking the ownership of a namespace at the start of a broker: directory, start lock, publication.

Owns the way from "nobody is known to serve" to an ``Ownership`` or the reason why not. Standard library and
libintercom only: it runs before anything heavy is imported, since most candidates of a storm lose.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from intercomd.edges.ownership.holding import Ownership
from intercomd.edges.ownership.outcomes import Outcome, claimed, failed
from intercomd.edges.ownership.publishing import Start, judge_endpoint
from libintercom.endpoint import attempt
from libintercom.errors import UnsafeDirectory
from libintercom.ownership.directory import open_directory
from libintercom.ownership.locks import RETRY_S, wait_for_lock
from libintercom.ownership.readings import read_ours
from libintercom.paths import GUARD_NAME

if TYPE_CHECKING:
    from intercomd.edges.ownership.publishing import Prepare
    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.paths import Places

# How long a candidate waits for the start lock. A candidate holds it for some milliseconds; one that is stopped in the
# middle is reported instead of waited for, and the starter looks again.
LOCK_DEADLINE_S = 1.0


def acquire(places: Places, prepare: Prepare, *, deadline_s: float = LOCK_DEADLINE_S) -> Ownership | Outcome:
    """Become the owner of ``places``, or say why not. Never raises for what it finds.

    ``prepare`` binds and listens at a temporary name in the directory it is given. It is called at most once, under the
    start lock, after the verdict; the returned ownership holds the listening socket under its canonical name.
    """
    # Without waiting: a full backlog already says that somebody listens.
    seen = attempt(places.socket, timeout_s=0.0, uid=places.uid)
    seen.close()
    taken = judge_endpoint(seen)
    if taken is not None:
        return taken
    try:
        directory = open_directory(places.runtime_dir, uid=places.uid)
    except UnsafeDirectory as error:
        return failed(str(error), error.exit_status)
    except OSError as error:
        return failed(f"{places.runtime_dir} cannot be examined: {error}")
    won = _acquire_in(directory, places, prepare, time.monotonic() + deadline_s)
    if isinstance(won, Outcome):
        directory.close()
    return won


def _acquire_in(directory: RuntimeDirectory, places: Places, prepare: Prepare, end: float) -> Ownership | Outcome:
    try:
        if not _share(directory, end):
            return claimed(f"{places.runtime_dir} is locked, as a cleaner of temporary files does")
        guard = wait_for_lock(directory, GUARD_NAME, max(0.0, end - time.monotonic()))
        if guard is None:
            return claimed(f"{GUARD_NAME}: another candidate holds the start lock")
        with guard:
            ours = read_ours()
            published = Start(places, directory, guard, ours, prepare).publish()
    except (UnsafeDirectory, OSError) as error:
        if not directory.is_current():
            # By a cleaner, before we kept it away, or by somebody's hand; where the path leads now is another start.
            return claimed(f"{places.runtime_dir} was removed or replaced during the start")
        if isinstance(error, UnsafeDirectory):
            return failed(str(error), error.exit_status)
        return failed(f"{places.runtime_dir} cannot be used: {error}")
    if isinstance(published, Outcome):
        return published
    return Ownership(places, directory, ours, prepare, *published)


def _share(directory: RuntimeDirectory, end: float) -> bool:
    """Lock out the cleaners; they hold their own lock only while they read a directory."""
    while not directory.share():
        if time.monotonic() >= end:
            return False
        time.sleep(RETRY_S)
    return True
