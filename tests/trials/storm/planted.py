"""Faulty brokers: each breaks one promise, two of them meet, and the witnesses must see it.

Owns the faults, as Python that runs in the broker's program before it becomes the broker, and the meeting.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from libintercom.endpoint import CONNECTED, attempt
from tests.support.waiting import DEADLINE_S, wait_until
from tests.trials.namespaces import Namespace, namespace
from tests.trials.witness.eyes import watching
from tests.trials.witness.judgement import find_overlaps

# A starter's first look at the endpoint hides much; whoever starts the program itself does not look.
_BLIND = """
from intercomd.edges.ownership import acquisition, publishing
acquisition.judge_endpoint = publishing.judge_endpoint = lambda seen: None
"""

# Takes the start lock, and then every claim and record for a dead one's.
IGNORES_OWNERS = f"""{_BLIND}
from libintercom.ownership.inspection import Finding
from libintercom.ownership.verdict import DEAD, Verdict
def inspect(directory, name, ours, endpoint):
    return Finding(name=name, verdict=Verdict(kind=DEAD, reason="planted"), mark=directory.mark(name))
publishing.inspect = inspect
"""

# Takes no lock at all: not the start lock, not that of its claim, not that of its life. No witness of locks sees it.
LOCKS_NOTHING = f"""{_BLIND}
from libintercom.ownership.locks import FileLock
from intercomd.edges.ownership import claim, life
def pretend(directory, name, deadline_s):
    return FileLock(directory, name, directory.open(name, os.O_RDWR | os.O_CREAT))
acquisition.wait_for_lock = pretend
claim.lock_exclusively = life.lock_exclusively = lambda fd: True
"""

# What the judgement calls each fault.
FAULTS = {IGNORES_OWNERS: "held life at the same time", LOCKS_NOTHING: "served at the same time"}

# A broker that was robbed stays so long, and is met again.
_IDLE_EXIT_S = 1.0


def meet(fault: str, seed: int) -> list[str]:
    """Start a faulty broker, and another one while it serves; the violations that the witnesses saw."""
    with namespace() as own:
        program = own.use_executable(before=fault, options=f"--idle-exit-s {_IDLE_EXIT_S}")
        with watching(own, Path(own.parent), seed) as seen:
            first = _serve(own, program)
            wait_until(lambda: is_reachable(own), "the first broker")
            for broker in (first, _serve(own, program)):
                broker.wait(DEADLINE_S)
    return find_overlaps(seen)


def is_reachable(own: Namespace) -> bool:
    found = attempt(own.places.socket)
    found.close()
    return found.outcome == CONNECTED


def _serve(own: Namespace, program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program, "serve"],
        env=own.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
