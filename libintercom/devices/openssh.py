"""The ssh program as a transport: one child for each request, ended by its pid, none left behind.

Owns the child, its three streams, the deadlines and the grace. The user's own ssh configuration is left alone. Does
not own what the streams mean (``conversation``).
"""

from __future__ import annotations

import os
import select
import subprocess
import time

from libintercom.devices.command import REMOTE_COMMAND, ssh_arguments
from libintercom.devices.conversation import ANSWERED
from libintercom.devices.endings import EXITED, NOT_STARTED, OVERFLOWED, TIMED_OUT, WITHDRAWN, Ending
from libintercom.devices.transport import Hooks
from libintercom.printable import make_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from libintercom.devices.conversation import Conversation

# What ssh says last is its reason; a banner may stand before it.
MAX_ERROR_BYTES = 64 * 1024
MAX_ERROR_LINE_CHARS = 500
_READ_BYTES = 64 * 1024
# A pipe holds as much; more at once would only be copied in vain.
_WRITE_BYTES = 64 * 1024
# After its answer the command leaves by itself; after a withdrawal it has to tell its broker first, and says what
# became of the message. Together they stay below the 3 s in which a question has to be retired.
ANSWERED_GRACE_S = 1.0
WITHDRAWN_GRACE_S = 2.5
# From SIGTERM to SIGKILL.
_TERMINATED_GRACE_S = 1.0
# The most that one turn waits: a child that exited while another process holds its streams open is seen then.
_TURN_S = 0.5
# Behind the end of its output a child is gone in a moment: there is only its exit to look for.
_EXIT_TURN_S = 0.002
_PREFIX = "ssh: "


class OpenSsh:
    """The ssh program at ``program``, with the constant remote command unless another is given."""

    def __init__(self, program: str = "ssh", command: str = REMOTE_COMMAND) -> None:
        self._program, self._command = program, command

    def converse(self, device: str, conversation: Conversation, hooks: Hooks | None = None) -> Ending:
        """Run one request; see ``Transport``."""
        try:
            child = subprocess.Popen(  # noqa: S603 - fixed arguments; a device's name is checked and stands behind "--"
                ssh_arguments(device, self._command, self._program),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # A Ctrl-C at the caller's terminal is for the caller, who withdraws the request in order.
                start_new_session=True,
            )
        except OSError as failure:
            return Ending(NOT_STARTED, None, f"cannot run {self._program}: {failure.strerror}")
        return _Run(child, conversation, hooks or Hooks()).finish()


class _Run:
    """One child from its start to its end."""

    def __init__(self, child: subprocess.Popen[bytes], conversation: Conversation, hooks: Hooks) -> None:
        self._child, self._conversation, self._hooks = child, conversation, hooks
        # None once it is over.
        self._stdin, self._stdout, self._stderr = child.stdin, child.stdout, child.stderr
        self._errors = b""
        self._stage, self._stage_began = "", time.monotonic()
        # When the grace is over, once it has begun.
        self._ends_at: float | None = None
        self._cause = EXITED
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)

    def finish(self) -> Ending:
        try:
            while not self._is_over():
                self._turn()
            self._read_errors()
        finally:
            self._end_child()
        self._conversation.finish()
        return Ending(self._cause, self._child.returncode, self._last_line())

    # ------------------------------------------------------------------ one turn

    def _is_over(self) -> bool:
        """Whether nothing more is waited for; begins the grace where it is time for it."""
        conversation, now = self._conversation, time.monotonic()
        if self._stdout is None:
            return self._has_exited(now)
        if conversation.fault:
            self._cause = OVERFLOWED
            return True
        self._follow_stage(now)
        if self._ends_at is None and now >= self._stage_began + conversation.patience_s:
            self._cause = TIMED_OUT
            return True
        return self._ends_at is not None and now >= self._ends_at

    def _has_exited(self, now: float) -> bool:
        """After the end of its output the child gets a moment to exit, so that its status is known."""
        self._begin_grace(ANSWERED_GRACE_S)
        return self._child.poll() is not None or (self._ends_at is not None and now >= self._ends_at)

    def _follow_stage(self, now: float) -> None:
        stage = self._conversation.stage
        if stage != self._stage:
            self._stage, self._stage_began = stage, now
            if self._hooks.on_stage is not None:
                self._hooks.on_stage(stage)
        if stage == ANSWERED:
            self._close_stdin()
            self._begin_grace(ANSWERED_GRACE_S)

    def _begin_grace(self, seconds: float) -> None:
        if self._ends_at is None:
            self._ends_at = time.monotonic() + seconds

    def _turn(self) -> None:
        poller = select.poll()
        if self._stdin is not None:
            # Without anything to write it is still watched for its other end's going.
            wanted = select.POLLOUT if len(self._conversation.output()) else 0
            poller.register(self._stdin, wanted)
        for stream in (self._stdout, self._stderr):
            if stream is not None:
                poller.register(stream, select.POLLIN)
        withdrawal = self._hooks.withdrawal
        if withdrawal is not None and self._cause != WITHDRAWN:
            poller.register(withdrawal, select.POLLIN)
        ready = {descriptor for descriptor, _events in poller.poll(int(self._wait_s() * 1000) + 1)}
        self._serve(ready)

    def _wait_s(self) -> float:
        """Until the next deadline, a turn at most."""
        ends_at = self._ends_at if self._ends_at is not None else self._stage_began + self._conversation.patience_s
        longest = _TURN_S if self._stdout is not None else _EXIT_TURN_S
        return max(0.0, min(longest, ends_at - time.monotonic()))

    def _serve(self, ready: set[int]) -> None:
        withdrawal = self._hooks.withdrawal
        if withdrawal is not None and withdrawal.fileno() in ready and self._cause != WITHDRAWN:
            self._withdraw()
        if self._stderr is not None and self._stderr.fileno() in ready:
            self._read_errors()
        if self._stdout is not None and (self._stdout.fileno() in ready or self._child.poll() is not None):
            self._read(self._stdout)
        if self._stdin is not None and self._stdin.fileno() in ready:
            self._write(self._stdin)

    def _withdraw(self) -> None:
        self._cause = WITHDRAWN
        self._close_stdin()
        self._ends_at = time.monotonic() + (WITHDRAWN_GRACE_S if self._conversation.is_handed_over else 0.0)

    # ------------------------------------------------------------------ streams

    def _read(self, stdout: IO[bytes]) -> None:
        chunk = _read_some(stdout)
        if chunk:
            self._conversation.receive(chunk)
        elif chunk == b"" or self._child.poll() is not None:
            # Its end, or the child is gone and somebody else holds the stream open.
            self._stdout = None

    def _read_errors(self) -> None:
        while self._stderr is not None:
            chunk = _read_some(self._stderr)
            if chunk == b"":
                self._stderr = None
            elif chunk is None:
                return
            else:
                self._errors = (self._errors + chunk)[-MAX_ERROR_BYTES:]
                if self._child.poll() is None:
                    return

    def _write(self, stdin: IO[bytes]) -> None:
        waiting = self._conversation.output()[:_WRITE_BYTES]
        try:
            if len(waiting):
                self._conversation.wrote(os.write(stdin.fileno(), waiting))
            else:
                # Nothing to write and yet an event: its other end has gone.
                self._close_stdin()
        except BlockingIOError:
            return
        except OSError:
            # Nobody reads it any more; why, its output and its exit say.
            self._close_stdin()
        if self._conversation.closes_input:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            stdin, self._stdin = self._stdin, None
            stdin.close()

    # ------------------------------------------------------------------ the end

    def _end_child(self) -> None:
        """End the child we started, by its pid; its streams are closed, whoever else may hold them."""
        self._close_stdin()
        child = self._child
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(_TERMINATED_GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()

    def _last_line(self) -> str:
        """The last line of ssh's own words that says something, fit for one line of a terminal."""
        lines = self._errors.decode("utf-8", "replace").splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return make_line(last.removeprefix(_PREFIX))[:MAX_ERROR_LINE_CHARS]


def _read_some(stream: IO[bytes]) -> bytes | None:
    """What is there now; empty at the end, None when nothing is there."""
    try:
        return os.read(stream.fileno(), _READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
