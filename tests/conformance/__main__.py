"""``python -m tests.conformance``: every vector on every target, counted; status 1 when one fails or a rule is bare.

The order is shuffled with a seed, which ``INTERCOM_TEST_SEED`` gives back.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter

from tests.conformance.catalogue import rules, vectors
from tests.conformance.coverage import marks, uncovered
from tests.conformance.runs import TARGETS, LiveBrokers, pairs, run


def main() -> int:
    seed = int(os.environ.get("INTERCOM_TEST_SEED") or random.SystemRandom().randrange(2**32))
    order = pairs()
    random.Random(seed).shuffle(order)
    judged: Counter[str] = Counter()
    vectors_run: Counter[str] = Counter()
    failures: list[str] = []
    with LiveBrokers() as brokers:
        for vector, target in order:
            vectors_run[target] += 1
            try:
                judged[target] += run(vector, target, brokers)
            except AssertionError as error:
                failures.append(f"{vector.label} on {target}: {error}")
    _print(seed, vectors_run, judged, failures)
    return 1 if failures or uncovered() else 0


def _print(seed: int, vectors_run: Counter[str], judged: Counter[str], failures: list[str]) -> None:
    say = sys.stdout.write
    say(f"conformance: seed {seed} (repeat with INTERCOM_TEST_SEED={seed})\n")
    say(f"rules {len(rules())}, vectors {len(vectors())}, tests that stand for rules {len(list(marks()))}\n")
    for target in TARGETS:
        say(f"  {target:16} {vectors_run[target]:4} vectors, {judged[target]:5} judgements\n")
    for failure in failures:
        say(f"FAILED {failure[:1000]}\n")
    say(f"rules that nothing shows: {', '.join(uncovered()) or 'none'}\n")
    say(f"failures {len(failures)}\n")


if __name__ == "__main__":
    sys.exit(main())
