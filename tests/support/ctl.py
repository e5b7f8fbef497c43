"""The command line as its users run it: one program per command, with a pipe or a terminal around it.

Owns running `intercomctl`, talking with a joined one, and telling what a terminal must never get. Does not own the
broker behind it (``daemon``, ``scripted_broker``).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import selectors
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libintercom.identity import make_uuid
from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROGRAM = str(Path(sys.executable).with_name("intercomctl"))
_READ_BYTES = 65_536
# U+009F, the last of the C1 controls.
_LAST_CONTROL = 0x9F
_DELETE = 0x7F


@dataclass(frozen=True)
class Ended:
    """A command that ended. ``out`` is everything shown when it ran at a terminal."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on standard output, which has the version."""
        (line,) = self.out.splitlines()
        shown: dict[str, Any] = json.loads(line)
        assert shown["version"] == 1
        return shown


class Ctl:
    """Runs commands against the broker of one runtime directory."""

    def __init__(self, directory: str, **variables: str) -> None:
        self.directory = directory
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {"PI_INTERCOM_RUNTIME_DIR": directory, "XDG_STATE_HOME": f"{directory}/state", "HOME": directory}
        self.environment = {**kept, **own, "USER": "tester", **variables}

    def having(self, **variables: str) -> Ctl:
        """The same with more environment variables."""
        changed = Ctl(self.directory)
        changed.environment = {**self.environment, **variables}
        return changed

    def run(self, *words: str, stdin: bytes = b"", cwd: str | bytes = "/") -> Ended:
        """Run one command with pipes around it."""
        ended = subprocess.run(
            [PROGRAM, *words],
            check=False,
            input=stdin,
            capture_output=True,
            env=self.environment,
            cwd=cwd,
            timeout=DEADLINE_S,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def in_shell(self, line: str) -> Ended:
        """Run ``intercomctl`` with what a shell makes of the rest of the line; the status is the command's."""
        script = f"set -o pipefail; {PROGRAM} {line}"
        ended = subprocess.run(
            ["bash", "-c", script],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.environment,
            cwd="/",
            timeout=DEADLINE_S,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def run_at_terminal(self, *words: str, columns: int = 80, typed: bytes = b"", cwd: str | bytes = "/") -> Ended:
        """Run one command at a terminal of a width; ``typed`` is what is entered there."""
        with terminal(columns) as (master, slave):
            command = [PROGRAM, *words]
            shell = subprocess.Popen(
                command, stdin=slave, stdout=slave, stderr=slave, env=self.environment, cwd=cwd, start_new_session=True
            )
            os.close(slave)
            os.write(master, typed)
            shown = _read_all(master)
            return Ended(shell.wait(DEADLINE_S), shown.decode(), "")

    @contextlib.contextmanager
    def joined(self, name: str, *words: str) -> Iterator[Joined]:
        """A session that a script drives; it leaves at the end.

        Unless its native ID is given it is a fresh one: the questions that a test leaves open are not the next one's.
        """
        own = [] if "--session-id" in words else ["--session-id", make_uuid()]
        session = Joined([PROGRAM, "join", name, "--jsonl", *own, *words], self.environment)
        try:
            session.hear("registered")
            yield session
        finally:
            session.close()


class Joined:
    """`intercomctl join --jsonl` in the hands of a test. Every wait has a deadline."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._program = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd="/",
        )
        assert self._program.stdout is not None
        self._fd = self._program.stdout.fileno()
        self._received = b""
        # Everything heard so far, in order.
        self.events: list[dict[str, Any]] = []

    @property
    def session_id(self) -> str:
        return str(self.events[0]["sessionId"])

    @property
    def pid(self) -> int:
        return self._program.pid

    def say(self, *actions: dict[str, Any]) -> None:
        self.say_raw("".join(f"{json.dumps(action)}\n" for action in actions).encode())

    def say_raw(self, raw: bytes) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(raw)
        self._program.stdin.flush()

    def hear(self, event: str, request_id: str | int | None = None) -> dict[str, Any]:
        """The next event of a kind (and mark); what comes before it is kept in ``events`` as well."""
        end = time.monotonic() + DEADLINE_S
        while True:
            heard = self._next(end)
            assert heard is not None, f"ended without {event} {request_id}; heard {self.events}"
            if heard["event"] == event and request_id in (None, heard.get("requestId")):
                return heard

    def ask_and_hear(self, event: str, **action: Any) -> dict[str, Any]:
        """Say one action and wait for its answer of a kind."""
        request_id = f"r{len(self.events)}"
        self.say({**action, "requestId": request_id})
        return self.hear(event, request_id)

    def interrupt(self) -> None:
        self._program.send_signal(signal.SIGINT)

    def end_input(self) -> int:
        """End the input and wait for the end; the exit status. The last events are in ``events``."""
        assert self._program.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._program.stdin.close()
        return self.wait()

    def wait(self) -> int:
        """Wait for the end by itself; the exit status."""
        end = time.monotonic() + DEADLINE_S
        while self._next(end) is not None:
            pass
        return self._program.wait(DEADLINE_S)

    def close(self) -> None:
        if self._program.poll() is None:
            self.end_input()
        for stream in (self._program.stdin, self._program.stdout, self._program.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _next(self, end: float) -> dict[str, Any] | None:
        while b"\n" not in self._received:
            received = _read_some(self._fd, end)
            if not received:
                return None
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        heard: dict[str, Any] = json.loads(line)
        assert heard["version"] == 1
        self.events.append(heard)
        return heard


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo-terminal; the caller closes the second."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        yield master, slave
    finally:
        os.close(master)


def unsafe_characters(shown: str, allowed: str = "\n\t") -> list[str]:
    """What in a text would act on a terminal, hide from a reader, or could not be printed."""
    return [one for one in shown if one not in allowed and (not one.isprintable() or _is_control(one))]


def _is_control(one: str) -> bool:
    return _DELETE <= ord(one) <= _LAST_CONTROL


def _read_all(fd: int) -> bytes:
    shown, end = b"", time.monotonic() + DEADLINE_S
    while received := _read_some(fd, end):
        shown += received
    return shown


def _read_some(fd: int, end: float) -> bytes:
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        assert selector.select(max(0.0, end - time.monotonic())), "nothing came in time"
    try:
        return os.read(fd, _READ_BYTES)
    except OSError:
        # A terminal that nobody holds open any more.
        return b""
