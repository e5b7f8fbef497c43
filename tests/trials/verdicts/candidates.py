"""Running one real candidate in a namespace that was arranged for it, and hearing its report.

Owns the program, the ways to restrict it (another user, a namespace of its own, no right to connect) and its end. Does
not own what was arranged nor what is expected (``encounters``).
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.executables import ROOT
from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.trials.namespaces import Namespace

# What runs in the candidate's place when it must restrict itself first: it may then no longer be able to load anything.
_RESTRICTED = """
import os, sys
sys.path.insert(0, {root!r})
# Another user may not be allowed to load anything later.
import encodings.ascii, json, pwd
from intercomd.candidate import Won, run
from tests.support.sandbox import as_user, forbid_connecting
{restriction}
ended = run(sys.argv[1:])
if isinstance(ended, Won):
    ended.reporter.ready()
    ended.ownership.leave()
    ended = 0
sys.exit(ended)
"""

# A program in a new pid namespace: with its own /proc, and with its parent's, where equal numbers are other programs.
OWN_PROC = ("unshare", "--pid", "--fork", "--mount-proc")
PARENTS_PROC = ("unshare", "--pid", "--fork")


def mounted(command: str) -> tuple[str, ...]:
    """A program in a mount namespace of its own, after ``command`` was run there."""
    return ("unshare", "--mount", "sh", "-c", f'{command} && exec "$@"', "sh")


@dataclasses.dataclass(frozen=True)
class Report:
    """What a candidate said, and its exit status; ``status`` is -15 for a winner, which is ended here."""

    result: str
    reason: str
    status: int


def run_candidate(
    own: Namespace, *, prefix: Sequence[str] = (), restriction: str = "", variables: dict[str, str] | None = None
) -> Report:
    """Run it through ``prefix``; ``restriction`` is Python that it runs first."""
    reading, writing = os.pipe()
    program = [sys.executable, "-m", "intercomd"]
    if restriction:
        program = [sys.executable, "-I", "-c", _RESTRICTED.format(root=str(ROOT), restriction=restriction)]
    command = [*prefix, *program, "serve", "--idle-exit-s", "600", "--report-fd", str(writing)]
    try:
        candidate = subprocess.Popen(
            command,
            cwd="/",
            env={**own.environment, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[writing],
        )
    finally:
        os.close(writing)
    with open(reading, "rb") as pipe:
        line = pipe.readline()
    told = json.loads(line) if line else {"result": "nothing"}
    if told["result"] == "ready":
        for pid in own.programs():
            own.kill(pid, signal.SIGTERM)
    said = candidate.communicate(timeout=DEADLINE_S)[1].decode()
    return Report(told["result"], told.get("reason", said.strip()), candidate.returncode)
