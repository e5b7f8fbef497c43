"""The brief acts (``python -m tests.trials.vanishing`` runs all, also without asking); planted faults are seen."""

from __future__ import annotations

import pytest

from tests.trials.vanishing import stage
from tests.trials.vanishing.acts import ACTS, Act
from tests.trials.vanishing.cleaner import (
    CLEANER,
    clean_after_a_killed_broker,
    clean_under_a_living_broker,
    clean_while_brokers_come_and_go,
)
from tests.trials.vanishing.stage import perform

BRIEF = [act for act in ACTS if act.is_brief]
STARTS = 10

# Never looks where its path leads.
LOOKS_AWAY = """
from intercomd.upkeep import Upkeep
Upkeep.look = lambda self: None
"""
# Takes every path for its own.
ROBS = """
from intercomd.edges.ownership import publishing, selfcheck
selfcheck.decide = lambda sight, echo: selfcheck.REPUBLISH
publishing.judge_endpoint = lambda seen: None
"""
# Does not tell the cleaner that somebody lives here.
KEEPS_NO_LOCK = """
from libintercom.ownership.directory import RuntimeDirectory
RuntimeDirectory.share = lambda self: True
"""


def named(name: str) -> Act:
    return next(act for act in ACTS if act.name == name)


@pytest.mark.parametrize("has_newcomer", [False, True])
@pytest.mark.parametrize("act", BRIEF, ids=lambda act: act.name)
def test_it_is_healed_or_left_within_one_check(act: Act, has_newcomer: bool) -> None:
    trial = perform(act, has_newcomer=has_newcomer)
    print(f"{trial}; acts {len(BRIEF)} of {len(ACTS)}")
    assert trial.violations == []


def test_a_broker_that_does_not_look_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "SETTLE_S", 2.0)
    act = named("directory replaced by an unsafe one")
    assert perform(act, has_newcomer=False).violations == []
    assert "the broker stayed, expected: healed" in str(perform(act, has_newcomer=False, before=LOOKS_AWAY).violations)


def test_a_broker_that_robs_another_program_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "SETTLE_S", 2.0)
    trial = perform(named("path taken by another listener"), has_newcomer=False, before=ROBS)
    assert "somebody else's ['broker.sock'] was touched" in str(trial.violations)


@pytest.mark.needs(CLEANER)
def test_the_cleaner_leaves_a_living_broker_alone() -> None:
    assert clean_under_a_living_broker().violations == []
    assert "it took" in str(clean_under_a_living_broker(KEEPS_NO_LOCK).violations)


@pytest.mark.needs(CLEANER)
def test_the_cleaner_takes_what_a_killed_broker_left() -> None:
    assert clean_after_a_killed_broker().violations == []


@pytest.mark.needs(CLEANER)
def test_a_cleaner_that_runs_all_the_time_keeps_nobody_from_starting(seed: int) -> None:
    trial = clean_while_brokers_come_and_go(STARTS, seed)
    print(f"{trial}; starts {STARTS} of 300")
    assert trial.violations == []
