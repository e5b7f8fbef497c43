"""One trial's own namespace: a private directory, the environment that leads to it, and its programs by pid.

Owns finding the programs that serve it or try to, and ending exactly those. A program belongs to a namespace when its
own environment says so; it is looked at again after a descriptor of it was opened, so that no reused pid is ever hit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from libintercom.paths import RUNTIME_DIR_VARIABLE, Places, find_places
from tests.support.executables import ROOT, write_executable
from tests.support.waiting import NotSeen, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Beyond Linux's largest pid (2^22), so that nobody can get it meanwhile: other trials make the machine reuse pids.
NO_PID = 5_000_000
# An idle broker of these trials leaves in a twentieth of a second; ending takes a few milliseconds more.
LEAVING_S = 10.0
# setpriority(2): about thirty times the share of an ordinary program. Only root may.
_URGENT_NICE = -15


class Namespace:
    """``directory`` is the runtime directory (not made yet), ``parent`` a private folder around it."""

    def __init__(self, parent: str, variables: Mapping[str, str], folder: str) -> None:
        self.parent, self.directory = parent, os.path.join(parent, folder, "r")
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "PYTHONPATH": str(ROOT),
            "HOME": parent,
            RUNTIME_DIR_VARIABLE: self.directory,
            **variables,
        }
        self.places: Places = find_places(self.environment)
        # Who ran before there was a namespace is none of its programs; a storm adds those that it knows better.
        self.others = {name for name in os.listdir("/proc") if name.isdigit()}

    def use_executable(self, *, before: str = "", options: str = "") -> str:
        """Make every broker of this namespace one that runs some Python first, or has more options; its path."""
        path = str(write_executable(Path(f"{self.parent}/intercomd"), before=before, options=options))
        self.environment["PI_INTERCOM_EXECUTABLE"] = path
        return path

    def rename(self, directory: str) -> None:
        """Lead to another runtime directory from now on, whether it can be used or not."""
        self.directory = self.environment[RUNTIME_DIR_VARIABLE] = directory

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Let this very program be one that uses the namespace: its environment, as the library reads it."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def programs(self, *, is_hasty: bool = False) -> list[int]:
        """The pids of the programs that serve this namespace or are candidates for it.

        ``is_hasty``: without looking at the pids of ``others``, one of which may be a new program's by now.
        """
        names = [name for name in os.listdir("/proc") if name.isdigit() and not (is_hasty and name in self.others)]
        return [int(name) for name in names if self._is_ours(name)]

    def kill(self, pid: int, number: int = signal.SIGKILL) -> bool:
        """Send a signal to one of our programs; ``False`` when it is gone already."""
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            if not self._is_ours(str(pid)):
                return False
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(fd)
        return True

    def wait_empty(self, deadline_s: float = LEAVING_S) -> list[int]:
        """Wait until no program is left; those that are after the deadline."""
        try:
            wait_until(lambda: not self.programs(), "every program to end", deadline_s)
        except NotSeen:
            return self.programs()
        return []

    def _is_ours(self, pid: str) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                if f"{RUNTIME_DIR_VARIABLE}={self.directory}".encode() not in environ.read().split(b"\0"):
                    return False
            with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                return b"serve" in cmdline.read().split(b"\0")
        except OSError:
            return False


def hurry(nice: int = _URGENT_NICE) -> int:
    """Come before the crowd that is watched, where the system allows it; what the nice value was before.

    A starved witness sees nothing, and a starved killer hits nobody in the middle of anything.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    return before


@contextlib.contextmanager
def namespace(variables: Mapping[str, str] | None = None, folder: str = "") -> Iterator[Namespace]:
    """A namespace of one's own; whatever still serves it at the end is killed, and everything is removed.

    ``folder``: the name of a folder between the private one and the runtime directory.
    """
    parent = tempfile.mkdtemp(prefix="itr-", dir="/tmp")
    os.makedirs(os.path.join(parent, folder), mode=0o700, exist_ok=True)
    own = Namespace(parent, variables or {}, folder)
    try:
        yield own
    finally:
        for pid in own.programs():
            own.kill(pid)
        own.wait_empty()
        shutil.rmtree(parent, ignore_errors=True)
