"""What a candidate meets: one namespace with the record, claim, socket or directory that an encounter is about.

Owns putting them there, as the programs do that would leave them, and the files that must stay. Does not own what must
follow (``encounters``).
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from libintercom.ownership.readings import read_ours, read_stat
from libintercom.ownership.records import dump_owner, native_line
from tests.integration.ownership.test_verdicts import in_child
from tests.support.daemon import Daemon
from tests.support.owners import make_publication
from tests.support.pids import REUSE_ATTEMPTS, end, reuse, spawn
from tests.trials.verdicts.candidates import Report, run_candidate

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Sequence

    from libintercom.paths import Places
    from tests.trials.namespaces import Namespace

# The files that name an owner.
_NAMES = ("broker.sock", "broker.pid", "broker.spawn.lock")


class Scene:
    """The namespace ``own`` with its directory made; ``seen`` is what was observed beside the report."""

    def __init__(self, own: Namespace, stack: contextlib.ExitStack) -> None:
        self.own, self.places, self.stack = own, own.places, stack
        self.seen = ""
        os.mkdir(own.directory, 0o700)

    def run(
        self, prefix: Sequence[str] = (), *, restriction: str = "", variables: dict[str, str] | None = None
    ) -> Report:
        """One real candidate; what stood under the three names of an owner must stand there afterwards, if it lost."""
        before = self._files()
        report = run_candidate(self.own, prefix=prefix, restriction=restriction, variables=variables)
        if report.result not in ("ready", "won") and self._files() != before:
            self.seen += f" CHANGED {before} TO {self._files()}"
        return report

    def _files(self) -> dict[str, tuple[int, bytes]]:
        found = {}
        for name in _NAMES:
            path = f"{self.own.directory}/{name}"
            if os.path.lexists(path):
                is_readable = os.path.isfile(path) and not os.path.islink(path)
                found[name] = (os.lstat(path).st_ino, Path(path).read_bytes() if is_readable else b"")
        return found

    # ------------------------------------------------------------------ owners

    def broker(self) -> Daemon:
        """A living broker of ours."""
        broker = Daemon(self.own.directory, "--idle-exit-s", "600").wait_ready()
        self.stack.callback(broker.kill)
        return broker

    def owner(self, publish: Callable[[Places], None]) -> int:
        """A living program that published its record; killed at the end of the scene."""
        pid = in_child(lambda: publish(self.places))
        self.stack.callback(end, pid)
        return pid

    def reuse(self) -> int:
        """A pid that somebody had, and another program has until the end of the scene."""
        for _attempt in range(REUSE_ATTEMPTS):
            pid = spawn()
            end(pid)
            if self.take(pid):
                return pid
        raise AssertionError(f"no pid was reused in {REUSE_ATTEMPTS} attempts")

    def reuse_within_tick(self) -> tuple[int, int]:
        """The same within one clock tick, and the start ticks that both have."""
        for _attempt in range(REUSE_ATTEMPTS):
            pid = spawn()
            ticks = read_stat(pid)[1]
            end(pid)
            if not reuse(pid):
                continue
            if read_stat(pid)[1] == ticks:
                self.stack.callback(end, pid)
                return pid, ticks
            end(pid)
        raise AssertionError(f"no pid was reused within one clock tick in {REUSE_ATTEMPTS} attempts")

    def take(self, pid: int) -> bool:
        """Let another program have this pid, until the end of the scene."""
        if not reuse(pid):
            return False
        self.stack.callback(end, pid)
        return True

    def stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)

    # ------------------------------------------------------------------ records

    def write(self, name: str, text: str | bytes) -> None:
        Path(f"{self.own.directory}/{name}").write_bytes(text.encode() if isinstance(text, str) else text)

    def write_complete(self, pid: int, *, machine: str = "", **identity: str | int) -> None:
        """A complete record that keeps no lock, as of this machine and boot unless said otherwise."""
        ours = read_ours()
        changed = ours.identity.replace(**identity)
        publication = make_publication(machine=machine or ours.machine, identity=changed)
        self.write("broker.pid", dump_owner(pid, publication))

    def write_native(self, pid: int, **identity: str | int) -> None:
        """The two lines of newer programs of the lineage, which name no machine."""
        self.write("broker.pid", f"{pid}\n{native_line(read_ours().identity.replace(**identity))}\n")

    def hand_over(self, uid: int) -> None:
        """Make directory and record another user's, as if that user's programs had made them."""
        for path in (self.own.parent, self.own.directory, self.places.record):
            os.chown(path, uid, uid)
