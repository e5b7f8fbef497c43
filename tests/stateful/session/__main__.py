"""``python -m tests.stateful.session``: every short sequence, then long random ones; status 1 when an invariant breaks.

The random ones come from a seed, which ``INTERCOM_TEST_SEED`` gives back; ``INTERCOM_TEST_EXAMPLES`` is their number.
"""

from __future__ import annotations

import os
import random
import sys
import time

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from tests.stateful.explorer import explore
from tests.stateful.session.machine import STEPS, Play
from tests.stateful.session.scenarios import SCENARIOS
from tests.stateful.session.watches import WATCHES

# Some minutes' worth on a small machine.
_EXAMPLES = 1_000


def main() -> int:
    seed = int(os.environ.get("INTERCOM_TEST_SEED") or random.SystemRandom().randrange(2**32))
    examples = int(os.environ.get("INTERCOM_TEST_EXAMPLES") or _EXAMPLES)
    say, begun_s = sys.stdout.write, time.monotonic()
    say(f"session: seed {seed} (repeat with INTERCOM_TEST_SEED={seed})\n")
    say(f"invariants {len(WATCHES)}: {', '.join(watch.name for watch in WATCHES)}\n")
    sequences, states, violations = 0, set(), 0
    for scenario in SCENARIOS:
        report = explore(scenario)
        sequences, violations = sequences + report.sequences, violations + len(report.violations)
        states |= report.states
        size = f"{len(scenario.alphabet):3} steps, depth {scenario.depth}"
        say(f"  {report.name:16} {size}: {report.sequences:6} sequences, {len(report.states):5} states\n")
        for violation, trail in report.violations:
            say(f"VIOLATED {violation}\n  after: {'; '.join(trail)}\n")
        sys.stdout.flush()
    say(f"sequences {sequences}, distinct states {len(states)}, violations {violations}\n")
    has_failed = _play_at_random(seed, examples)
    say(f"random plays {examples} of up to {STEPS} steps: {'VIOLATED' if has_failed else 'no violation'}\n")
    say(f"took {time.monotonic() - begun_s:.0f} s\n")
    return 1 if violations or has_failed else 0


def _play_at_random(seed: int, examples: int) -> bool:
    chosen = hypothesis.settings(Play.TestCase.settings, max_examples=examples)
    try:
        run_state_machine_as_test(hypothesis.seed(seed)(Play), settings=chosen)
    except AssertionError as violation:
        sys.stdout.write(f"VIOLATED {violation}\n")
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
