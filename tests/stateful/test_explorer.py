"""Every short sequence of events, all invariants looked at after each step."""

from __future__ import annotations

import os
import typing
from typing import TYPE_CHECKING

import pytest

from intercomd.core.events import Event
from libintercom.wire.requests import REQUESTS
from tests.stateful.explorer import Exploration, Report
from tests.stateful.scenarios import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

# Fewer would not be what is promised.
SEQUENCES = 200_000
# A sibling's receipts are no part of this play; the vectors have them.
NOT_PLAYED = {"message_receipt"}
DEADLINES = {"register", "frame", "stall", "late", "ask", "stage", "read", "idle", "stop", "accept"}
DEADLINES |= {"parked", "kept", "drain"}


@pytest.fixture(scope="module")
def exploration() -> Iterator[Exploration]:
    # All scenarios at once: each test then waits for its own.
    with Exploration(list(BY_NAME.values()), os.cpu_count() or 1) as begun:
        yield begun


@pytest.fixture(scope="module")
def reports(exploration: Exploration) -> list[Report]:
    return [exploration.report(name) for name in BY_NAME]


@pytest.mark.parametrize("name", BY_NAME)
def test_no_short_sequence_breaks_an_invariant(name: str, exploration: Exploration):
    assert [f"{violation} after {trail}" for violation, trail in exploration.report(name).violations] == []


def test_as_many_sequences_as_promised(reports: list[Report]):
    assert sum(report.sequences for report in reports) >= SEQUENCES


def test_every_kind_of_event_takes_part(reports: list[Report]):
    kinds = set().union(*(report.kinds for report in reports))
    assert {kind.__name__ for kind in typing.get_args(Event)} - kinds == set()
    assert set(REQUESTS) - NOT_PLAYED - kinds == set()
    assert {f"deadline {name}" for name in DEADLINES} - kinds == set()
