"""What Linux tells about a running program: memory, processor time, how often it woke (proc(5)).

Owns reading /proc. Does not own which program nor when.
"""

from __future__ import annotations

import os

# Writing this into clear_refs sets the peak of resident memory back to what is resident now (proc(5)).
_RESET_PEAK = "5"
_KIB = 1024


def resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS") * _KIB


def peak_bytes(pid: int) -> int:
    return _status(pid, "VmHWM") * _KIB


def reset_peak(pid: int) -> None:
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write(_RESET_PEAK)


def cpu_ns(pid: int) -> int:
    """Processor time of all its threads so far, in nanoseconds (schedstat is exact, stat counts ticks)."""
    return sum(int(_read(f"/proc/{pid}/task/{thread}/schedstat").split()[0]) for thread in _threads(pid))


def wakeups(pid: int) -> int:
    """How often its threads went to sleep and were woken again."""
    texts = [_read(f"/proc/{pid}/task/{thread}/status") for thread in _threads(pid)]
    return sum(_number(text, "voluntary_ctxt_switches") for text in texts)


def affinity(pid: int) -> dict[int, set[int]]:
    """The processors that each of its threads may use."""
    return {int(thread): os.sched_getaffinity(int(thread)) for thread in _threads(pid)}


def pin(pid: int, cpu: int) -> None:
    """Keep every thread of a running program on one processor."""
    for thread in _threads(pid):
        os.sched_setaffinity(int(thread), {cpu})


def _threads(pid: int) -> list[str]:
    return os.listdir(f"/proc/{pid}/task")


def _status(pid: int, name: str) -> int:
    return _number(_read(f"/proc/{pid}/status"), name)


def _number(status: str, name: str) -> int:
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()
