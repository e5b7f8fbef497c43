"""What a machine must have for a trial to be real: programs, rights, and facts about where it runs.

Owns asking for them by name, and the words for what is missing. In an ordinary container root may neither mount nor
make namespaces, and its pids are not the machine's.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from libintercom.ownership.readings import read_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT, NAMESPACES, PID_REUSE = "root", "namespaces", "pid reuse"
INITIAL_PIDS, MACHINE_ID = "initial pids", "machine id"


def _may_make_namespaces() -> bool:
    command = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/proc"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


# Name -> whether it is there, and what to say when it is not.
_FACTS: dict[str, tuple[Callable[[], bool], str]] = {
    ROOT: (lambda: os.geteuid() == 0, "root: it acts as another user"),
    NAMESPACES: (_may_make_namespaces, "the right to mount and to make namespaces (CAP_SYS_ADMIN, unshare)"),
    PID_REUSE: (lambda: os.access("/proc/sys/kernel/ns_last_pid", os.W_OK), "the right to write to ns_last_pid"),
    INITIAL_PIDS: (lambda: read_ours().is_initial_pid_ns, "the initial pid namespace"),
    MACHINE_ID: (lambda: read_ours().machine is not None, "a machine with a machine id"),
}


@functools.cache
def missing(name: str) -> str:
    """What is missing of one need, "" when it is there. A name that is none of the above is a program's."""
    if name in _FACTS:
        is_there, words = _FACTS[name]
        return "" if is_there() else words
    return "" if shutil.which(name) is not None else name


def missing_of(needs: Iterable[str]) -> str:
    """What is missing of several needs, in words."""
    return ", ".join(filter(None, map(missing, needs)))


def marks_for(needs: Iterable[str]) -> list[pytest.MarkDecorator]:
    """Marks for a test that needs this: programs may be mandatory, rights and facts are not everybody's to have."""
    programs = [name for name in needs if name not in _FACTS]
    facts = missing_of(name for name in needs if name in _FACTS)
    skips = [pytest.mark.skipif(True, reason=f"it needs {facts}")] if facts else []
    return [*skips, pytest.mark.needs(*programs)] if programs else skips
