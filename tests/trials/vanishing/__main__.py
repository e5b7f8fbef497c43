"""Let files vanish under living brokers, in full: prints what became of each, exits with 1 on a violation."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.trials.command import Command
from tests.trials.privileges import missing_of
from tests.trials.vanishing import cleaner
from tests.trials.vanishing.acts import ACTS
from tests.trials.vanishing.stage import perform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.trials.vanishing.stage import Trial

FULL_STARTS = 300


def _asked(command: Command) -> Iterator[Trial]:
    """Every act, with a look that was asked for."""
    for act in ACTS:
        if missing_of(act.needs):
            command.skip(act.name, f"it needs {missing_of(act.needs)}")
            continue
        for has_newcomer in (False, True):
            yield perform(act, has_newcomer=has_newcomer)


def _unasked() -> list[Trial]:
    """The brief acts, all at once, with the look that each broker takes by itself."""
    acts = [(act, has_newcomer) for act in ACTS if act.is_brief for has_newcomer in (False, True)]
    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(lambda act: perform(act[0], has_newcomer=act[1], waits=True), acts))


def _cleaned(command: Command) -> Iterator[Trial]:
    if missing_of([cleaner.CLEANER]):
        command.skip("the cleaner", f"{cleaner.CLEANER} is not installed")
        return
    yield cleaner.clean_under_a_living_broker()
    yield cleaner.clean_after_a_killed_broker()
    yield cleaner.clean_while_brokers_come_and_go(command.options.starts, command.seed)


def main() -> int:
    command = Command("vanishing", __doc__, starts=FULL_STARTS)
    violations: list[str] = []
    for what, trials in (("asked", _asked(command)), ("unasked", _unasked()), ("cleaner", _cleaned(command))):
        for trial in trials:
            command.say(f"  {what}: {trial}")
            violations += trial.violations
    return command.end(violations)


if __name__ == "__main__":
    sys.exit(main())
