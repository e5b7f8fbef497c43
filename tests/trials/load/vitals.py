"""What Linux tells about a running broker: memory, its peak, descriptors, processor time (proc(5)).

Owns reading /proc, and keeping programs on processors of their own. Does not own when nor what is concluded.
"""

from __future__ import annotations

import os
import resource

# Writing this into clear_refs sets the peak of resident memory back to what is resident now.
_RESET_PEAK = "5"
_KIB = 1024
MIB = 1024 * 1024


# As ``tests.support.daemon`` calls it; SQLite's log and index beside it have longer names.
SPOOL_NAME = "/spool.sqlite"


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        # Closed since the folder was listed.
        return ""


class Vitals:
    """One program by its pid."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def resident_bytes(self) -> int:
        return self._status("VmRSS") * _KIB

    @property
    def peak_bytes(self) -> int:
        return self._status("VmHWM") * _KIB

    @property
    def descriptors(self) -> int:
        """How many are open. The spool opens its files when something is stored first: one of each is not counted."""
        links = [f"/proc/{self.pid}/fd/{number}" for number in os.listdir(f"/proc/{self.pid}/fd")]
        targets = [target for target in map(_read_link, links) if target]
        return len(targets) - len({target for target in targets if SPOOL_NAME in target})

    @property
    def processor_s(self) -> float:
        """Processor time so far (schedstat counts nanoseconds)."""
        with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9

    def reset_peak(self) -> None:
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write(_RESET_PEAK)

    def _status(self, name: str) -> int:
        with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(f"{name}:"))


def processors() -> tuple[int, int]:
    """The broker's and the pair's; one machine's only processor is both."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[-1], usable[-2] if len(usable) > 1 else usable[-1]


def pin(pid: int, cpu: int) -> None:
    """Keep a running program, every thread of it, on one processor."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})


def step_aside() -> None:
    """From now on this thread runs only when nobody else wants the processor: nobody measured waits for it."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def raise_descriptors() -> int:
    """As many descriptors as may be had, for this program and those it starts; returns how many."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
