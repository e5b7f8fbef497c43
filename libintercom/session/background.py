"""Failures that nobody asked about: a broken connection, a journal that stopped, a host that raised.

Owns saying each once until the operation recovers, and where it is said (seeds, "Local agent communication"): to the
program while it listens, to ``background-errors.log`` once it does not, to stderr where it never did. Does not own
the failures themselves.
"""

from __future__ import annotations

import os
import sys
import time

from libintercom.printable import make_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOG_NAME = "background-errors.log"
# Nobody reads a log of failures to its beginning; past this the older half of its life is moved aside once.
MAX_LOG_BYTES = 1024 * 1024


class BackgroundError:
    """One failure: the ``operation`` that failed, why, and when (Unix milliseconds)."""

    __slots__ = ("at_ms", "operation", "reason")

    def __init__(self, operation: str, reason: str, at_ms: int) -> None:
        self.operation, self.reason, self.at_ms = operation, reason, at_ms

    def __str__(self) -> str:
        return f"intercom: {self.operation}: {self.reason}"


class BackgroundErrors:
    """Says failures, each once: ``report`` what failed, ``recover`` what works again.

    ``tell`` is the program's own listener, or None for stderr. ``agent_dir`` is where the log may be written;
    empty means nowhere.
    """

    def __init__(self, tell: Callable[[BackgroundError], object] | None, agent_dir: str = "") -> None:
        self._tell, self._agent_dir = tell, agent_dir
        self._is_open = True
        self._said: dict[str, str] = {}

    def report(self, operation: str, reason: str) -> None:
        """Say that an operation failed, unless the same was said since it last worked."""
        if self._said.get(operation) == reason:
            return
        self._said[operation] = reason
        error = BackgroundError(operation, reason, int(time.time() * 1000))
        if self._tell is None:
            self._print(error)
        elif self._is_open:
            self._tell(error)
        else:
            self._log(error)

    def recover(self, operation: str) -> None:
        """The operation works: its next failure is said again."""
        self._said.pop(operation, None)

    def close(self) -> None:
        """The program listens no more; what fails from here on goes to the log."""
        self._is_open = False

    def _print(self, error: BackgroundError) -> None:
        try:
            sys.stderr.write(f"{make_line(str(error))}\n")
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            # Closed, or there is none at all: a program without a terminal.
            self._log(error)

    def _log(self, error: BackgroundError) -> None:
        if self._agent_dir:
            log_failure(error, self._agent_dir)


def log_failure(error: BackgroundError, agent_dir: str) -> None:
    """One line of the log. A directory that cannot be written loses it: there is no third place."""
    folder = os.path.join(agent_dir, "intercom")
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(error.at_ms / 1000))
    line = f"{stamp} pid {os.getpid()} {make_line(str(error))}\n"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _append(os.path.join(folder, LOG_NAME), line.encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def _append(path: str, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        size_bytes = os.fstat(descriptor).st_size
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
    if size_bytes > MAX_LOG_BYTES:
        os.replace(path, f"{path}.1")
