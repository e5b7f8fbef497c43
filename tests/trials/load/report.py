"""What a trial found: figures against their bars, and violations.

Owns saying them. A figure over its bar is said; it is a violation only beyond the margin that its trial states, since
times are noisy on a shared machine. Counts have no margin.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


@dataclass
class Report:
    """One trial's findings, said as they come."""

    name: str
    # A folder from which the trial's broker imports first: a fault that the trial must see.
    plant: str = ""
    violations: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def say(self, text: str) -> None:
        sys.stdout.write(f"  {self.name}: {text}\n")
        sys.stdout.flush()

    def figure(self, name: str, value: float, unit: str, *, bar: float | None = None, margin: float = 1.0) -> None:
        """One figure; beyond ``margin`` times its bar it is a violation."""
        self.figures[name] = value
        against = ""
        if bar is not None:
            word = "within" if value <= bar else "OVER"
            against = f" ({word} the bar of {bar:,.4g} {unit}{f', violation beyond x{margin:g}' if margin > 1 else ''})"
        self.say(f"{name}: {value:,.4g} {unit}{against}")
        if bar is not None and value > bar * margin:
            self.violate(f"{name}: {value:,.4g} {unit}, bar {bar:,.4g} {unit}, margin x{margin:g}")

    def expect(self, holds: object, claim: str) -> None:
        """A claim without a margin."""
        if not holds:
            self.violate(claim)

    def violate(self, what: str) -> None:
        self.violations.append(what)
        self.say(f"VIOLATION: {what}")
