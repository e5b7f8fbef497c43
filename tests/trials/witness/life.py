"""``python -m tests.trials.witness.life DIRECTORY SEEN``: who holds life, from outside, until the input ends.

Owns seeing it as the kernel shows it: /proc/locks and the lock lines of /proc/<pid>/fdinfo say who holds an exclusive
flock, and /proc/<pid>/fd says on which file. A record counts from the moment in which it has the name ``broker.pid``,
also when somebody else took that name away; one that its owner withdrew (renamed, then unlinked) no longer counts.
Beside that the lock of whatever stands at ``broker.pid`` is probed, as any reader of it does.

Asks no broker and reads no log. Writes one JSON object to SEEN at the end.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
import time
from typing import Any

from tests.trials.namespaces import hurry

RECORD_NAME = "broker.pid"
# What the kernel adds to the name of a file that was unlinked or renamed over.
_DELETED = " (deleted)"
# Between two looks: much shorter than any start or end of a broker. Where two hold life, there is no pause.
_PAUSE_S = 0.002
_READ_BYTES = 1 << 20


class LifeWitness:
    """Looks again and again. ``holds`` are ``[pid, inode, first, last]``, in seconds of the monotonic clock.

    ``first`` is the end of the first look that found it and ``last`` the beginning of the last one: between them it
    was held without a break, since a record that was let go of is never locked again.
    """

    def __init__(self, directory: str) -> None:
        self.record = f"{directory}/{RECORD_NAME}"
        self.names = (self.record, self.record + _DELETED)
        self._seen: dict[tuple[int, int], list[float]] = {}
        # Inode that is held by nobody we can name -> first and last such look.
        self._nameless: dict[int, list[float]] = {}
        self.looks, self.longest_gap_s, self._looked_at = 0, 0.0, 0.0

    def look(self) -> int:
        """Look once; how many programs hold life."""
        begun = time.monotonic()
        if self._looked_at:
            self.longest_gap_s = max(self.longest_gap_s, begun - self._looked_at)
        self._looked_at = begun
        self.looks += 1
        held = self._probe()
        holders = {pid for pid in _lockers() for inode in self._records_of(pid) if self._note(pid, inode)}
        if held and held not in {inode for _pid, inode in self._seen}:
            self._nameless.setdefault(held, [begun, begun])[1] = time.monotonic()
        else:
            self._nameless.pop(held, None)
        return len(holders)

    def report(self) -> dict[str, Any]:
        return {
            "looks": self.looks,
            "longestGapS": self.longest_gap_s,
            "holds": [[pid, inode, first, last] for (pid, inode), (first, last) in self._seen.items()],
            "nameless": [[inode, first, last] for inode, (first, last) in self._nameless.items()],
        }

    def _note(self, pid: int, inode: int) -> bool:
        self._seen.setdefault((pid, inode), [time.monotonic(), 0.0])[1] = self._reading_begun
        return True

    def _records_of(self, pid: int) -> list[int]:
        """The inodes of the records that a program holds locked."""
        self._reading_begun = time.monotonic()
        try:
            fds = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            return []
        return [inode for fd in fds if (inode := self._locked_record(pid, fd))]

    def _locked_record(self, pid: int, fd: str) -> int:
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}") not in self.names:
                return 0
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as fdinfo:
                is_locked = any("FLOCK" in line and " WRITE " in line for line in fdinfo if line.startswith("lock:"))
            return os.stat(f"/proc/{pid}/fd/{fd}").st_ino if is_locked else 0
        except OSError:
            return 0

    def _probe(self) -> int:
        """The inode at ``broker.pid`` when somebody holds it, else 0."""
        try:
            fd = os.open(self.record, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.fstat(fd).st_ino
        finally:
            os.close(fd)
        return 0


def _lockers() -> set[int]:
    """The pids that hold an exclusive flock on anything."""
    fd = os.open("/proc/locks", os.O_RDONLY)
    try:
        text = b""
        while chunk := os.read(fd, _READ_BYTES):
            text += chunk
    finally:
        os.close(fd)
    found = set()
    for line in text.splitlines():
        words = line.split()
        # "->" marks somebody who waits for the lock.
        if b"FLOCK" in words and b"WRITE" in words and b"->" not in words:
            found.add(int(words[4]))
    return found


def main() -> int:
    directory, seen_path = sys.argv[1:]
    witness = LifeWitness(directory)
    hurry()
    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN)
    sys.stdout.write("looking\n")
    sys.stdout.flush()
    pause_s = _PAUSE_S
    while not poller.poll(pause_s * 1000.0):
        pause_s = _PAUSE_S if witness.look() < 2 else 0.0
    with open(seen_path, "w", encoding="ascii") as file:
        json.dump(witness.report(), file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
