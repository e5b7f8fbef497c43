"""Two plays side by side, one without the sessions that an observer may not see: the observer must not tell them apart.

Owns the pair and the comparison: what the observer receives is the same to the byte, except for the times in rows (when
a visible session was last active is public, whoever made it so). Does not own exploring pairs (``explorer``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.stateful.watch import Violation
from tests.stateful.world import World
from tests.support.rig import make_router

if TYPE_CHECKING:
    from tests.stateful.actions import Action

_TIMES = re.compile(rb'"(lastSeen|lastActivity|lastIntercomActivity)":[0-9.]+')


class Twins:
    """``world`` with everybody, ``twin`` without the hidden ones."""

    def __init__(self, observer: str, hidden: str, limits: dict[str, Any]) -> None:
        self.observer, self.hidden = observer, hidden
        self.world, self.twin = World(make_router(**limits)), World(make_router(**limits))
        self.world.is_listened_to = self.twin.is_listened_to = True

    def perform(self, action: Action) -> bool:
        """One step in both, or in the world alone when a hidden session takes it."""
        is_hidden = action.who != "" and action.who in self.hidden
        has_acted = action.perform(self.world)
        if not is_hidden:
            is_same = action.perform(self.twin) == has_acted
            if not is_same and action.who == self.observer:
                raise Violation("twin", f"{self.observer} can do this only in one of the worlds")
        self._compare()
        return has_acted

    def _compare(self) -> None:
        seen, expected = _take(self.world, self.observer), _take(self.twin, self.observer)
        if seen != expected:
            differing = [pair for pair in zip(seen, expected, strict=False) if pair[0] != pair[1]]
            with_them, without = differing[0] if differing else (seen, expected)
            raise Violation("twin", f"{self.observer} received {with_them!r}, without {self.hidden} {without!r}")

    def outline(self) -> tuple[Any, ...]:
        return self.world.outline(), self.twin.outline()

    def wind_down(self) -> None:
        self.world.wind_down()


def _take(world: World, key: str) -> list[bytes]:
    heard, world.heard = world.heard.get(key, []), {}
    return [_TIMES.sub(rb'"\1":0', payload) for payload in heard]
