"""Pids that the kernel gives twice: small programs, and the number the next one gets (Linux, root).

Owns starting and ending them. They are spawned, not forked: copying a large test process takes longer than the clock
tick within which a reused pid cannot be told from the one before.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
# Another program may take the wanted number first; on a busy machine more than once.
REUSE_ATTEMPTS = 200
# Longer than any test.
_LIFE_S = "3600"


def spawn() -> int:
    """A program that sleeps until it is ended; its pid."""
    return os.posix_spawn("/bin/sleep", ["sleep", _LIFE_S], {})


def end(pid: int) -> None:
    """Kill a child and take its number back."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def reuse(pid: int) -> bool:
    """Start a program that has exactly this pid; ``False`` when somebody was faster."""
    LAST_PID.write_text(str(pid - 1), encoding="ascii")
    other = spawn()
    if other == pid:
        return True
    end(other)
    return False
