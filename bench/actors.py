"""Programs with sessions of the library, that a figure starts and speaks with by lines.

Owns their environment, their lines and their end. Does not own what they do (``load``).
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.building import FOLDER
from bench.generating import Failed
from libintercom.launching import clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Reading what still comes and leaving takes seconds; beyond this something hangs.
_END_S = 60.0


def environment(runtime: str, state: str) -> dict[str, str]:
    """Of a program whose broker is at ``runtime`` and whose journals are below ``state``."""
    places = {"PI_INTERCOM_RUNTIME_DIR": runtime, "HOME": state, "XDG_STATE_HOME": f"{state}/state"}
    return {**clean_environment({}), **places}


class Actor:
    """One that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, line: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def hear(self) -> str:
        """Its next line. Raises Failed when it ended instead."""
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            self._process.wait(_END_S)
            raise Failed(f"a program of the figure ended with status {self._process.returncode}")
        return line


@contextlib.contextmanager
def playing(program: str, words: Sequence[str], around: dict[str, str]) -> Iterator[Actor]:
    """``load/<program>`` with its sessions joined; it is gone afterwards. Raises Failed as ``hear``."""
    command = [sys.executable, "-I", f"{FOLDER}/load/{program}", *words]
    with subprocess.Popen(
        command, env=around, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            actor = Actor(process)
            actor.hear()
            yield actor
            # At the end of its stdin it leaves, and says what it found behind that nobody asked for any more.
            process.communicate(timeout=_END_S)
        finally:
            process.kill()
