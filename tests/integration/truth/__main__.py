"""Run the trials in full: prints seed and counts, exits with 1 on a violation. ``--rounds N`` changes the floods."""

from __future__ import annotations

import argparse
import random
import sys

from tests.integration.truth.trials import Tally, end_recipient_at_random, kill_at_each_write

# Random moments of a flood; `make test` runs fewer and says so.
FULL_ROUNDS = 1_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.truth", description=__doc__)
    parser.add_argument("--rounds", type=int, default=FULL_ROUNDS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    kills, floods = Tally(), Tally()
    moments = kill_at_each_write(kills)
    end_recipient_at_random(floods, options.rounds, random.Random(options.seed))
    print(f"seed {options.seed}")
    print(f"broker killed before each write: {moments} moments, words {kills.words}, whole frames {kills.whole_frames}")
    print(f"recipient ended in a flood: {floods.runs} rounds, words {floods.words}, whole frames {floods.whole_frames}")
    violations = kills.violations + floods.violations
    print(f"{len(violations)} violations")
    for violation in violations:
        print(f"  {violation}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
