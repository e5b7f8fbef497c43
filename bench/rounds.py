"""One run of the benchmark: what is measured with, how often, and what was seen beside the goals.

Owns the rounds. Does not own any figure (``figures``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from bench import brokers
from bench.generating import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.brokers import Subject
    from bench.building import Programs
    from bench.machine import Placement
    from bench.spreads import Spread

T = TypeVar("T")

# The least whose median says something; a quick run only shows that everything can be measured.
_ROUNDS, _QUICK_ROUNDS = 5, 3


@dataclass
class Bench:
    """Handed to every figure. ``side_by_side``: column -> broker -> what it showed; ``limits``: kind -> limits."""

    programs: Programs
    same: Placement
    split: Placement
    is_quick: bool
    say: Callable[[str], None]
    side_by_side: dict[str, dict[str, Spread]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    limits: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return _QUICK_ROUNDS if self.is_quick else _ROUNDS

    def subjects(self) -> list[Subject]:
        return brokers.subjects(self.programs)

    def choose(self, full: int, quick: int) -> int:
        """A size of a full or of a quick run."""
        return quick if self.is_quick else full

    def note(self, column: str, unit: str, name: str, found: Spread) -> None:
        """Keep a broker's figure for the table of brokers side by side."""
        self.side_by_side.setdefault(column, {})[name] = found
        self.units[column] = unit


@dataclass
class Rounds(Generic[T]):
    """What each broker showed in each round, and why one could not be measured."""

    found: dict[str, list[T]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def why_not(self, *names: str) -> str:
        """Why one of them has no figures; ``""`` when all have."""
        absent = {brokers.C: "there is no C compiler"}
        known = {**absent, **self.failures}
        reasons = [f"{name}: {known.get(name, 'not here')}" for name in names if name not in self.found]
        return "; ".join(reasons)


def interleave(bench: Bench, subjects: list[Subject], measure: Callable[[Subject], T]) -> Rounds[T]:
    """Measure each once in every round, so that what disturbs the machine disturbs all alike.

    One that fails is left out of the following rounds, and its earlier rounds are dropped.
    """
    rounds: Rounds[T] = Rounds({subject.name: [] for subject in subjects})
    for turn in range(bench.rounds):
        for subject in [one for one in subjects if one.name not in rounds.failures]:
            bench.say(f"  round {turn + 1} of {bench.rounds}: {subject.name}")
            try:
                rounds.found[subject.name].append(measure(subject))
            except (Failed, OSError) as failure:
                rounds.failures[subject.name] = str(failure)
                del rounds.found[subject.name]
    return rounds
