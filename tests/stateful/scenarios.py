"""Where the exploring begins, with which steps, and how deep.

Owns the alphabets: one of everything, shallow, and one for each part of the core, deep. Does not own exploring them.
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


def _present(*keys: str) -> tuple[Action, ...]:
    return tuple(step(key) for key in keys for step in (do.connects, do.registers))


_ALL_PRESENT = _present("A", "B", "a", "b")

ASKS = Scenario(
    "asks",
    _ALL_PRESENT,
    (
        do.asks("A", "Bea", timeout_ms=60_000),
        do.asks("B", "Ann"),
        do.asks("A", "kid", delivery="steer"),
        do.asks("a", "Ann", timeout_ms=0),
        do.asks("a", "Ann"),
        do.replies("B", "Ann", "A"),
        do.replies("A", "Bea", "B", expects_reply=True),
        do.replies_wrongly("A", "Bea"),
        do.cancels_ask("A"),
        do.presents("A", accepts_asks=False),
        do.presents("B", accepts_asks=True),
        do.repeats("A"),
        do.unregisters("B"),
        do.registers("B"),
        do.hangs_up("a"),
        do.hangs_up("B"),
        do.waits(),
    ),
    4,
)

STAGE = Scenario(
    "stage",
    (*_ALL_PRESENT, do.presents("B", status="idle"), do.presents("a", status="idle")),
    (
        do.replaces("A", "Bea"),
        do.replaces("A", "Bea", "u"),
        do.replaces("A", "Bea", is_ask=True),
        do.replaces("B", "Ann", is_ask=True),
        do.replaces("a", "Ann", is_ask=True),
        do.sends("A", "Bea"),
        do.asks("B", "Ann"),
        do.repeats("A"),
        do.takes_back("A"),
        do.presents("B", status="thinking"),
        do.presents("B", status="idle"),
        do.hangs_up("B"),
        do.hangs_up("A"),
        do.waits(),
        do.holds("B"),
        do.stops(),
    ),
    4,
    {"stage_keys_per_sender": 2, "stage_keys": 3},
)

_MAIN_WATCHES = Scenario(
    "a main and another's child",
    (*_ALL_PRESENT, do.presents("B", status="idle"), do.replaces("b", "Bea")),
    (
        do.lists("A"),
        do.sends("A", "kid"),
        do.sends("A", "child-of-b"),
        do.sends("A", "child-of"),
        do.sends("A", "kit"),
        do.asks("A", "Bea"),
        do.replaces("A", "Bea"),
        do.asks_letters("A"),
        do.presents("A", name="kid"),
        do.unregisters("b"),
        do.registers("b"),
        do.hangs_up("b"),
        do.presents("b", name="Bea"),
        do.sends("b", "Bea"),
        do.asks("b", "Bea"),
        do.replaces("b", "Bea"),
        # Not an ask: B, which waits for one at a time, would stop waiting for A, and may let A know that.
        do.sends("B", "child-of-b"),
        do.asks("B", "main-of-a"),
        do.hangs_up("B"),
        do.holds("B"),
        do.passes(2.0),
    ),
    3,
    {"idle_exit_s": None},
    "A",
    "b",
)
_CHILD_WATCHES = Scenario(
    "a child and another group",
    _ALL_PRESENT,
    (
        do.lists("a"),
        do.sends("a", "Ann"),
        do.sends("a", "Bea"),
        do.sends("a", "main-of-b"),
        do.sends("a", "main-of-"),
        do.asks("a", "Ann"),
        do.replaces("a", "Ann", is_ask=True),
        do.presents("a", name="Bea"),
        do.unregisters("B"),
        do.registers("B"),
        do.presents("B", name="Ann"),
        do.sends("B", "main-of-a"),
        do.asks("B", "main-of-a"),
        do.asks("b", "Bea"),
        do.presents("b", name="Ann"),
        do.hangs_up("b"),
        do.asks("A", "main-of-b"),
        do.asks("A", "child-of-a"),
        do.hangs_up("A"),
        do.holds("A"),
        do.passes(2.0),
    ),
    3,
    {"idle_exit_s": None},
    "a",
    "Bb",
)

KERNEL = Scenario(
    "kernel",
    (*_ALL_PRESENT, do.holds("B")),
    (
        do.sends("A", "Bea"),
        do.sends("B", "Ann"),
        do.lists("B"),
        do.sends("a", "Ann"),
        do.asks("B", "Ann", timeout_ms=30_000),
        do.replies("A", "Bea", "B"),
        do.repeats("A"),
        do.reuses_id("A"),
        do.holds("B"),
        do.holds("B", 5),
        do.holds("B", 700),
        do.holds("A"),
        do.takes("B"),
        do.takes("A"),
        do.resets("B"),
        do.hangs_up("B"),
        do.waits(),
        do.spools("waits"),
        do.answers_letters(is_stored=False),
    ),
    4,
    {"recipient_messages": 2},
)

MEMBERSHIP = Scenario(
    "membership",
    (*_present("A", "a"), do.connects("B")),
    (
        do.registers("B"),
        do.connects("b"),
        do.registers("b"),
        do.registers_twice("A"),
        do.unregisters("A"),
        do.registers("A"),
        do.hangs_up("a"),
        do.hang_up_together("A", "a", "B"),
        do.says_nonsense("B"),
        do.says_half("A", 40),
        do.says_half("A", 0),
        do.says_half("B", 90),
        do.lists("A"),
        do.sends("a", "Ann"),
        do.sends_badly("A"),
        do.presents("A", name="kid"),
        do.exhausts(),
        do.waits(),
        do.stops(),
        do.releases(),
        do.stays(),
    ),
    4,
    {"max_unregistered": 2, "partial_bytes": 100},
)

BUDGETS = Scenario(
    "budgets",
    _ALL_PRESENT,
    (
        do.sends("A", "Bea"),
        do.sends("A", "kid"),
        do.sends("B", "Ann"),
        do.asks("B", "Ann", timeout_ms=0),
        do.asks("A", "Bea"),
        do.replies("A", "Bea", "B"),
        do.replaces("A", "kid", is_ask=True),
        do.takes_back("A"),
        do.repeats("A"),
        do.holds("B"),
        do.takes("B"),
        do.lists("A"),
        do.presents("A", status="idle"),
        do.hangs_up("B"),
        do.waits(),
        do.passes(1.0),
    ),
    4,
    {
        "send_burst": 3,
        "sends_per_s": 0.5,
        "pair_messages": 2,
        "recipient_messages": 2,
        "recipient_bytes": 900,
        "outbound_bytes": 1_200,
        "input_burst_bytes": 1_500,
        "input_bytes_per_s": 200.0,
        "stage_keys": 1,
        "stage_bytes": 500,
        "max_asks_per_recipient": 2,
        "max_asks_per_asker": 2,
    },
)


PARKING = Scenario(
    "parking",
    (*_ALL_PRESENT, do.parks("A", "a"), do.hangs_up("a"), do.sends("A", "kid")),
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
    4,
    {"parked_messages": 3, "recipient_messages": 2},
)
DRAINING = Scenario(
    "draining",
    (
        *(*_ALL_PRESENT, do.parks("A", "a"), do.hangs_up("a"), do.sends("A", "kid"), do.sends("A", "kid")),
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
    5,
    {"recipient_messages": 2},
)
KEPT = Scenario(
    "kept",
    (*_ALL_PRESENT, do.keeps("A", "Bea")),
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
    4,
    {"idle_exit_s": None},
)

# One of everything, for parts of every kind.
_OWN_STEPS = (
    do.connects,
    do.registers,
    do.registers_twice,
    do.unregisters,
    do.hangs_up,
    do.says_nonsense,
    do.lists,
    do.asks_health,
    do.sends_badly,
    do.repeats,
    do.reuses_id,
    do.cancels_ask,
    do.takes_back,
    do.holds,
    do.takes,
    do.resets,
)
_SAID = (
    do.sends("A", "Bea"),
    do.sends("A", "kid", delivery="passive"),
    do.sends("b", "Bea"),
    do.sends("b", "child-of-a"),
    do.asks("A", "Bea", timeout_ms=60_000),
    do.asks("B", "Ann"),
    do.asks("B", "Ann", timeout_ms=0),
    do.asks("b", "Bea", delivery="steer"),
    do.replies("B", "Ann", "A"),
    do.replies("A", "Bea", "B"),
    do.replies_wrongly("a", "Ann"),
    do.replaces("A", "Bea"),
    do.replaces("b", "Bea", is_ask=True),
    do.presents("B", accepts_asks=False, status="idle"),
    do.presents("B", accepts_asks=True),
    do.presents("A", name="kid"),
)
_AROUND = (
    do.asks_stats("A"),
    do.asks_letters("A"),
    do.lists("B", stream=True),
    do.says_half("A", 50),
    do.says_half("A", 0),
    do.holds("B", 5),
    do.waits(),
    do.spools("waits"),
    do.spools("fails"),
    do.answers_letters(is_stored=True),
    do.answers_letters(is_stored=False),
    do.stops(),
    do.releases(),
    do.stays(),
    do.exhausts(),
)
_ONE_OF_EVERYTHING = (*(step(key) for key in ("A", "b") for step in _OWN_STEPS), *_SAID, *_AROUND)

EVERYTHING = Scenario("everything", (*_ALL_PRESENT, do.presents("B", status="idle")), _ONE_OF_EVERYTHING, 3)
ALONE = Scenario("everything, from nobody", (), _ONE_OF_EVERYTHING, 4)

SCENARIOS = (
    PARKING,
    DRAINING,
    KEPT,
    ASKS,
    STAGE,
    KERNEL,
    MEMBERSHIP,
    BUDGETS,
    _MAIN_WATCHES,
    _CHILD_WATCHES,
    EVERYTHING,
    ALONE,
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
