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
    command.say(f"{siege.frames:,} frames on {siege.connections:,} connections: {dict(siege.kinds)}")
    command.say(f"{siege.exchanges:,} exchanges of the others; memory grew by {siege.growth_bytes:,} bytes at the end")
    return command.end(siege.violations)


if __name__ == "__main__":
    sys.exit(main())
