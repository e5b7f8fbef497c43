"""Lanes: processes that play one story after the other, each with a namespace and a nursery of its own.

Owns dividing the runs and adding up what the lanes saw. Does not own what a lane plays (``session_lane``,
``broker_lane``).
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import selectors
import shutil
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TextIO

    # Plays so many runs from a seed, with a planted fault or "", and tells of each story; true: that is enough.
    Lane = Callable[[int, int, str, Callable[["Told"], bool]], None]

_MEMORY = "/dev/shm"
# Violations that one lane says before it stops.
_ENOUGH = 20
_FAILED_STATUS = 70


@dataclass
class Told:
    """What was done and seen. ``deaths``: killed lives by point; ``counts``: of everything else."""

    deaths: collections.Counter[str] = field(default_factory=collections.Counter)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """Lives that were killed."""
        return sum(self.deaths.values())

    def add(self, other: Told) -> None:
        self.deaths.update(other.deaths)
        self.counts.update(other.counts)
        self.violations += other.violations


def play(
    lane: Lane,
    runs: int,
    seed: int,
    lanes: int,
    *,
    planted: str = "",
    seen_as: str = "",
    tell: Callable[[Told], object] = lambda _told: None,
) -> Told:
    """So many killed lives in so many processes.

    A lane ends early when it found enough violations, or one that says ``seen_as``.
    """
    told = Told()
    children = [_fork(lane, seed * 1_000 + number, -(-runs // lanes), planted, seen_as) for number in range(lanes)]
    for line in _read_all([reader for _pid, reader in children]):
        parts = json.loads(line)
        told.add(Told(collections.Counter(parts["deaths"]), collections.Counter(parts["counts"]), parts["violations"]))
        tell(told)
    for pid, reader in children:
        reader.close()
        _pid, status = os.waitpid(pid, 0)
        if status:
            told.violations.append(f"a lane ended with status {status}")
    return told


@contextlib.contextmanager
def quick_directory() -> Iterator[str]:
    """A kill takes nothing from the kernel, so files stand in memory where that can be had."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
    made = tempfile.mkdtemp(prefix="itc-", dir=place)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _read_all(files: Sequence[TextIO]) -> Iterator[str]:
    with selectors.DefaultSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ, file)
        while selector.get_map():
            for key, _events in selector.select():
                # One line at a time is written, and each is read as soon as it is there.
                line = key.data.readline()
                if line:
                    yield line
                else:
                    selector.unregister(key.fileobj)


def _fork(lane: Lane, seed: int, runs: int, planted: str, seen_as: str) -> tuple[int, TextIO]:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _be(lane, seed, runs, planted, _Teller(write_end, seen_as))
    os.close(write_end)
    return pid, open(read_end, encoding="utf-8")


class _Teller:
    """Hands what a lane tells to the trial."""

    def __init__(self, out: int, seen_as: str) -> None:
        self._out, self._seen_as = out, seen_as
        self._found = 0

    def tell(self, told: Told) -> bool:
        parts: dict[str, Any] = {"deaths": told.deaths, "counts": told.counts, "violations": told.violations}
        os.write(self._out, json.dumps(parts).encode() + b"\n")
        self._found += len(told.violations)
        is_seen = bool(self._seen_as) and any(self._seen_as in violation for violation in told.violations)
        return is_seen or self._found >= _ENOUGH


def _be(lane: Lane, seed: int, runs: int, planted: str, teller: _Teller) -> NoReturn:
    """In a process of its own; it must never return into the trial."""
    status = _FAILED_STATUS
    try:
        lane(seed, runs, planted, teller.tell)
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(status)
