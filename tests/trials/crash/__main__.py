"""Kill sessions and brokers again and again, fill their disks: prints seed and counts, exits with 1 on a violation."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tests.trials.command import Command
from tests.trials.crash import blindness, broker_story, room, story
from tests.trials.crash.broker_lane import play_brokers
from tests.trials.crash.lanes import Told, play
from tests.trials.crash.session_lane import play_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.trials.crash.lanes import Lane

FULL_RUNS = 10_000
# Two for each processor of the machine that this was made on: a lane waits for its lives half of the time.
LANES = 4
# Seconds between two words about how far it is.
_WORD_S = 30.0
SESSIONS, BROKERS, ROOM, PLANTED = "sessions", "brokers", "room", "planted"


def main() -> int:
    command = Command("crash", __doc__, only=(SESSIONS, BROKERS, ROOM, PLANTED), runs=FULL_RUNS, lanes=LANES)
    violations: list[str] = []
    for part, lane, points in ((SESSIONS, play_sessions, story.DEADLY), (BROKERS, play_brokers, broker_story.DEADLY)):
        if part in command.options.only:
            violations += _play(command, part, lane, points)
    missing = room.find_missing()
    if ROOM in command.options.only:
        if missing:
            command.skip("full disks and folders that nobody may write", missing)
        else:
            violations += room.show(command.say)
    if PLANTED in command.options.only:
        violations += blindness.try_all(command.seed, command.options.lanes, command.say, has_room=not missing)
    return command.end(violations)


def _play(command: Command, part: str, lane: Lane, points: Sequence[str]) -> list[str]:
    """One part's violations, and its figures said."""
    options = command.options
    begun_s = word_s = time.monotonic()
    shown = 0

    def tell(told: Told) -> None:
        nonlocal word_s, shown
        for violation in told.violations[shown:]:
            # At once: a run takes long, and may be interrupted.
            command.say(f"  {violation}")
        shown = len(told.violations)
        if time.monotonic() - word_s > _WORD_S:
            word_s = time.monotonic()
            command.say(f"  {part}: {told.runs:,} runs, {len(told.violations)} violations")

    told = play(lane, options.runs, command.seed, options.lanes, tell=tell)
    took_s = time.monotonic() - begun_s
    rate = told.runs / took_s
    command.say(f"{part}: {told.runs:,} runs (lives that were killed) in {took_s:.0f} s, {rate:.1f} each second")
    command.say("  deaths: " + ", ".join(f"{point} {count:,}" for point, count in sorted(told.deaths.items())))
    command.say("  " + ", ".join(f"{what} {count:,}" for what, count in sorted(told.counts.items())))
    return told.violations + [f"{part}: nobody died at {point}" for point in points if point not in told.deaths]


if __name__ == "__main__":
    sys.exit(main())
