"""Lanes: processes that play one story after the other, each with a broker, a nursery and senders of its own.

Owns dividing the runs and adding up what the lanes saw. Does not own a story (``story``) nor its judgement.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import random
import shutil
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from tests.support.daemon import runtime_directory
from tests.support.sessions import Site
from tests.trials.crash.judgement import judge
from tests.trials.crash.nursery import Nursery
from tests.trials.crash.recipient import live
from tests.trials.crash.senders import ANN, BOB, COPYIST, Sender
from tests.trials.crash.story import DEADLY, RANDOM, Story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TextIO

    from tests.trials.crash.story import Evidence

# Kills of one story, before it is drained.
KILLS = 8
# Each story's kills at random instants, the rest at points.
_RANDOM_KILLS = 3
_MEMORY = "/dev/shm"
# Violations that one lane says before it stops.
_ENOUGH = 20


@dataclass
class Tally:
    """What was done and seen. ``deaths``: by point; ``counts``: of everything else."""

    deaths: collections.Counter[str] = field(default_factory=collections.Counter)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """Lives that were killed."""
        return sum(self.deaths.values())

    def add(self, told: dict[str, Any]) -> None:
        self.deaths.update(told["deaths"])
        self.counts.update(told["counts"])
        self.violations += told["violations"]


def play(
    runs: int, seed: int, lanes: int, planted: str = "", tell: Callable[[Tally], object] = lambda _tally: None
) -> Tally:
    """So many killed lives in so many processes; ends early when enough violations were found."""
    tally = Tally()
    readers = [_fork_lane(seed * 1_000 + number, -(-runs // lanes), planted) for number in range(lanes)]
    for line in _read_all([reader for _pid, reader in readers]):
        tally.add(json.loads(line))
        tell(tally)
    for pid, reader in readers:
        reader.close()
        _pid, status = os.waitpid(pid, 0)
        if status:
            tally.violations.append(f"a lane ended with status {status}")
    return tally


def _read_all(files: Sequence[TextIO]) -> Iterator[str]:
    import selectors

    with selectors.DefaultSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            for key, _events in selector.select():
                line = key.fileobj.readline()  # type: ignore[union-attr] - it is one of ``files``
                if line:
                    yield line
                else:
                    selector.unregister(key.fileobj)


def _fork_lane(seed: int, runs: int, planted: str) -> tuple[int, TextIO]:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _be_lane(seed, runs, planted, write_end)
    os.close(write_end)
    return pid, open(read_end, encoding="utf-8")


def _be_lane(seed: int, runs: int, planted: str, out: int) -> NoReturn:
    """In a process of its own; it must never return into the trial."""
    status = 70
    try:
        nursery = Nursery(live)
        with runtime_directory() as runtime, _quick_directory() as state:
            site = Site(runtime, state)
            daemon = site.start_broker("--limits", "bench")
            try:
                asyncio.run(_play(site, nursery, random.Random(seed), runs, planted, out))
            finally:
                daemon.kill()
        nursery.close()
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(status)


@contextlib.contextmanager
def _quick_directory() -> Iterator[str]:
    """A kill takes nothing from the kernel, so files stand in memory where that can be had."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
    made = tempfile.mkdtemp(prefix="itc-", dir=place)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


async def _play(site: Site, nursery: Nursery, dice: random.Random, runs: int, planted: str, out: int) -> None:
    senders = {name: await Sender.join(name, site.places, dice) for name in (ANN, BOB, COPYIST)}
    points: list[str] = []
    done = found = number = 0
    while done < runs and found < _ENOUGH:
        if len(points) < KILLS:
            points += dice.sample(DEADLY, len(DEADLY))
        own = [points.pop() for _kill in range(KILLS - _RANDOM_KILLS)] + [RANDOM] * _RANDOM_KILLS
        dice.shuffle(own)
        story_seed = dice.randrange(1 << 48)
        evidence = await Story(number, site, nursery, senders, random.Random(story_seed), planted).run(own)
        told = _sum_up(evidence)
        os.write(out, json.dumps(told).encode() + b"\n")
        done, found, number = done + sum(told["deaths"].values()), found + len(told["violations"]), number + 1
    for sender in senders.values():
        await sender.leave()


def _sum_up(evidence: Evidence) -> dict[str, Any]:
    deaths = collections.Counter(lived.end for lived in evidence.lives if lived.end not in ("left",))
    ledger = evidence.ledger
    rows = evidence.lives[-1].journal
    counts = collections.Counter(f"journal: {row['kind']}" for row in rows)
    counts += collections.Counter(f"sent: {sent.outcome or 'unknown'}" for sent in ledger.sent)
    counts += collections.Counter({
        "stories": 1,
        "placed in hosts": len(evidence.history),
        "receipts": len(ledger.receipts),
        "answers received": len(ledger.answers),
    })
    return {"deaths": deaths, "counts": counts, "violations": judge(evidence)}
