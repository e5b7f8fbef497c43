"""One encounter of a candidate: what it is called, what must be reported, and running it in a namespace of its own.

Owns the list that the tables fill (``owners``, ``places``). ``ready`` means that the candidate became the broker; for
every other report the files that were there must stay as they are, to the inode.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

from tests.trials.namespaces import namespace
from tests.trials.verdicts.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trials.verdicts.candidates import Report

    Act = Callable[[Scene], Report]

READY, ALREADY, CLAIMED, UNCERTAIN, ERROR = "ready", "already", "claimed", "uncertain", "error"


@dataclasses.dataclass(frozen=True)
class Encounter:
    """``result`` and ``words``: what the report must be and must contain. ``needs``: see ``privileges``."""

    name: str
    act: Act
    result: str
    words: str
    needs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Met:
    """What was seen of an encounter."""

    encounter: Encounter
    report: Report
    seen: str

    @property
    def violation(self) -> str:
        """What is wrong, or "" when it is as it must be."""
        expected = f"{self.encounter.result} with {self.encounter.words!r}"
        if self.report.result != self.encounter.result or self.encounter.words not in self.report.reason:
            return f"{self.encounter.name}: expected {expected}, seen {self.report}"
        return f"{self.encounter.name}:{self.seen}" if "CHANGED" in self.seen else ""

    def __str__(self) -> str:
        beside = f" ({self.seen.strip()})" if self.seen else ""
        return f"{self.encounter.name}{beside}: {self.report.result}, {self.report.reason or 'no reason'}"


ENCOUNTERS: list[Encounter] = []


def encounter(name: str, result: str, words: str = "", needs: tuple[str, ...] = ()) -> Callable[[Act], Act]:
    def enter(act: Act) -> Act:
        ENCOUNTERS.append(Encounter(name, act, result, words, needs))
        return act

    return enter


def meet(one: Encounter) -> Met:
    """Arrange its scene in a namespace of its own and run its candidate."""
    with namespace() as own, contextlib.ExitStack() as stack:
        scene = Scene(own, stack)
        report = one.act(scene)
        return Met(one, report, scene.seen)
