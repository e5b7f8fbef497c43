"""The self-check's table: every outcome of a probe with every state of the files."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from intercomd.edges.ownership.selfcheck import (
    KEEP,
    LEAVE,
    LEAVE_GHOST,
    LOOK_AGAIN,
    MISSING,
    OTHER,
    OURS,
    REPUBLISH,
    RESTORE_RECORD,
    Echo,
    Sight,
    decide,
)

PID = 100
IN_PLACE = Sight(is_directory_current=True, socket=OURS, record=OURS)
GONE = Sight(is_directory_current=False, socket=MISSING, record=MISSING)


def echo(outcome: str = "connected", **changes: Any) -> Echo:
    return Echo(**{"outcome": outcome, "is_accepting": True, "is_adopted": False, **changes})


@pytest.mark.parametrize(
    ("sight", "seen", "action"),
    [
        # Reachable: the peer of the probe is this program, or the nonce came back.
        (IN_PLACE, echo(peer_pid=PID), KEEP),
        (IN_PLACE, echo(is_nonce_back=True), KEEP),
        (IN_PLACE, echo(peer_pid=PID, is_nonce_back=False), KEEP),
        (IN_PLACE, echo(is_adopted=True, peer_pid=1, is_nonce_back=True), KEEP),
        (IN_PLACE.replace(socket=OTHER), echo(is_nonce_back=True), KEEP),
        (IN_PLACE.replace(record=MISSING), echo(peer_pid=PID), RESTORE_RECORD),
        (IN_PLACE.replace(record=OTHER), echo(is_nonce_back=True), RESTORE_RECORD),
        # Nobody is reachable there: publish again, or give the supervisor its socket back.
        (IN_PLACE.replace(socket=MISSING), echo("absent"), REPUBLISH),
        (IN_PLACE.replace(socket=OTHER), echo("refused"), REPUBLISH),
        (GONE, echo("absent"), REPUBLISH),
        (GONE, echo("absent", is_adopted=True), LEAVE_GHOST),
        (IN_PLACE.replace(socket=OTHER), echo("refused", is_adopted=True), LEAVE_GHOST),
        # Somebody else is reachable there.
        (IN_PLACE.replace(socket=OTHER), echo(peer_pid=PID + 1), LEAVE),
        (IN_PLACE, echo(peer_pid=PID + 1), LEAVE),
        (IN_PLACE.replace(socket=OTHER), echo(is_nonce_back=False), LEAVE),
        (IN_PLACE, echo(is_nonce_back=False), LEAVE),
        (IN_PLACE, echo(is_adopted=True, peer_pid=1, is_nonce_back=False), LEAVE),
        (IN_PLACE.replace(socket=OTHER), echo("foreign"), LEAVE),
        (IN_PLACE.replace(socket=OTHER), echo("failed"), LEAVE),
        # Nothing is proven.
        (IN_PLACE, echo(), LOOK_AGAIN),
        (IN_PLACE, echo(is_adopted=True, peer_pid=1), LOOK_AGAIN),
        (IN_PLACE, echo(is_adopted=True, peer_pid=PID), LOOK_AGAIN),
        (IN_PLACE, echo(is_nonce_back=False, is_accepting=False), LOOK_AGAIN),
        (IN_PLACE, echo("busy"), LOOK_AGAIN),
        (IN_PLACE, echo("failed"), LOOK_AGAIN),
        (IN_PLACE.replace(socket=MISSING), echo("failed"), LOOK_AGAIN),
        (IN_PLACE, echo("not_permitted"), LOOK_AGAIN),
    ],
)
def test_the_table(sight: Sight, seen: Echo, action: str) -> None:
    assert decide(sight, seen, PID) == action


def test_over_the_whole_table() -> None:
    """Nobody leaves or publishes again who is proven reachable, and nobody stays where another one is proven to be."""
    outcomes = ("connected", "absent", "refused", "busy", "not_permitted", "foreign", "failed")
    places = (OURS, MISSING, OTHER)
    count = 0
    for outcome, pid, nonce, accepting, adopted, socket, record in itertools.product(
        outcomes, (None, PID, PID + 1), (None, True, False), (True, False), (True, False), places, places
    ):
        sight = Sight(is_directory_current=True, socket=socket, record=record)
        seen = echo(outcome, peer_pid=pid, is_nonce_back=nonce, is_accepting=accepting, is_adopted=adopted)
        action = decide(sight, seen, PID)
        is_reachable = outcome == "connected" and (nonce or (pid == PID and not adopted))
        assert (action in (KEEP, RESTORE_RECORD)) == bool(is_reachable)
        assert (action == REPUBLISH) == (outcome in ("absent", "refused") and not adopted)
        assert (action == LEAVE_GHOST) == (outcome in ("absent", "refused") and adopted)
        count += 1
    assert count == 7 * 3 * 3 * 2 * 2 * 3 * 3
