"""Kills at a reduced count (``python -m tests.integration.journal`` runs them in full); planted faults are seen.

Each trial is a program of its own: it forks, which a test runner with threads must not.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.integration.journal.writing import _PLANTS
from tests.support.executables import ROOT


def trial(seed: int, place: str, runs: int, rounds: int, plant: str = "") -> subprocess.CompletedProcess[str]:
    counts = ["--seed", str(seed), "--runs", str(runs), "--rounds", str(rounds), "--plant", plant, "--place", place]
    command = [sys.executable, "-m", "tests.integration.journal", *counts]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_nothing_settled_is_lost_and_every_fault_point_is_reached(seed: int, quick_place: str) -> None:
    """In full: 9,000 random moments and 40 rounds."""
    ended = trial(seed, quick_place, runs=60, rounds=3)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 violations" in ended.stdout


@pytest.mark.parametrize("plant", _PLANTS)
def test_a_planted_fault_is_seen(plant: str, quick_place: str) -> None:
    # A fixed seed: whether a kill meets a fault depends on where it falls.
    ended = trial(1, quick_place, runs=6, rounds=1, plant=plant)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "VIOLATED" in ended.stdout
