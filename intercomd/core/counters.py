"""Counting accepted messages and what became of them (wire.md 9.8).

Owns the equation ``accepted = terminals + gauges``, which holds after every event.
"""

from __future__ import annotations

# How an accepted message can end.
TERMINALS = (
    "delivered",
    "replaced",
    "drained",
    "fetched",
    "dead_recipient_left",
    "dead_expired",
    "dead_discarded",
    "dead_store_failed",
)
# Where an accepted message can wait.
GAUGES = ("buffered", "staged", "parked", "kept")


class Counters:
    """Each accepted message is in exactly one gauge or has come to exactly one terminal."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("accepted", *TERMINALS), 0)
        self.held = dict.fromkeys(GAUGES, 0)
        self.refused: dict[str, int] = {}

    def accept(self, place: str, count: int = 1) -> None:
        """Messages were accepted and came straight to a terminal or a gauge."""
        self.counts["accepted"] += count
        if place in self.held:
            self.held[place] += count
        else:
            self.counts[place] += count

    def move(self, gauge: str, place: str) -> None:
        """An accepted message left a gauge for a terminal or another gauge."""
        self.held[gauge] -= 1
        self._enter(place)

    def refuse(self, code: str) -> None:
        """A message was refused."""
        self.refused[code] = self.refused.get(code, 0) + 1

    @property
    def is_balanced(self) -> bool:
        """``accepted = terminals + gauges``, and no gauge below zero."""
        total = sum(self.counts[name] for name in TERMINALS) + sum(self.held.values())
        return self.counts["accepted"] == total and min(self.held.values()) >= 0

    def _enter(self, place: str) -> None:
        if place in self.held:
            self.held[place] += 1
        else:
            self.counts[place] += 1
