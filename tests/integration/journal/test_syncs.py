"""The disk has it before anybody is told: seen by strace, and by opening what a loss of power would leave."""

from __future__ import annotations

import random
import shutil
import tempfile
from typing import TYPE_CHECKING

import pytest

from libintercom.session.journal import Journal, export
from tests.integration.journal import tracing
from tests.integration.journal.appender import NATIVE_ID

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.journal.tracing import Disk

COUNT = 30
# Each opening takes some milliseconds: every second moment.
EVERY = 2
# How much of what was not synchronised a disk kept.
SHARES = (0.5, 0.9)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A trace of the appender, and the folder it wrote to."""
    folder = tmp_path_factory.mktemp("traced", numbered=True)
    said = tracing.trace(f"{folder}/j", f"{folder}/trace", str(COUNT))
    assert said.count("settled") == COUNT
    return f"{folder}/trace", f"{folder}/j"


def stored_after(disk: Disk, loose: dict[str, list[tuple[int, bytes]]], place: str) -> tuple[list[str], str | None]:
    """The entries of a journal that is opened from this disk, and where it was set aside."""
    parent = tempfile.mkdtemp(prefix="ijs-", dir=place)
    try:
        disk.lay_out(f"{parent}/j", loose)
        with Journal.open(NATIVE_ID, folder=f"{parent}/j") as journal:
            return [entry["entryId"] for entry in export(journal.path) if "kind" in entry], journal.set_aside
    finally:
        shutil.rmtree(parent)


def lost(trace: str, folder: str, place: str, every: int) -> list[str]:
    """Every settled entry that a loss of power right after its settling would take."""
    found = []
    for number, disk in tracing.moments(trace, folder):
        if number % every == 0:
            stored, aside = stored_after(disk, {}, place)
            if aside or stored[: number + 1] != [f"e{earlier}" for earlier in range(number + 1)]:
                found.append(f"settled {number}, stored {stored[-1:]}, set aside {aside}")
    return found


@pytest.mark.needs("strace")
def test_what_is_settled_survives_a_loss_of_power(traced: tuple[str, str], quick_place: str) -> None:
    assert lost(*traced, quick_place, EVERY) == []


@pytest.mark.needs("strace")
def test_the_log_is_synchronised_between_its_last_write_and_the_settling(traced: tuple[str, str]) -> None:
    seen = [(number, sorted(disk.loose)) for number, disk in tracing.moments(*traced)]
    assert [number for number, _loose in seen] == list(range(COUNT))
    assert [loose for _number, loose in seen if any(name.endswith("-wal") for name in loose)] == []


@pytest.mark.needs("strace")
def test_any_part_of_what_was_not_synchronised_may_be_there_as_well(
    traced: tuple[str, str], quick_place: str, seed: int
) -> None:
    """Whatever a disk kept beyond what it was told to keep: all that was settled is there, whole and in order."""
    dice, losses = random.Random(seed), 0
    appended = [f"e{number}" for number in range(COUNT)]
    for settled, disk in tracing.waits(*traced):
        for share in SHARES:
            kept = {name: [one for one in loose if dice.random() < share] for name, loose in disk.loose.items()}
            stored, aside = stored_after(disk, kept, quick_place)
            assert aside is None
            assert settled < len(stored) <= COUNT
            assert stored == appended[: len(stored)]
            losses += 1
    assert losses > COUNT


@pytest.mark.needs("strace")
def test_a_journal_that_does_not_wait_for_the_disk_is_seen(tmp_path: Path, quick_place: str) -> None:
    tracing.trace(f"{tmp_path}/j", f"{tmp_path}/trace", "6", "unsynchronised")
    assert lost(f"{tmp_path}/trace", f"{tmp_path}/j", quick_place, 1) != []
