"""Say a million mutated frames: prints seed and counts, exits with 1 on a violation."""

from __future__ import annotations

import random
import sys

from tests.trials.command import Command
from tests.trials.mutation.siege import besiege

FULL_FRAMES = 1_000_000


def main() -> int:
    command = Command("mutation", __doc__, frames=FULL_FRAMES)
    siege = besiege(command.options.frames, random.Random(command.seed), command.say)
    command.say(f"{siege.frames:,} frames on {siege.connections:,} connections:")
    for kind, count in sorted(siege.kinds.items()):
        command.say(f"  {kind}: {count:,}")
    command.say(f"{siege.passed_on:,} frames came to the witness; {siege.exchanges:,} exchanges of the others")
    return command.end(siege.violations)


if __name__ == "__main__":
    sys.exit(main())
