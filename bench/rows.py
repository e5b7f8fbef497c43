"""The table of goals: what one row holds and when it is reached.

Owns the comparison. Does not own the goals themselves: each figure states its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.spreads import Spread

STRETCH = "stretch"
REACHED = "reached"
SHORT = "not reached"
MISSING = "NOT MEASURED"
SHOWN = "(no goal)"


@dataclass(frozen=True)
class Goal:
    """A limit, for instance ``Goal(2.5, "x C")``. ``is_floor``: at least so much instead of at most."""

    limit: float
    unit: str
    stretch: float | None = None
    is_floor: bool = False

    def text(self, limit: float | None) -> str:
        sign = ">=" if self.is_floor else "<="
        return f"{sign} {limit:g} {self.unit}".strip() if limit is not None else ""

    def judge(self, value: float) -> str:
        """The verdict on a median."""
        if self.stretch is not None and self._holds(value, self.stretch):
            return STRETCH
        return REACHED if self._holds(value, self.limit) else SHORT

    def _holds(self, value: float, limit: float) -> bool:
        return value >= limit if self.is_floor else value <= limit


@dataclass(frozen=True)
class Row:
    """One figure with its goal. Without ``found`` it could not be measured, and ``note`` says why."""

    figure: str
    goal: Goal | None
    found: Spread | None
    unit: str
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.found is None:
            return MISSING
        return self.goal.judge(self.found.median) if self.goal else SHOWN

    @property
    def found_text(self) -> str:
        return self.found.text(self.unit) if self.found else "-"

    @property
    def bar_text(self) -> str:
        return self.goal.text(self.goal.limit) if self.goal else ""

    @property
    def stretch_text(self) -> str:
        return self.goal.text(self.goal.stretch) if self.goal else ""


def missing(figure: str, goal: Goal | None, reason: str) -> Row:
    """A row for what could not be measured."""
    return Row(figure, goal, None, "", reason)
