"""Every sequence of a scenario's steps, depth first: each is one more step on a copy of the one before.

Owns the walk, the counting and what a violation is reported with. Does not own the steps nor what must hold.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from multiprocessing import get_context
from typing import TYPE_CHECKING, Self

from tests.stateful.copies import Copy
from tests.stateful.scenarios import BY_NAME, Play, Scenario
from tests.stateful.watch import Violation
from tests.stateful.world import KINDS_SEEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stateful.actions import Action

# After every so many sequences everybody leaves, and nothing may be left; doing so after all would take twice as long.
_WIND_DOWN_EVERY = 16


@dataclass
class Report:
    """What an exploration saw. A violation is told with the steps that led to it."""

    name: str
    sequences: int = 0
    wound_down: int = 0
    states: set[int] = field(default_factory=set)
    violations: list[tuple[Violation, list[str]]] = field(default_factory=list)
    # Names of the events, frames and deadlines that took part.
    kinds: set[str] = field(default_factory=set)

    def add(self, other: Report) -> None:
        self.sequences += other.sequences
        self.wound_down += other.wound_down
        self.states |= other.states
        self.violations += other.violations
        self.kinds |= other.kinds


def explore(scenario: Scenario, *, firsts: tuple[Action, ...] = (), stop_after: int = 3) -> Report:
    """Do every sequence, or those that begin with ``firsts``; a violation ends its branch, several the walk."""
    report = Report(scenario.name)
    _Walk(scenario, stop_after, report).go(Copy(scenario.begin()), [], firsts or scenario.alphabet)
    report.kinds |= KINDS_SEEN
    return report


class Exploration:
    """All scenarios on several processors at once, each first step a piece of work of its own."""

    def __init__(self, scenarios: Sequence[Scenario], workers: int) -> None:
        # Fresh interpreters: a fork would copy whatever the caller runs beside.
        self._pool = ProcessPoolExecutor(workers, get_context("spawn"))
        self._pieces = {
            scenario.name: [
                self._pool.submit(_explore_piece, scenario.name, at) for at in range(len(scenario.alphabet))
            ]
            for scenario in scenarios
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def report(self, name: str) -> Report:
        """Wait for one scenario."""
        whole = Report(name)
        for piece in self._pieces[name]:
            whole.add(piece.result())
        return whole


def _explore_piece(name: str, at: int) -> Report:
    scenario = BY_NAME[name]
    return explore(scenario, firsts=(scenario.alphabet[at],))


class _Walk:
    def __init__(self, scenario: Scenario, stop_after: int, report: Report) -> None:
        self.scenario, self.stop_after, self.report = scenario, stop_after, report

    def go(self, copied: Copy, trail: list[str], alphabet: Sequence[Action]) -> None:
        world = copied.restore()
        for action in alphabet:
            if len(self.report.violations) >= self.stop_after:
                return
            here = [*trail, action.label]
            try:
                if not world.perform(action):
                    # Nothing happened, so the same copy serves for the next step.
                    continue
                self._look_further(world, here)
            except Violation as violation:
                self.report.violations.append((violation, here))
            world = copied.restore()

    def _look_further(self, world: Play, here: list[str]) -> None:
        self.report.sequences += 1
        self.report.states.add(_digest(world.outline()))
        deeper = Copy(world) if len(here) < self.scenario.depth else None
        if self.report.sequences % _WIND_DOWN_EVERY == 0:
            self.report.wound_down += 1
            world.wind_down()
        if deeper is not None:
            self.go(deeper, here, self.scenario.alphabet)


def _digest(outline: tuple[object, ...]) -> int:
    """The same for the same state in every interpreter, which the built-in hash is not."""
    return int.from_bytes(blake2b(repr(outline).encode(), digest_size=8).digest())
