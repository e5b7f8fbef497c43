"""Show every line of the verdict table: prints what was seen, exits with 1 when a line is not shown."""

from __future__ import annotations

import sys

from tests.trials.command import Command
from tests.trials.tables import judge_lines, run_tests
from tests.trials.verdicts.lines import LINES


def main() -> int:
    command = Command("verdicts", __doc__)
    seen = run_tests(sorted({node for nodes in LINES.values() for node in nodes}))
    said, violations = judge_lines(LINES, seen)
    for line in said:
        command.say(line)
    command.say(f"{len(LINES)} lines, {len(seen)} cases")
    return command.end(violations)


if __name__ == "__main__":
    sys.exit(main())
