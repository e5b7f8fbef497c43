"""Greedy, broken and hostile clients against a live broker: prints seed and figures, exits with 1 on a violation.

A p99 over its bar is printed; it is a violation beyond a margin only, since processors are shared. Counts, memory and
descriptors have no margin.
"""

from __future__ import annotations

import dataclasses
import sys

from tests.trials.command import Command
from tests.trials.load.scale import FULL
from tests.trials.load.trials import TRIALS, run

_COUNTS = ("pair_messages", "flood_mb", "half_frames", "strangers", "passers_by", "crowd", "hostile_frames", "soak_s")


def main() -> int:
    counts = {name: int(getattr(FULL, name)) for name in _COUNTS}
    command = Command("load", __doc__, only=tuple(TRIALS), **counts)
    chosen = {name: getattr(command.options, name) for name in _COUNTS}
    scale = dataclasses.replace(FULL, seed=command.seed, **chosen)
    violations: list[str] = []
    for name in command.options.only:
        report = run(name, scale)
        command.say(f"{name}: {len(report.violations)} violations")
        violations += [f"{name}: {violation}" for violation in report.violations]
    return command.end(violations)


if __name__ == "__main__":
    sys.exit(main())
