"""What several rounds found: median, least and most; and percentiles of one round's samples.

Owns the arithmetic. Does not own what is measured nor what counts as good (``rows``).
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """One value for each round, in the order of the rounds. Never empty."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    def over(self, other: Spread) -> Spread:
        """Round by round, this divided by the other: what disturbed a round disturbed both."""
        return Spread(tuple(mine / yours for mine, yours in zip(self.values, other.values, strict=True)))

    def beyond(self, other: Spread) -> Spread:
        """Round by round, this less the other."""
        return Spread(tuple(mine - yours for mine, yours in zip(self.values, other.values, strict=True)))

    def text(self, unit: str) -> str:
        """``12.3 µs (11.9 to 13.0)``."""
        if len(self.values) == 1:
            return f"{number(self.median)} {unit}"
        return f"{number(self.median)} {unit} ({number(self.least)} to {number(self.most)})"


def spread(found: Sequence[T], figure: Callable[[T], float]) -> Spread:
    """The spread of one figure of what each round found."""
    return Spread(tuple(figure(one) for one in found))


def percentile(samples: Sequence[int], share: float) -> float:
    """The sample below which ``share`` (0 to 1) of all lie."""
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * share))]


def number(value: float) -> str:
    """Three digits that mean something."""
    places = 2 - math.floor(math.log10(abs(value))) if value else 2
    return f"{value:,.{min(2, max(0, places))}f}"
