"""What a scenario is: where the exploring begins, with which steps, and how deep.

Owns the shape, and who is there at the beginning. Does not own any scenario (``scenarios``, ``spool_scenarios``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.stateful import actions as do
from tests.stateful.twins import Twins
from tests.stateful.world import World
from tests.support.rig import make_router

if TYPE_CHECKING:
    from tests.stateful.actions import Action

Play = World | Twins


@dataclass(frozen=True)
class Scenario:
    """``opening`` is done first, then every sequence of ``alphabet`` up to ``depth`` steps.

    With an ``observer`` a twin without the ``hidden`` parts goes along.
    """

    name: str
    opening: tuple[Action, ...]
    alphabet: tuple[Action, ...]
    depth: int
    limits: dict[str, Any] = field(default_factory=dict)
    observer: str = ""
    hidden: str = ""

    def begin(self) -> Play:
        world: Play = World(make_router(**self.limits))
        if self.observer:
            world = Twins(self.observer, self.hidden, self.limits)
        for action in self.opening:
            assert world.perform(action), f"{self.name}: {action.label} cannot be done"
        return world


def present(*keys: str) -> tuple[Action, ...]:
    return tuple(step(key) for key in keys for step in (do.connects, do.registers))


ALL_PRESENT = present("A", "B", "a", "b")
