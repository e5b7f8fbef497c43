"""The machine under the figures: its facts, and which processors a run uses.

Owns what is said about the machine, without names or paths of it. Does not own any measurement.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import resource
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Distributions of which the speed of the broker depends on.
_PACKAGES = ("msgspec", "uvloop", "typer", "structlog", "pydantic-settings")
# Each session of a crowd is a descriptor in the broker and one here; a few more for everything else.
CROWD = 10_000
_SPARE = 200


@dataclass(frozen=True)
class Placement:
    """``same``: broker and generator on one processor (latency). ``split``: one each (throughput)."""

    broker: int
    generator: int

    @property
    def name(self) -> str:
        return "same" if self.broker == self.generator else "split"


def placements() -> tuple[Placement, Placement]:
    """Same and split. On a machine with one processor both are the same."""
    usable = sorted(os.sched_getaffinity(0))
    # The last processors: the first one often serves interrupts.
    return Placement(usable[-1], usable[-1]), Placement(usable[-1], usable[-2] if len(usable) > 1 else usable[-1])


@contextlib.contextmanager
def pinned(cpu: int) -> Iterator[None]:
    """Programs started inside run on this processor; so does this one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def raise_descriptors() -> int:
    """As many descriptors as may be had; returns how many."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def descriptors_short() -> str:
    """Why a crowd does not fit, or ``""``."""
    limit, needed = resource.getrlimit(resource.RLIMIT_NOFILE)[0], CROWD + _SPARE
    return "" if limit >= needed else f"RLIMIT_NOFILE is {limit}, {CROWD:,} sessions need {needed:,} (ulimit -Hn)"


def facts(compiler: str) -> dict[str, str]:
    """Name -> what a reader must know to compare figures."""
    usable = sorted(os.sched_getaffinity(0))
    return {
        "processor": f"{_cpu_model()}, {len(usable)} usable{_virtual()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "C library": " ".join(platform.libc_ver()),
        "Python": f"{platform.python_implementation()} {platform.python_version()} ({platform.python_compiler()})",
        "packages": ", ".join(_versions()),
        "C compiler": compiler or "none",
        "descriptors": f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]:,} (RLIMIT_NOFILE)",
        "load before": load(),
    }


def load() -> str:
    return "{:.2f} {:.2f} {:.2f} (1, 5, 15 minutes)".format(*os.getloadavg())


def compiler_version(compiler: str) -> str:
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    return said.splitlines()[0] if said else compiler


def unusable() -> str:
    """Why nothing can be measured here, or ``""``."""
    if sys.platform != "linux":
        return "it needs Linux: processor placement, /proc and epoll"
    missing = [name for name in ("intercomd", "libintercom") if importlib.util.find_spec(name) is None]
    return f"{', '.join(missing)} cannot be found by {sys.executable}" if missing else ""


def _versions() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return found


def _cpu_lines() -> list[str]:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def _cpu_model() -> str:
    named = [line.split(":", 1)[1].strip() for line in _cpu_lines() if line.startswith(("model name", "Model"))]
    return named[0] if named else platform.machine()


def _virtual() -> str:
    flags = next((line for line in _cpu_lines() if line.startswith("flags")), "")
    return ", a virtual machine" if "hypervisor" in flags.split() else ""
