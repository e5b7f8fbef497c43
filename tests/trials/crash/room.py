"""A session whose journal finds no room: a disk that is full, a filesystem that became read-only.

Owns the small filesystem, in a mount namespace of its own, and what must be true: a clear word, nothing offered that
was not stored, nothing lost that was. Does not own the journal's own tests of that (``tests/integration/journal``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.support.daemon import ROOT, runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = "the disk is full"
READ_ONLY = "the filesystem is read-only when it starts again"
UNWRITABLE = "the folder cannot be written"
SCENES = (FULL, READ_ONLY, UNWRITABLE)
_TIMEOUT_S = 120.0


def find_missing() -> str:
    """Why these cannot be shown here, or ``""``."""
    tried = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"no mounts of one's own: {tried.stderr.strip()}"


def show(say: Callable[[str], object], planted: str = "") -> list[str]:
    """Every scene: what was seen is said; the violations."""
    violations = []
    for scene in SCENES:
        seen = perform(scene, planted)
        say(f"{scene}: " + ", ".join(f"{what} {found!r}" for what, found in seen.items() if what != "violations"))
        violations += [f"{scene}: {violation}" for violation in seen["violations"]]
    return violations


def perform(scene: str, planted: str = "") -> dict[str, Any]:
    """Play one scene in mounts of its own; what the player said (``room_player``)."""
    with runtime_directory() as place:
        mount = f"mount -t tmpfs -o size=640k,mode=0700 none {place}/state"
        player = f"{sys.executable} -m tests.trials.crash.room_player {place} '{scene}' '{planted}'"
        script = f"mkdir {place}/state {place}/run && chmod 700 {place}/run && {mount} && exec {player}"
        ended = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    lines = ended.stdout.splitlines()
    if ended.returncode or not lines:
        return {"violations": [f"the player ended with status {ended.returncode}: {ended.stderr[-2000:]}"]}
    seen: dict[str, Any] = json.loads(lines[-1])
    return seen
