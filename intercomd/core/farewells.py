"""Children that are parked no more: their mains hear of it once no restart can bring anything back (wire.md 9.5).

Owns the answers to ``unpark`` while the spool forgets. Does not own the children (``parking``) nor what becomes of
their messages (``inputs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from libintercom.wire.answers import ParkFailed, Unparked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from intercomd.core.parked import Child
    from intercomd.core.state import State


@dataclass(slots=True)
class Farewell:
    """One answer that is due. ``keys``: what the spool still has; ``dropped``: how many messages waited."""

    conn: int
    root: str
    child_id: str
    dropped: int
    keys: set[str]


class Farewells:
    """Answers by what they wait for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._by_key: dict[str, Farewell] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def begin(self, conn: int, child: Child, keys: Sequence[str]) -> None:
        """A child ends, and so does everything kept under ``keys``; each of them is about to be forgotten."""
        farewell = Farewell(conn, child.root, child.child_id, len(child.inputs), set(keys))
        self._by_key.update(dict.fromkeys(keys, farewell))

    def forgotten(self, key: str, failure: str = "") -> None:
        """Something is kept no longer, or (``failure``) a restart may bring it back for now."""
        farewell = self._by_key.pop(key, None)
        if farewell is None:
            return
        farewell.keys.discard(key)
        if failure:
            self._state.turn.log("error", "unparking not stored", child=farewell.child_id, reason=failure)
            self._end(farewell, ParkFailed(child_id=farewell.child_id, code="store_failed"))
        elif not farewell.keys:
            self._end(farewell, Unparked(child_id=farewell.child_id, dropped=farewell.dropped))

    def _end(self, farewell: Farewell, answer: ParkFailed | Unparked) -> None:
        for key in farewell.keys:
            self._by_key.pop(key, None)
        session = self._state.roster.session_of(farewell.conn)
        if session is not None and not session.is_child and session.root == farewell.root:
            self._state.turn.write(farewell.conn, answer)
