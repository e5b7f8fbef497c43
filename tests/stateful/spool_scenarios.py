"""Scenarios of what goes through the spool: parked children, their draining, kept asks.

Owns their alphabets. Does not own exploring them.
"""

from __future__ import annotations

from tests.stateful import actions as do
from tests.stateful.scenario import ALL_PRESENT, Scenario

PARKING = Scenario(
    "parking",
    (*ALL_PRESENT, do.parks("A", "a"), do.hangs_up("a"), do.sends("A", "kid")),
    (
        do.sends("A", "child-of-a"),
        do.sends("A", "child-of-a", delivery="passive"),
        do.asks("A", "child-of-a", timeout_ms=60_000),
        do.parks("A", "a"),
        do.unparks("A", "a", discard=True),
        do.wakes("A", "a", "failed"),
        do.connects("a"),
        do.registers("a"),
        do.unregisters("a"),
        do.hangs_up("a"),
        do.hangs_up("A"),
        do.holds("a"),
        do.takes("a"),
        do.resets("a"),
        do.repeats("A"),
        do.lists("A"),
        do.waits(),
        do.spools("waits"),
        do.answers_letters(is_stored=True),
        do.answers_letters(is_stored=False),
        do.restarts(),
    ),
    3,
    {"parked_messages": 3, "recipient_messages": 2},
)
DRAINING = Scenario(
    "draining",
    (
        *(*ALL_PRESENT, do.parks("A", "a"), do.hangs_up("a"), do.sends("A", "kid"), do.sends("A", "kid")),
        *(do.connects("a"), do.holds("a"), do.spools("waits")),
    ),
    (
        do.registers("a"),
        do.sends("A", "child-of-a"),
        do.answers_letters(is_stored=True),
        do.answers_letters(is_stored=False),
        do.takes("a"),
        do.holds("a", 900),
        do.unregisters("a"),
        do.hangs_up("a"),
        do.connects("a"),
        do.parks("A", "a"),
        do.waits(),
        do.restarts(),
    ),
    4,
    {"recipient_messages": 2},
)
KEPT = Scenario(
    "kept",
    (*ALL_PRESENT, do.keeps("A", "Bea")),
    (
        do.keeps("A", "Bea", timeout_ms=0),
        do.replies("B", "main-of-a", "A"),
        do.repeats("B"),
        do.fetches("b"),
        do.acknowledges("b"),
        do.cancels_ask("A"),
        do.hangs_up("A"),
        do.connects("A"),
        do.registers("A"),
        do.hangs_up("B"),
        do.connects("B"),
        do.registers("B"),
        do.resets("A"),
        do.waits(),
        do.spools("waits"),
        do.answers_letters(is_stored=True),
        do.answers_letters(is_stored=False),
        do.restarts(),
    ),
    3,
    {"idle_exit_s": None},
)
