"""``python -m tests.stateful``: every short sequence, then long random ones; status 1 when an invariant does not hold.

The random ones come from a seed, which ``INTERCOM_TEST_SEED`` gives back.
"""

from __future__ import annotations

import os
import random
import sys
import time

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from tests.stateful.explorer import Exploration
from tests.stateful.machine import EXAMPLES, STEPS, Play
from tests.stateful.scenarios import SCENARIOS
from tests.stateful.watches import WATCHES


def main() -> int:
    seed = int(os.environ.get("INTERCOM_TEST_SEED") or random.SystemRandom().randrange(2**32))
    say, begun_s = sys.stdout.write, time.monotonic()
    say(f"stateful: seed {seed} (repeat with INTERCOM_TEST_SEED={seed})\n")
    say(f"invariants {len(WATCHES) + 1}: {', '.join(watch.name for watch in WATCHES)}, twin\n")
    reports = []
    with Exploration(SCENARIOS, os.cpu_count() or 1) as exploration:
        for scenario in SCENARIOS:
            reports.append(report := exploration.report(scenario.name))
            steps = f"{len(scenario.alphabet):3} steps, depth {scenario.depth}"
            say(f"  {report.name:28} {steps}: {report.sequences:6} sequences, {len(report.states):5} states\n")
    violations = [found for report in reports for found in report.violations]
    for violation, trail in violations:
        say(f"VIOLATED {violation}\n  after: {'; '.join(trail)}\n")
    states = len(set().union(*(report.states for report in reports)))
    sequences = sum(report.sequences for report in reports)
    say(f"sequences {sequences}, distinct states {states}, violations {len(violations)}\n")
    say(f"kinds of events, frames and deadlines {len(set().union(*(report.kinds for report in reports)))}\n")
    has_failed = _play_at_random(seed)
    say(f"random plays {EXAMPLES} of up to {STEPS} steps: {'VIOLATED' if has_failed else 'no violation'}\n")
    say(f"took {time.monotonic() - begun_s:.0f} s\n")
    return 1 if violations or has_failed else 0


def _play_at_random(seed: int) -> bool:
    try:
        run_state_machine_as_test(hypothesis.seed(seed)(Play))
    except AssertionError as violation:
        sys.stdout.write(f"VIOLATED {violation}\n")
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
