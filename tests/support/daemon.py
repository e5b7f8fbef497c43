"""A real ``intercomd serve`` in a runtime directory of its own, for tests that need a living broker.

Owns starting one, waiting for its report line, stopping it by its own pid and showing that nothing of it is left.
Does not own what is said to it (``raw_peer``) nor the fixtures that hand it out (each test folder's conftest).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.waiting import DEADLINE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
# Three files that an orderly exit removes; the lock files and the log stay by design.
PUBLISHED = ("broker.sock", "broker.pid", "broker.spawn.lock")
# How much of a failed broker's stderr an assertion shows.
_TAIL_CHARS = 4_000


@contextlib.contextmanager
def runtime_directory() -> Iterator[str]:
    """An own, private, short directory (a socket path has 100 bytes at most); removed afterwards."""
    path = tempfile.mkdtemp(prefix="icd-", dir="/tmp")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Daemon:
    """One broker process. ``report`` is the line it wrote to its report descriptor.

    ``prefix`` is a command that runs it, for instance one that lowers a limit first.
    """

    def __init__(
        self,
        directory: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.socket_path = f"{directory}/broker.sock"
        self.stderr_path = f"{directory}/stderr.txt"
        self.stdout_path = f"{directory}/stdout.txt"
        read_end, write_end = os.pipe()
        try:
            self.process = self._launch(arguments, environment or {}, write_end, prefix)
        finally:
            os.close(write_end)
        self._report_fd = read_end

    def _launch(
        self, arguments: tuple[str, ...], environment: Mapping[str, str], report_fd: int, prefix: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        chosen = {**kept, "PYTHONPATH": str(ROOT), "PI_INTERCOM_RUNTIME_DIR": self.directory, **environment}
        # What it keeps goes with the test, not into the user's state folder.
        chosen.setdefault("PI_INTERCOM_SPOOL", f"{self.directory}/state/spool.sqlite")
        command = [*prefix, sys.executable, "-m", "intercomd", "serve", "--report-fd", str(report_fd), *arguments]
        with open(self.stdout_path, "ab") as stdout, open(self.stderr_path, "ab") as stderr:
            return subprocess.Popen(
                command,
                cwd="/",
                env=chosen,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[report_fd],
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def read_report(self, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """The one line a candidate reports; an empty object when it ended without one."""
        line, end = b"", time.monotonic() + deadline_s
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([self._report_fd], [], [], max(0.0, end - time.monotonic()))
            assert readable, f"no report within {deadline_s} s; stderr: {self.stderr_tail()}"
            received = os.read(self._report_fd, 4096)
            if not received:
                break
            line += received
        report: dict[str, Any] = json.loads(line) if line.strip() else {}
        return report

    def wait_ready(self) -> Daemon:
        """Wait until the broker says that it serves."""
        self.report = self.read_report()
        assert self.report == {"result": "ready"}, f"it reported {self.report}; stderr: {self.stderr_tail()}"
        return self

    def connect(self) -> socket.socket:
        """A plain connection to it, with a deadline on every call."""
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        peer.settimeout(DEADLINE_S)
        peer.connect(self.socket_path)
        return peer

    def wait_exit(self, deadline_s: float = DEADLINE_S) -> int:
        """Its exit status, once it is gone."""
        wait_until(lambda: not self.is_running, f"broker {self.pid} to exit", deadline_s)
        status = self.process.wait()
        self._close_report()
        return status

    def stop(self) -> int:
        """SIGTERM, then its exit status; everything it published must be gone."""
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)
        status = self.wait_exit()
        left = [name for name in PUBLISHED if os.path.lexists(f"{self.directory}/{name}")]
        assert not left, f"the broker left {left}; stderr: {self.stderr_tail()}"
        return status

    def kill(self) -> None:
        """SIGKILL: no orderly exit, its files stay."""
        self.process.kill()
        self.wait_exit()

    def stderr_tail(self) -> str:
        return Path(self.stderr_path).read_text(errors="replace")[-_TAIL_CHARS:]

    def stdout(self) -> str:
        return Path(self.stdout_path).read_text(errors="replace")

    def log_records(self) -> list[dict[str, Any]]:
        """What it logged so far, oldest first; a line that is still being written is left out."""
        path = Path(self.directory) / "broker.log"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def _close_report(self) -> None:
        if self._report_fd >= 0:
            os.close(self._report_fd)
            self._report_fd = -1


@contextlib.contextmanager
def running_daemon(
    *arguments: str,
    directory: str | None = None,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[Daemon]:
    """A ready broker; stopped in order at the end, unless the test has ended it, and nothing of it may be left."""
    with contextlib.ExitStack() as stack:
        chosen = directory or stack.enter_context(runtime_directory())
        daemon = Daemon(chosen, *arguments, environment=environment, prefix=prefix)
        try:
            yield daemon.wait_ready()
            if daemon.is_running:
                daemon.stop()
        finally:
            daemon.kill()
