"""A lane of brokers: namespaces whose broker is killed again and again, one after the other.

Owns the plan of deaths and the sums of a story. Does not own a story (``broker_story``).
"""

from __future__ import annotations

import collections
import random
from typing import TYPE_CHECKING

from tests.trials.crash.broker_ledger import PROMISED
from tests.trials.crash.broker_life import live
from tests.trials.crash.broker_story import DEADLY, RANDOM, BrokerStory
from tests.trials.crash.lanes import Told, quick_directory
from tests.trials.crash.nursery import Nursery

if TYPE_CHECKING:
    from collections.abc import Callable

# Kills of one story before everything is looked at, and how many of them at random instants.
_KILLS, _RANDOM_KILLS = 10, 4


def play_brokers(seed: int, runs: int, planted: str, tell: Callable[[Told], bool]) -> None:
    """A ``lanes.Lane``."""
    nursery = Nursery(live)
    dice = random.Random(seed)
    done, number, is_enough = 0, 0, False
    while done < runs and not is_enough:
        points = [dice.choice(DEADLY) for _kill in range(_KILLS - _RANDOM_KILLS)] + [RANDOM] * _RANDOM_KILLS
        dice.shuffle(points)
        with quick_directory() as directory:
            story = BrokerStory(directory, nursery, dice, planted)
            found = [f"broker story {number}: {violation}" for violation in story.run(points)]
        told = _sum_up(story, found)
        done += told.runs
        is_enough = tell(told)
        number += 1
    nursery.close()


def _sum_up(story: BrokerStory, violations: list[str]) -> Told:
    ledger = story.ledger
    counts = collections.Counter({
        "stories": 1,
        "inputs promised": sum(one.state == PROMISED for one in ledger.inputs.values()),
        "inputs drained": sum(len(one.heard) for one in ledger.inputs.values()),
        "inputs dropped": sum(one.dropped == "told" for one in ledger.inputs.values()),
        "replies kept": sum(one.is_promised for one in ledger.questions.values()),
        "letters told": sum(len(ids) for ids in ledger.letters.values()),
    })
    deaths = collections.Counter(end for end in story.ends if end != "last")
    return Told(deaths, counts, violations)
