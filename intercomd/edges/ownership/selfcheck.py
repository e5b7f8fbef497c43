"""The self-check's decision: whether this broker still is the owner, and what follows (ownership.md section 5).

Owns the table from what was seen to what to do. Pure; looking is ``holding.Ownership.check`` and
``libintercom.endpoint.probe``, and seeing the nonce arrive is the listener's.

Owner is who is reachable at the canonical path and accepts registrations. A file's inode alone does not prove it, since
inode numbers are reused, and the inode of a listening socket is never that of its path.
"""

from __future__ import annotations

import os

from libintercom import endpoint
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import BOOL, COUNT, STRING, one_of

# Where a name leads.
OURS = "ours"
MISSING = "missing"
OTHER = "other"

# What follows.
KEEP = "keep"  # everything in its place
RESTORE_RECORD = "restore_record"  # reachable, but the record is gone: Ownership.restore_record
REPUBLISH = "republish"  # nobody can reach us: Ownership.republish
LEAVE = "leave"  # somebody else is reachable there: stop accepting, drain, exit, unlink nothing
LEAVE_GHOST = "leave_ghost"  # the supervisor's socket lost its path: exit with GHOST_STATUS
LOOK_AGAIN = "look_again"  # nothing is proven yet

# In RestartPreventExitStatus of the units: each restart would inherit the same socket without a path.
GHOST_STATUS = 75
GHOST_REMEDY = "the socket that the supervisor handed over lost its path; restart the socket unit"

# Between two self-checks of a broker that nobody asks to look (SIGUSR1 does).
CHECK_INTERVAL_S = 60.0
# How long a nonce may take to come back: connect and accept are one turn of the loop, and a full disk or a stopped
# program may hold that up.
NONCE_TIMEOUT_S = 5.0


class Sight(Record):
    """Where directory, socket and record stand, by path. ``socket`` and ``record``: ours, missing or other."""

    is_directory_current: bool = required(BOOL)
    socket: str = required(one_of(OURS, MISSING, OTHER))
    record: str = required(one_of(OURS, MISSING, OTHER))


class Echo(Record):
    """What became of a probe: its outcome and peer (``libintercom.endpoint``), and the nonce.

    ``is_nonce_back`` is absent while it may still come. ``is_accepting`` says whether our listener takes connections
    just now; while it does not, a nonce that stays away proves nothing.
    """

    outcome: str = required(STRING)
    peer_pid: int | None = optional(COUNT, default=None)
    is_nonce_back: bool | None = optional(BOOL, default=None)
    is_accepting: bool = required(BOOL)
    is_adopted: bool = required(BOOL)


def decide(sight: Sight, echo: Echo, own_pid: int | None = None) -> str:
    """What follows from a look at the files and a probe of the path."""
    if echo.outcome == endpoint.CONNECTED:
        return _decide_connected(sight, echo, os.getpid() if own_pid is None else own_pid)
    if echo.outcome in (endpoint.ABSENT, endpoint.REFUSED):
        return LEAVE_GHOST if echo.is_adopted else REPUBLISH
    if echo.outcome == endpoint.FOREIGN:
        return LEAVE
    if echo.outcome == endpoint.FAILED and sight.socket == OTHER:
        # Something that is no socket has our name; it is not ours to remove.
        return LEAVE
    return LOOK_AGAIN


def _decide_connected(sight: Sight, echo: Echo, own_pid: int) -> str:
    # Whoever called listen() is this very program: proof enough, unless the supervisor called it for us.
    if echo.is_nonce_back or (echo.peer_pid == own_pid and not echo.is_adopted):
        return KEEP if sight.record == OURS else RESTORE_RECORD
    if echo.peer_pid is not None and not echo.is_adopted:
        return LEAVE
    if echo.is_nonce_back is None or not echo.is_accepting:
        return LOOK_AGAIN
    return LEAVE
