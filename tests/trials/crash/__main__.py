"""Kill sessions again and again: prints seed and counts, exits with 1 on a violation."""

from __future__ import annotations

import sys
import time

from tests.trials.command import Command
from tests.trials.crash.lanes import Tally, play
from tests.trials.crash.story import DEADLY

FULL_RUNS = 10_000
LANES = 4
# Seconds between two words about how far it is.
_WORD_S = 30.0


def main() -> int:
    command = Command("crash", __doc__, runs=FULL_RUNS, lanes=LANES)
    options = command.options
    begun_s = word_s = time.monotonic()

    def tell(tally: Tally) -> None:
        nonlocal word_s
        if time.monotonic() - word_s > _WORD_S:
            word_s = time.monotonic()
            command.say(f"  {tally.runs:,} runs, {len(tally.violations)} violations")

    tally = play(options.runs, command.seed, options.lanes, tell=tell)
    took_s = time.monotonic() - begun_s
    command.say(f"{tally.runs:,} runs (lives that were killed) in {took_s:.0f} s: {tally.runs / took_s:.1f} each second")
    command.say(f"  deaths: {dict(sorted(tally.deaths.items()))}")
    for what, count in sorted(tally.counts.items()):
        command.say(f"  {what}: {count:,}")
    unreached = [f"nobody died at {point}" for point in DEADLY if point not in tally.deaths]
    return command.end(tally.violations + unreached)


if __name__ == "__main__":
    sys.exit(main())
