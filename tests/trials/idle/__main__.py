"""Let brokers leave under load, in full: prints seed and counts, exits with 1 on a violation."""

from __future__ import annotations

import random
import sys

from tests.trials.command import Command
from tests.trials.idle.arrivals import NOBODY, REGISTERED, SENT_AWAY
from tests.trials.idle.generations import run

FULL_GENERATIONS = 1_000


def main() -> int:
    command = Command("idle", __doc__, generations=FULL_GENERATIONS)
    tally = run(command.options.generations, random.Random(command.seed))
    for what, count in sorted(tally.counts.items()):
        command.say(f"  {what}: {count}")
    missing = [word for word in (REGISTERED, SENT_AWAY, NOBODY) if not tally.counts[word]]
    if missing and command.options.generations == FULL_GENERATIONS:
        tally.violations.append(f"nobody came at a moment that shows {missing}: the trial missed the broker's leaving")
    return command.end(tally.violations)


if __name__ == "__main__":
    sys.exit(main())
