"""The storm at a reduced count (``python -m tests.trials.storm`` runs it in full); its witnesses see faults."""

from __future__ import annotations

import random

import pytest

from tests.trials.storm.planted import FAULTS, meet
from tests.trials.storm.rounds import STARTERS, Round, Tally

# In full: twenty rounds of a hundred starters.
ROUNDS, REDUCED_STARTERS = 2, 30


def test_a_reduced_storm_has_one_owner_and_answers_everybody(seed: int) -> None:
    tally = Tally()
    for number in range(ROUNDS):
        Round(number, random.Random(seed + number), tally, REDUCED_STARTERS).run()
    print(f"seed {seed}, rounds {ROUNDS} of 20, starters {REDUCED_STARTERS} of {STARTERS}: {dict(tally.counts)}")
    assert tally.violations == []
    assert tally.counts["lives seen"] >= ROUNDS
    assert tally.counts["killed candidates"] + tally.counts["killed brokers"] > 0
    assert tally.counts["brokers that left by themselves"] > 0


@pytest.mark.parametrize("fault", FAULTS)
def test_the_witnesses_see_two_owners(seed: int, fault: str) -> None:
    violations = meet(fault, seed)
    assert any(FAULTS[fault] in violation for violation in violations), violations
