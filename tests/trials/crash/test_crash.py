"""A part of the kills (``python -m tests.trials.crash`` makes all); some planted faults are seen.

Each trial is a program of its own: it forks, which a test runner with threads must not.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.daemon import ROOT
from tests.trials.crash import blindness, broker_life, planted, room
from tests.trials.crash.__main__ import FULL_RUNS

RUNS = 100
LANES = 2
# The quickest to be seen of each kind; all of them are tried by the command.
BRIEF_FAULTS = ("turn round", "claim placement", "load no reply")


def run_trial(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.trials.crash", "--lanes", str(LANES), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("part", ["sessions", "brokers"])
def test_nothing_is_lost_nothing_happens_twice_and_nothing_untrue_is_said(part: str, seed: int) -> None:
    ended = run_trial("--only", part, "--runs", str(RUNS), "--seed", str(seed))
    print(f"runs {RUNS} of {FULL_RUNS}\n{ended.stdout}")
    violations = [line for line in ended.stdout.splitlines() if line.startswith("VIOLATED")]
    # So few runs do not reach every point; the full count must.
    assert [line for line in violations if "nobody died at" not in line] == [], ended.stdout + ended.stderr
    assert f"{part}: " in ended.stdout, ended.stderr


def test_without_room_there_is_a_word_and_nothing_is_lost() -> None:
    missing = room.find_missing()
    if missing:
        pytest.skip(missing)
    assert room.show(print) == []


def test_a_planted_fault_is_seen() -> None:
    program = (
        "from tests.trials.crash.blindness import try_all\n"
        f"print(try_all(1, {LANES}, print, has_room=False, chosen={BRIEF_FAULTS}))"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    print(ended.stdout)
    assert ended.stdout.count(": seen after") == len(BRIEF_FAULTS), ended.stderr
    assert ended.stdout.splitlines()[-1] == "[]"


def test_a_fault_that_nobody_sees_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blindness, "play", lambda *_given, **_options: blindness.Told())
    said: list[str] = []
    unseen = blindness.try_all(1, LANES, said.append, has_room=False)
    assert len(unseen) == len(planted.PLANTS) + len(broker_life.PLANTS)
    assert all("NOT SEEN" in line for line in said)


def test_every_fault_has_a_word_by_which_it_is_seen() -> None:
    assert planted.PLANTS.keys() == planted.SEEN_AS.keys()
    assert broker_life.PLANTS.keys() == broker_life.SEEN_AS.keys()
