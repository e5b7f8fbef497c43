"""Another program's exclusive claim at every moment of a start: before each system call that Python lets us see.

Owns the moments and the judgement. The other program creates ``broker.spawn.lock`` with O_EXCL as the lineage does,
then writes its pid and stays alive. It may win or lose that; never may both of us go on: when it created the file and
nobody listened yet, our candidate must lose, and its claim must stay.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

from intercomd.edges.listener.binding import bind_socket
from intercomd.edges.ownership.acquisition import acquire
from intercomd.edges.ownership.holding import Ownership
from libintercom.endpoint import CONNECTED, attempt
from tests.trials.namespaces import NO_PID, namespace
from tests.trials.privileges import INITIAL_PIDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from libintercom.paths import Places

# What the namespace holds when the start begins.
NOTHING, DEAD_CLAIM, DEAD_BROKER = "nothing there", "a dead claim", "a dead broker's files"
# Each with what it needs: elsewhere a bare pid that is gone proves nothing.
SITUATIONS = {NOTHING: (), DEAD_CLAIM: (INITIAL_PIDS,), DEAD_BROKER: (INITIAL_PIDS,)}
# Audit events (sys.addaudithook) of calls that touch a file, a lock or a socket.
_CALLS = ("open", "os.", "fcntl.", "socket.")
# No start makes so many calls.
_MOST_MOMENTS = 400
_DEADLINE_S = 0.03


@dataclasses.dataclass(frozen=True)
class Moment:
    """One start: before which call the other program came, whether it could claim, and what we became."""

    situation: str
    number: int
    call: str
    is_theirs: bool
    was_served: bool
    ours: str
    is_intact: bool

    @property
    def violation(self) -> str:
        """What is wrong, or ""."""
        where = f"{self.situation}, before call {self.number} ({self.call})"
        if self.is_theirs and self.ours == "won" and not self.was_served:
            return f"{where}: another program claimed the start, and we went on"
        if self.is_theirs and not self.is_intact:
            return f"{where}: another program's claim was taken away"
        if not self.is_theirs and self.ours != "won":
            return f"{where}: neither could start: {self.ours}"
        return ""


def each_moment(situation: str) -> Iterator[Moment]:
    """One start for every call that it makes, each in a namespace of its own; ends behind the last call."""
    for number in range(1, _MOST_MOMENTS):
        with namespace() as own:
            os.mkdir(own.directory, 0o700)
            _arrange(own.places, situation)
            seen = _start(own.places, number)
        if not seen["call"]:
            return
        yield Moment(situation, number, **seen)
    raise AssertionError(f"a start made more than {_MOST_MOMENTS} calls")


def _arrange(places: Places, situation: str) -> None:
    if situation == DEAD_CLAIM:
        _write(places.claim, f"{NO_PID}\n1800000000000\n")
    elif situation == DEAD_BROKER:
        _write(places.record, f"{NO_PID}\n")
        with socket.socket(socket.AF_UNIX) as former:
            former.bind(places.socket)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _fork(act: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        act()
    finally:
        os._exit(0)


def _start(places: Places, number: int) -> dict[str, Any]:
    """One start in a process of its own, since an audit hook stays for good."""
    reading, writing = os.pipe()
    starter = _fork(lambda: os.write(writing, json.dumps(_start_here(places, number)).encode()))
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(starter, 0)
    seen: dict[str, Any] = json.loads(told)
    return seen


def _start_here(places: Places, number: int) -> dict[str, Any]:
    other = _Other(places)
    count = 0

    def watch(event: str, _arguments: object) -> None:
        nonlocal count
        if other.is_due and event.startswith(_CALLS):
            count += 1
            if count == number:
                other.claim(event)

    other.is_due = True
    sys.addaudithook(watch)
    won = acquire(places, bind_socket, deadline_s=_DEADLINE_S)
    other.is_due = False
    seen = {
        "call": other.call,
        "is_theirs": other.has_claimed,
        "was_served": other.was_served,
        "ours": "won" if isinstance(won, Ownership) else won.kind,
        "is_intact": other.is_intact(),
    }
    other.end()
    return seen


class _Other:
    """The other program; ``call`` is before which of our calls it came."""

    def __init__(self, places: Places) -> None:
        self._places, self._pid = places, 0
        self.is_due = self.has_claimed = self.was_served = False
        self.call = ""

    def claim(self, call: str) -> None:
        """Let it try, and wait until it has."""
        self.is_due, self.call = False, call
        reading, writing = os.pipe()
        self._pid = _fork(lambda: self._try(writing))
        os.close(writing)
        told = os.read(reading, 2)
        os.close(reading)
        self.has_claimed, self.was_served = told[:1] == b"y", told[1:] == b"y"

    def is_intact(self) -> bool:
        """Whether the claim is still the one that it wrote."""
        try:
            with open(self._places.claim, encoding="ascii") as file:
                return file.read() == f"{self._pid}\n1800000000000\n"
        except FileNotFoundError:
            return False

    def end(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def _try(self, writing: int) -> None:
        try:
            fd = os.open(self._places.claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            os.write(writing, b"nn")
            return
        os.write(fd, f"{os.getpid()}\n1800000000000\n".encode())
        seen = attempt(self._places.socket, timeout_s=0.0)
        os.write(writing, b"yy" if seen.outcome == CONNECTED else b"yn")
        signal.pause()
