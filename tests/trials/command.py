"""The command line of a trial: its counts, its seed, and how it ends.

Owns ``--seed`` and one option per count, the first line (which says how to repeat the run) and the last ones.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Command:
    """One run of a trial; ``counts`` are its numbers in full, each an option; ``only`` are parts that may be chosen."""

    def __init__(self, name: str, about: str | None, *, only: Sequence[str] = (), **counts: int) -> None:
        parser = argparse.ArgumentParser(prog=f"python -m tests.trials.{name}", description=about)
        parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
        if only:
            parser.add_argument("--only", nargs="+", choices=only, default=list(only), help="these parts")
        for count, full in counts.items():
            parser.add_argument(f"--{count}", type=int, default=full, help=f"in full: {full}")
        self.options = parser.parse_args()
        self.seed: int = self.options.seed
        self._missing: list[str] = []
        self._begun_s = time.monotonic()
        told = ", ".join(f"{count} {getattr(self.options, count)} (in full {full})" for count, full in counts.items())
        self.say(f"{name}: seed {self.seed} (repeat with --seed {self.seed})" + (f"; {told}" if told else ""))

    @staticmethod
    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def skip(self, what: str, why: str) -> None:
        """Say what is left out; in continuous integration that is a violation."""
        self.say(f"skipped {what}: {why}")
        if os.environ.get("CI", "").lower() in {"1", "true", "yes"}:
            self._missing.append(f"CI=true makes {what} mandatory, but {why}")

    def end(self, violations: Sequence[str]) -> int:
        """Print every violation and the time; the exit status."""
        violations = [*violations, *self._missing]
        for violation in violations:
            self.say(f"VIOLATED {violation}")
        self.say(f"{len(violations)} violations, {time.monotonic() - self._begun_s:.0f} s")
        return 1 if violations else 0
