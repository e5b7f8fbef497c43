"""What a trial found: figures against their bars, and violations.

Owns saying them. A figure over its bar is said; it is a violation only beyond the margin that its trial states, since
times are noisy on a shared machine, and a time in a run that is not timed never is. Counts have no margin.
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
    # Whether a time may be a violation; see ``Scale``.
    is_timed: bool = True
    violations: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def say(self, text: str) -> None:
        sys.stdout.write(f"  {self.name}: {text}\n")
        sys.stdout.flush()

    def figure(self, name: str, value: float, unit: str, *, bar: float, margin: float = 1.0) -> None:
        """One figure; beyond ``margin`` times its bar it is a violation."""
        self._compare(name, value, unit, bar, f", violation beyond x{margin:g}" if margin > 1 else "")
        if value > bar * margin:
            self.violate(f"{name}: {value:,.4g} {unit}, bar {bar:,.4g} {unit}, margin x{margin:g}")

    def time(self, name: str, value: float, unit: str, *, bar: float, margin: float = 1.0) -> None:
        """A figure that a busy machine makes worse by itself."""
        if self.is_timed:
            self.figure(name, value, unit, bar=bar, margin=margin)
        else:
            self._compare(name, value, unit, bar, ", not judged in this run")

    def _compare(self, name: str, value: float, unit: str, bar: float, consequence: str) -> None:
        self.figures[name] = value
        word = "within" if value <= bar else "OVER"
        self.say(f"{name}: {value:,.4g} {unit} ({word} the bar of {bar:,.4g} {unit}{consequence})")

    def expect(self, holds: object, claim: str) -> None:
        """A claim without a margin."""
        if not holds:
            self.violate(claim)

    def violate(self, what: str) -> None:
        self.violations.append(what)
        self.say(f"VIOLATION: {what}")
