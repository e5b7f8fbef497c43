"""Start brokers from hostile places, in full: prints every start, exits with 1 on a violation."""

from __future__ import annotations

import sys

from tests.trials.command import Command
from tests.trials.environment.hostile import COMPILER
from tests.trials.environment.starts import find_starters, start_amid
from tests.trials.privileges import missing_of


def main() -> int:
    command = Command("environment", __doc__)
    violations: list[str] = []
    for starter, python, hostility in find_starters():
        if hostility.needs_compiler and missing_of([COMPILER]):
            command.skip(f"{starter}, {hostility.name}", f"{COMPILER} is not installed")
            continue
        start = start_amid(starter, python, hostility)
        outcome = "VIOLATED" if start.violations else "refused" if start.was_refused else "clean"
        command.say(f"  {starter}, {hostility.name}: {outcome}; marks on the client {start.client_marks}")
        violations += start.violations
    return command.end(violations)


if __name__ == "__main__":
    sys.exit(main())
