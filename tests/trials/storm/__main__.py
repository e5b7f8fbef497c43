"""Run the storm in full: prints seed and counts, exits with 1 on a violation."""

from __future__ import annotations

import random
import sys

from tests.trials.command import Command
from tests.trials.storm.planted import FAULTS, meet
from tests.trials.storm.rounds import STARTERS, Round, Tally

FULL_ROUNDS = 20


def main() -> int:
    command = Command("storm", __doc__, rounds=FULL_ROUNDS, starters=STARTERS)
    tally = Tally()
    for number in range(command.options.rounds):
        Round(number, random.Random(command.seed + number), tally, command.options.starters).run()
        command.say(f"round {number}: {len(tally.violations)} violations so far")
    for fault, told in FAULTS.items():
        is_seen = any(told in violation for violation in meet(fault, command.seed))
        command.say(f"planted: two brokers that {told}: {'seen' if is_seen else 'NOT SEEN'}")
        if not is_seen:
            tally.violations.append(f"the witnesses are blind: nobody saw that two brokers {told}")
    for what, count in sorted(tally.counts.items()):
        command.say(f"  {what}: {count}")
    command.say(f"  slowest answer {tally.slowest_s:.2f} s; longest time between two looks {tally.longest_gap_s:.3f} s")
    return command.end(tally.violations)


if __name__ == "__main__":
    sys.exit(main())
