"""A session's journal: one receive and many against bare SQLite, and how fast a full one is open again."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import journaling
from bench.building import FOLDER
from bench.journaling import Bare
from bench.rows import Goal, Row
from bench.spreads import spread
from libintercom.session import faults
from libintercom.session.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.rounds import Bench
    from libintercom.session.entries import Entry

_NATIVE_ID = "bench"
# On their way to the disk at a time: eight senders with 64 messages each.
_WINDOW = 512
_RECORDS = 100_000
_MB = 1_000_000


@dataclass(frozen=True)
class _Found:
    """One round: microseconds of one receive and one bare commit, messages a second of both, rows a transaction."""

    receive_us: float
    bare_us: float
    grouped: float
    batched: float
    batch: float


def measure(bench: Bench) -> list[Row]:
    with journaling.disk_folder() as folder:
        on = f"on {journaling.filesystem(folder)}"
        found = [_round(bench, f"{folder}/{turn}") for turn in range(bench.rounds)]
        return [*_commit_rows(found, on), *_reopen_rows(bench, folder, on)]


def _commit_rows(found: list[_Found], on: str) -> list[Row]:
    receive, bare = spread(found, lambda one: one.receive_us), spread(found, lambda one: one.bare_us)
    grouped, batched = spread(found, lambda one: one.grouped), spread(found, lambda one: one.batched)
    batch = spread(found, lambda one: one.batch)
    sizes = f"{_WINDOW} on the way, {batch.text('rows')} a transaction in both, {on}"
    against = f"{receive.text('µs')} against {bare.text('µs')}, {on}"
    return [
        Row(
            "journaled receive, against a bare commit of the row", Goal(1.8, "x bare"), receive.over(bare), "x", against
        ),
        Row("journal under load", Goal(5_000, "/s", is_floor=True), grouped, "/s", sizes),
        Row(
            "journal under load, against bare batched commits",
            Goal(0.7, "x bare", is_floor=True),
            grouped.over(batched),
            "x",
            f"{grouped.text('/s')} against {batched.text('/s')}, {on}",
        ),
    ]


def _round(bench: Bench, folder: str) -> _Found:
    os.mkdir(folder)
    bench.say(f"  journal: round {os.path.basename(folder)}")
    bare = Bare(folder)
    with Journal.open(_NATIVE_ID, folder=f"{folder}/j") as journal:
        singles = _singly(journal, bare, bench.choose(400, 100))
        grouped, batched, batch = _grouped(journal, bare, bench.choose(20_000, 4_000))
    bare.close()
    shutil.rmtree(folder)
    return _Found(*singles, grouped, batched, batch)


def _singly(journal: Journal, bare: Bare, count: int) -> tuple[float, float]:
    """Medians in microseconds, in turns: a disk's mood changes within milliseconds."""
    mine, floor = [], []
    for _turn in range(count):
        entry = journaling.admission()
        mine.append(_timed_us(lambda entry=entry: journaling.receive_one(journal, entry)))
        floor.append(_timed_us(lambda entry=entry: bare.store([entry])))
    return statistics.median(mine), statistics.median(floor)


def _timed_us(once: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    once()
    return 1e6 * (time.perf_counter() - began_s)


def _grouped(journal: Journal, bare: Bare, count: int) -> tuple[float, float, float]:
    """Messages a second of the journal, of bare batches of the size that it reached, and that size. In turns."""
    spent_s = bare_s = 0.0
    commits, turn = 0, count // 10
    for _turn in range(10):
        entries = [journaling.admission() for _number in range(turn)]
        now_s, now = _count_commits(journal, entries)
        spent_s, commits = spent_s + now_s, commits + now
        size = max(1, round(turn / now))
        began_s = time.perf_counter()
        for start in range(0, turn, size):
            bare.store(entries[start : start + size])
        bare_s += time.perf_counter() - began_s
    return 10 * turn / spent_s, 10 * turn / bare_s, 10 * turn / commits


def _count_commits(journal: Journal, entries: list[Entry]) -> tuple[float, int]:
    commits = 0

    def note(name: str) -> None:
        nonlocal commits
        commits += name == "journal.committed"

    faults.set_hook(note)
    try:
        return journaling.receive_many(journal, entries, _WINDOW), commits
    finally:
        faults.set_hook(None)


def _reopen_rows(bench: Bench, folder: str, on: str) -> list[Row]:
    records = bench.choose(_RECORDS, _RECORDS // 10)
    bench.say(f"  journal: {records:,} records")
    journal = Journal.open(_NATIVE_ID, folder=f"{folder}/live")
    journaling.fill(journal, records)
    # What a kill would leave: the files while their owner lives.
    shutil.copytree(f"{folder}/live", f"{folder}/killed")
    journal.close()
    rows = []
    for ending, name in (("closed", "live"), ("killed", "killed")):
        found = [_reopen(f"{folder}/{name}", f"{folder}/copy") for _turn in range(bench.rounds)]
        what = f"cold reopen of {records:,} records, {ending}"
        whole = spread(found, lambda one: one["whole"] / _MB)
        rows += [
            Row(
                what,
                Goal(150.0, "ms"),
                spread(found, lambda one: one["ms"]),
                "ms",
                f"to the first unfinished one, {on}",
            ),
            Row(
                f"{what}: memory",
                Goal(20.0, "MB"),
                spread(found, lambda one: one["grown"] / _MB),
                "MB",
                f"beyond a bare interpreter, imports included; whole process {whole.text('MB')}",
            ),
        ]
    return rows


def _reopen(folder: str, copy: str) -> dict[str, float]:
    shutil.copytree(folder, copy)
    journaling.make_cold(copy)
    command = [sys.executable, f"{FOLDER}/load/reopening.py", copy, _NATIVE_ID]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    shutil.rmtree(copy)
    return json.loads(ended.stdout)
