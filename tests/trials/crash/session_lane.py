"""A lane of sessions: one broker, three senders that stay, and native sessions that are killed one after the other.

Owns the plan of deaths and the sums of a story. Does not own a story (``story``) nor its judgement.
"""

from __future__ import annotations

import asyncio
import collections
import random
from typing import TYPE_CHECKING

from tests.support.daemon import runtime_directory
from tests.support.sessions import Site
from tests.trials.crash.judgement import judge
from tests.trials.crash.lanes import Told, quick_directory
from tests.trials.crash.nursery import Nursery
from tests.trials.crash.recipient import live
from tests.trials.crash.senders import ANN, BOB, COPYIST, Sender
from tests.trials.crash.story import DEADLY, RANDOM, Story

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trials.crash.story import Evidence

# Kills of one story before it is drained, and how many of them at random instants.
_KILLS, _RANDOM_KILLS = 8, 3


def play_sessions(seed: int, runs: int, planted: str, tell: Callable[[Told], bool]) -> None:
    """A ``lanes.Lane``."""
    nursery = Nursery(live)
    with runtime_directory() as runtime, quick_directory() as state:
        site = Site(runtime, state)
        daemon = site.start_broker("--limits", "bench")
        try:
            asyncio.run(_play(site, nursery, random.Random(seed), runs, planted, tell))
        finally:
            daemon.kill()
    nursery.close()


async def _play(
    site: Site, nursery: Nursery, dice: random.Random, runs: int, planted: str, tell: Callable[[Told], bool]
) -> None:
    senders = {name: await Sender.join(name, site.places, dice) for name in (ANN, BOB, COPYIST)}
    points: list[str] = []
    done, number, is_enough = 0, 0, False
    while done < runs and not is_enough:
        if len(points) < _KILLS:
            points += dice.sample(DEADLY, len(DEADLY))
        own = [points.pop() for _kill in range(_KILLS - _RANDOM_KILLS)] + [RANDOM] * _RANDOM_KILLS
        dice.shuffle(own)
        told = _sum_up(await Story(number, site, nursery, senders, dice, planted).run(own))
        done += told.runs
        is_enough = tell(told)
        number += 1
    for sender in senders.values():
        await sender.leave()


def _sum_up(evidence: Evidence) -> Told:
    ledger = evidence.ledger
    counts = collections.Counter(f"journal: {row['kind']}" for row in evidence.lives[-1].journal)
    counts.update(f"sent: {sent.outcome or 'unknown'}" for sent in ledger.sent)
    counts["stories"] = 1
    counts["placed in hosts"] = len(evidence.history)
    counts["receipts"] = len(ledger.receipts)
    counts["answers received"] = len(ledger.answers)
    deaths = collections.Counter(lived.end for lived in evidence.lives if lived.end != "left")
    return Told(deaths, counts, judge(evidence))
