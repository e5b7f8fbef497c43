"""Running both witnesses as programs of their own, and reading what they saw.

Owns their start, their end and their files. Does not own what they look at (``life``, ``path``) nor what follows from
it (``judgement``).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.executables import ROOT
from tests.support.waiting import DEADLINE_S
from tests.trials.witness.judgement import Hold, Seen, Service
from tests.trials.witness.path import HEALTHY, REGISTERED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.trials.namespaces import Namespace

_ANSWERS = (REGISTERED, HEALTHY)


@contextlib.contextmanager
def watching(own: Namespace, folder: Path, seed: int, *, is_path_watched: bool = True) -> Iterator[Seen]:
    """Two witnesses of a namespace; what they saw is in the yielded ``Seen`` once the block is left.

    Without ``is_path_watched`` only life is: each connection of the other witness may keep a broker from leaving.
    """
    life_path, path_path = folder / "life.json", folder / "path.jsonl"
    seen = Seen()
    path_path.touch()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_running("life", own.directory, str(life_path)))
        if is_path_watched:
            stack.enter_context(_running("path", own.places.socket, str(path_path), str(seed)))
        yield seen
    life = json.loads(life_path.read_text())
    seen.holds += [Hold(*hold) for hold in life["holds"]]
    seen.nameless += [(inode, last - first) for inode, first, last in life["nameless"]]
    seen.looks, seen.longest_gap_s = life["looks"], life["longestGapS"]
    for line in path_path.read_text().splitlines():
        asked = json.loads(line)
        found = asked["found"]
        seen.attempts[found] = seen.attempts.get(found, 0) + 1
        if found in _ANSWERS:
            who = (asked["incarnation"], asked["pid"])
            seen.services.append(Service(*who, asked["begun"], asked["ended"], found == REGISTERED))


@contextlib.contextmanager
def _running(witness: str, *arguments: str) -> Iterator[None]:
    command = [sys.executable, "-m", f"tests.trials.witness.{witness}", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == b"looking\n"
        try:
            yield
        finally:
            program.stdin.close()
            status = program.wait(2 * DEADLINE_S)
    assert status == 0, f"the {witness} witness ended with status {status}"
