"""Every short sequence of steps, all invariants looked at after each; the command of this folder goes deeper."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from libintercom.session import happenings, steps
from libintercom.wire.record import Record
from tests.stateful.explorer import explore
from tests.stateful.session.scenarios import BY_NAME, SCENARIOS
from tests.stateful.session.world import KINDS_SEEN

if TYPE_CHECKING:
    from tests.stateful.explorer import Report

# Fewer would not be what is promised.
SEQUENCES = 30_000


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return {scenario.name: explore(replace(scenario, depth=scenario.quick)) for scenario in SCENARIOS}


@pytest.mark.parametrize("name", BY_NAME)
def test_no_short_sequence_breaks_an_invariant(name: str, reports: dict[str, Report]):
    assert [f"{violation} after {trail}" for violation, trail in reports[name].violations] == []


def test_as_many_sequences_as_promised(reports: dict[str, Report]):
    assert sum(report.sequences for report in reports.values()) >= SEQUENCES


def test_every_happening_and_every_step_takes_part(reports: dict[str, Report]):
    assert (kinds_of(happenings) | kinds_of(steps)) - KINDS_SEEN == {"Placeable"}


def kinds_of(module: object) -> set[str]:
    """The names of the records that a module defines."""
    defined = inspect.getmembers(module, inspect.isclass)
    return {name for name, kind in defined if issubclass(kind, Record) and kind.__module__ == module.__name__}
