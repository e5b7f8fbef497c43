"""Show the verdict table: real candidates in every situation, a foreign claim at every moment, and each line's tests.

Prints what was seen, exits with 1 on a violation or when a line is not shown.
"""

from __future__ import annotations

import collections
import sys
from typing import TYPE_CHECKING

from tests.trials.command import Command
from tests.trials.privileges import missing_of
from tests.trials.tables import judge_lines, run_tests
from tests.trials.verdicts.claims import SITUATIONS, each_moment
from tests.trials.verdicts.encounters import ENCOUNTERS, meet
from tests.trials.verdicts.lines import LINES

if TYPE_CHECKING:
    from collections.abc import Iterator


def _meet_all(command: Command) -> Iterator[str]:
    """Every encounter; the violations."""
    for encounter in ENCOUNTERS:
        if missing_of(encounter.needs):
            command.skip(encounter.name, f"it needs {missing_of(encounter.needs)}")
            continue
        met = meet(encounter)
        command.say(f"  {met}")
        yield met.violation


def _claim_always(command: Command) -> Iterator[str]:
    """A foreign claim at every moment; the violations."""
    for situation, needs in SITUATIONS.items():
        if missing_of(needs):
            command.skip(situation, f"it needs {missing_of(needs)}")
            continue
        counts: collections.Counter[str] = collections.Counter()
        for moment in each_moment(situation):
            counts[f"{'theirs' if moment.is_theirs else 'refused'}, we {moment.ours}"] += 1
            yield moment.violation
        told = ", ".join(f"{count} x {what}" for what, count in sorted(counts.items()))
        command.say(f"  an exclusive claim of another program at any moment, {situation}: {told}")


def main() -> int:
    command = Command("verdicts", __doc__)
    violations = [*filter(None, _meet_all(command)), *filter(None, _claim_always(command))]
    seen = run_tests(sorted({node for nodes in LINES.values() for node in nodes}))
    said, unshown = judge_lines(LINES, seen)
    for line in said:
        command.say(line)
    command.say(f"{len(ENCOUNTERS)} encounters; {len(LINES)} lines, {len(seen)} cases")
    return command.end([*violations, *unshown])


if __name__ == "__main__":
    sys.exit(main())
