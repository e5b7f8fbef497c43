"""Running a load (``bench.load``) beside a measurement.

Owns starting it, ending it by closing its standard input, and what it reported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from bench import machine
from bench.building import FOLDER
from bench.generating import Failed

# A load at the lowest priority gets little of a machine that is busy.
_DEADLINE_S = 180.0


@dataclass
class Load:
    """A load that runs. ``report`` is what it said at its end."""

    process: subprocess.Popen[str]
    report: dict[str, Any] = field(default_factory=dict)

    def wait(self) -> None:
        """Wait until it ends by itself, and read its report. Raises Failed."""
        try:
            self.process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            raise Failed(f"a load did not end within {_DEADLINE_S:g} s") from error
        self.finish()

    def finish(self) -> None:
        """Tell it to end, and read its report. Raises Failed."""
        try:
            said, _nothing = self.process.communicate(timeout=_DEADLINE_S)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            raise Failed("a load did not end") from error
        if self.process.returncode:
            raise Failed(f"a load failed with status {self.process.returncode}")
        self.report = json.loads(said)

    def text(self) -> str:
        answers = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.report["answers"].items()))
        return f"in {self.report['seconds']:.1f} s: {answers}"


def start(name: str, *words: object, cpu: int) -> Load:
    """Start a load whose standard input stays open until ``finish``."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": os.path.dirname(FOLDER)}
    command = [sys.executable, "-m", f"bench.load.{name}", *map(str, words)]
    with machine.pinned(cpu):
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return Load(process)
