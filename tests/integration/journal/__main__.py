"""Kill a journal's owner, in full: prints seed and counts, exits with 1 on a violation."""

from __future__ import annotations

import argparse
import random
import sys

from libintercom.session.faults import POINTS
from tests.integration.journal.crashing import Tally, kill_at_random, kill_everywhere, kill_while_setting_aside
from tests.integration.journal.writing import _PLANTS

# Random moments: with the fault points' kills it is above ten thousand lives.
FULL_RUNS = 9_000
# Rounds over every fault point.
FULL_ROUNDS = 40


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.journal", description=__doc__)
    parser.add_argument("--runs", type=int, default=FULL_RUNS, help=f"random moments; in full: {FULL_RUNS}")
    parser.add_argument("--rounds", type=int, default=FULL_ROUNDS, help=f"over every point; in full: {FULL_ROUNDS}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--place", default=None, help="where folders are made: a folder, by default the temporary one")
    parser.add_argument("--plant", default="", choices=["", *_PLANTS], help="a fault that must be seen")
    options = parser.parse_args()
    print(f"journal: seed {options.seed}, {options.runs} random moments, {options.rounds} rounds", flush=True)
    dice = random.Random(options.seed)
    points, moments, asides = Tally(options.place), Tally(options.place), Tally(options.place)
    kill_everywhere(points, dice, options.rounds, options.plant)
    kill_at_random(moments, dice, options.runs, options.plant)
    kill_while_setting_aside(asides, dice, options.rounds)
    for name, tally in (("fault points", points), ("random moments", moments), ("setting aside", asides)):
        print(f"  {name}: {tally.lives} lives, {tally.killed} killed, {tally.settled} appends settled, {tally.died}")
    violations = points.violations + moments.violations + asides.violations
    died = {**points.died, **asides.died}
    if not options.plant:
        own = [point for point in POINTS if point.startswith("journal.")]
        violations += [f"nobody died at {point}" for point in own if point not in died]
    for violation in violations:
        print(f"VIOLATED {violation}")
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
