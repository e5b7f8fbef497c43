"""Idle exits under load at a reduced count (``python -m tests.trials.idle`` runs it in full); faults are seen."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.trials.idle import arrivals
from tests.trials.idle.arrivals import NOBODY, REGISTERED
from tests.trials.idle.generations import IDLE_EXIT_S, run

if TYPE_CHECKING:
    import pytest

# In full: a thousand.
GENERATIONS = 20

# Leaves after its idle time though somebody registered in the meantime.
FORGETS_NEWCOMERS = """
from intercomd.core.lifetime import Lifetime
def consider_idle(self):
    if not self.is_leaving and ("idle",) not in self._state.deadlines:
        self._state.deadlines.set(("idle",), self._state.turn.now + self._state.limits.idle_exit_s)
Lifetime.consider_idle = consider_idle
"""
# Stops to accept and leaves its path where it is: who comes is accepted by the kernel and hears nothing.
KEEPS_THE_PATH = """
from intercomd.edges.listener.accepting import Acceptor
Acceptor.stop = lambda self, effect: self.pause()
"""


def test_no_accepted_client_is_lost(seed: int) -> None:
    tally = run(GENERATIONS, random.Random(seed))
    print(f"seed {seed}, generations {GENERATIONS} of 1000: {dict(tally.counts)}")
    assert tally.violations == []
    assert tally.counts[REGISTERED]
    assert tally.counts[NOBODY]
    assert tally.counts["brokers"] > 1


def test_a_registered_client_that_is_left_behind_is_seen(seed: int) -> None:
    tally = run(3, random.Random(seed), FORGETS_NEWCOMERS, aim_s=IDLE_EXIT_S / 2, leaving_s=0.0)
    assert any("was not served" in violation for violation in tally.violations), tally


def test_a_client_that_hears_nothing_is_seen(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_ANSWER_S", 0.5)
    tally = run(1, random.Random(seed), KEEPS_THE_PATH, aim_s=2 * IDLE_EXIT_S, leaving_s=0.0)
    assert any("got no answer" in violation for violation in tally.violations), tally
