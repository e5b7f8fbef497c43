"""Lives of a journal's owner that end by SIGKILL: at every fault point, and at random moments.

Owns the kills and the counts. Each life is a forked child; what it said to be settled is read from a pipe that only
it has, so nothing said before the kill is lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from libintercom.session.faults import POINTS
from libintercom.session.journal.folder import stem_of
from tests.integration.journal.judging import judge, judge_aside
from tests.integration.journal.writing import NATIVE_ID, Life, live

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tests.integration.journal.judging import Lived

# Only a damaged file leads there; a kill there has a trial of its own.
ASIDE_POINTS = ("journal.aside_log", "journal.aside")
# Points of a journal's life that come once.
_ONCE = ("journal.locked", "journal.created", "journal.migrated", "journal.opened", "journal.closing", "journal.closed")
# Points of every transaction.
_OFTEN = ("journal.begun", "journal.inserted", "journal.committed", "journal.settled")
# A life appends some dozens; with the small bounds of a trial that is several foldings and copies of the log.
_LEAST_APPENDS, _MOST_APPENDS = 4, 40
# Times that a trial with a planted fault kills at each of these: where in an append a kill falls is left to chance.
_PLANTED_TURNS = 14
# A whole life takes 10 to 100 ms, depending on the disk.
_LONGEST_S = 0.06
# Lives of one folder: what a kill left behind is what the next life begins with.
_LIVES = 6


@dataclass
class Tally:
    """``place``: where folders are made. ``died``: point -> kills there. ``settled``: appends said to be stored."""

    place: str | None = None
    lives: int = 0
    killed: int = 0
    settled: int = 0
    died: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


def kill_everywhere(tally: Tally, dice: random.Random, rounds: int, plant: str = "") -> None:
    """Each fault point in turn, early and late in a life; then what was settled is looked for.

    A planted fault shows only inside transactions: then these points alone, more often.
    """
    points = (
        list(_OFTEN) * _PLANTED_TURNS
        if plant
        else [point for point in POINTS if point.startswith("journal.") and point not in ASIDE_POINTS]
    )
    for _round in range(rounds):
        for point in points:
            with _folder(tally) as folder:
                lives: list[Lived] = []
                for number in range(2):
                    # Created only once: the first life of a folder. Elsewhere the second has a history before it.
                    is_first = point in ("journal.created", "journal.migrated")
                    where = point if number == (0 if is_first else 1) else ""
                    reach = 1 if point in _ONCE else dice.randint(1, 8 if point in _OFTEN else 3)
                    life = Life(number, dice.randrange(1 << 30), _MOST_APPENDS, where, reach, plant)
                    lives.append((life, _run(tally, life, folder, 0.0)))
                _note(tally, folder, lives)


def kill_at_random(tally: Tally, dice: random.Random, runs: int, plant: str = "") -> None:
    """At moments that have nothing to do with what the program does."""
    for _folder_number in range(-(-runs // _LIVES)):
        with _folder(tally) as folder:
            lives: list[Lived] = []
            for number in range(_LIVES):
                appends = dice.randrange(_LEAST_APPENDS, _MOST_APPENDS)
                life = Life(number, dice.randrange(1 << 30), appends, plant=plant)
                lives.append((life, _run(tally, life, folder, dice.uniform(0.001, _LONGEST_S))))
                _note(tally, folder, lives)


def kill_while_setting_aside(tally: Tally, dice: random.Random, rounds: int) -> None:
    """A damaged file is never lost, whenever setting it aside is cut short."""
    for _round in range(rounds):
        for point in ASIDE_POINTS:
            with _folder(tally) as folder:
                _run(tally, Life(0, dice.randrange(1 << 30), _LEAST_APPENDS), folder, 0.0)
                damaged = damage(f"{folder}/{stem_of(NATIVE_ID)}.sqlite")
                _run(tally, Life(1, dice.randrange(1 << 30), _LEAST_APPENDS, point), folder, 0.0)
                tally.violations += [f"{point}: {found}" for found in judge_aside(folder, damaged)]


def damage(path: str) -> bytes:
    """Overwrite the header of a database; what the file holds then."""
    with open(path, "r+b") as file:
        file.write(b"no database at all")
        file.seek(0)
        return file.read()


@contextlib.contextmanager
def _folder(tally: Tally) -> Iterator[str]:
    """A private folder of journals, removed at the end."""
    parent = tempfile.mkdtemp(prefix="ijc-", dir=tally.place)
    try:
        yield f"{parent}/j"
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _note(tally: Tally, folder: str, lives: list[Lived]) -> None:
    where = ", ".join(f"life {life.number}: seed {life.seed}, {life.point or 'random'}" for life, _settled in lives)
    tally.violations += [f"{found} ({where})" for found in judge(folder, lives)]


def _run(tally: Tally, life: Life, folder: str, until_s: float) -> list[int]:
    """Fork a life, kill it after ``until_s`` (0: it dies at its fault point, or not at all); what it settled."""
    reader, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be(life, folder, out)
    os.close(out)
    if until_s:
        time.sleep(until_s)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(reader, encoding="ascii", errors="replace") as lines:
        said = lines.read().splitlines()
    _pid, status = os.waitpid(pid, 0)
    _count(tally, life, status, said)
    return [int(line.split()[0]) for line in said if line.endswith(" settled")]


def _be(life: Life, folder: str, out: int) -> None:
    """The child: it must never return into the trial."""
    status = 70
    try:
        live(life, folder, out)
        status = 0
    finally:
        os._exit(status)


def _count(tally: Tally, life: Life, status: int, said: list[str]) -> None:
    tally.lives += 1
    tally.settled += sum(line.endswith(" settled") for line in said)
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    tally.killed += is_killed
    if is_killed and life.point:
        tally.died[life.point] = tally.died.get(life.point, 0) + 1
    if not is_killed and status != 0:
        tally.violations.append(f"{life} ended with status {status}")
    tally.violations += [f"{life}: {line}" for line in said if not line.endswith(" settled")]
