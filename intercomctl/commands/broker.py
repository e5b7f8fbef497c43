"""`intercomctl broker start|stop|restart`: the broker that nobody supervises.

Owns the three commands and the rule of stopping: SIGTERM, and only to a program that is proven to be the broker.
Starting is ``libintercom.starting``'s. Nothing is ever killed harder, and no file is touched.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING

from intercomctl import joining, output, shapes
from intercomctl.options import JSON, Command
from libintercom.errors import EXIT_UNKNOWN, IntercomError, NotRunning
from libintercom.paths import find_places
from libintercom.platforms import ANDROID, current_platform

if TYPE_CHECKING:
    from libintercom.paths import Places
    from libintercom.wire.messages import BrokerHello

# A broker that was told to end flushes what it holds first; in tests that takes milliseconds, on a slow disk longer.
STOP_DEADLINE_S = 15.0
# Where the system cannot say that a process ended, it is asked this often.
_POLL_S = 0.05


class NotStopped(IntercomError):
    """The broker was not told to end, because it cannot be proven which process it is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"not stopping the broker: {self.reason}. No signal was sent."


class StillRunning(IntercomError):
    """The broker was told to end and has not ended in time."""

    exit_status = EXIT_UNKNOWN

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid

    def __str__(self) -> str:
        return (
            f"intercomd (pid {self.pid}) was told to end and still runs after {STOP_DEADLINE_S:g} s. It is not killed: "
            "look at its log, and end it yourself if it is stuck."
        )


def start(*, as_json: bool) -> int:
    """Start the broker unless it runs."""
    state = "already_running"
    try:
        client = joining.observe(may_start=False)
    except NotRunning:
        state, client = "started", joining.observe()
    with client:
        _tell(state, client.broker, as_json=as_json)
    return 0


def stop(*, as_json: bool) -> int:
    """Stop the broker if it runs."""
    hello = _stop_running()
    _tell("not_running" if hello is None else "stopped", hello, as_json=as_json)
    return 0


def restart(*, as_json: bool) -> int:
    """Stop the broker if it runs, then start one."""
    old = _stop_running()
    with joining.observe() as client:
        _tell("started" if old is None else "restarted", client.broker, as_json=as_json)
    return 0


def _tell(state: str, hello: BrokerHello | None, *, as_json: bool) -> None:
    if as_json:
        output.emit({"state": state, "broker": shapes.broker(hello)})
        return
    who = "intercomd" if hello is None else f"{hello.program} {hello.version} (pid {hello.pid})"
    output.say(f"{who}: {state.replace('_', ' ')}")


def _stop_running() -> BrokerHello | None:
    """Stop the running broker and wait until it is gone; what it had said about itself, or None if none ran."""
    try:
        client = joining.observe(may_start=False)
    except NotRunning:
        return None
    with client:
        hello: BrokerHello | None = client.broker
    if hello is None:
        raise NotStopped("it does not say who it is, since it is older than this program; stop it where it was started")
    _end(find_places(), hello.pid)
    return hello


def _end(places: Places, pid: int) -> None:
    """SIGTERM to the broker, proven to be the process ``pid``, and wait for its end."""
    handle = _open_process(pid)
    try:
        _require_owner(places, pid)
        # Through the handle: the pid cannot have come to mean another process since the proof.
        if handle is None:
            os.kill(pid, signal.SIGTERM)
        else:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
        if not _has_ended(pid, handle):
            raise StillRunning(pid)
    except ProcessLookupError:
        # It ended by itself between the proof and the signal.
        return
    finally:
        if handle is not None:
            os.close(handle)


def _require_owner(places: Places, pid: int) -> None:
    """The record's lock is held, and it names the process that answered at the socket."""
    from libintercom.ownership.directory import open_directory
    from libintercom.ownership.inspection import inspect
    from libintercom.ownership.readings import read_ours
    from libintercom.ownership.verdict import LIVE, UNKNOWN
    from libintercom.paths import RECORD_NAME

    with open_directory(places.runtime_dir, uid=places.uid, is_created=False) as directory:
        # The endpoint takes no part: somebody listens, and that does not say which process holds the record.
        found = inspect(directory, RECORD_NAME, read_ours(), UNKNOWN)
    if found.kind != LIVE or found.record is None:
        raise NotStopped(f"its record does not prove which process it is: {found.reason}")
    if found.record.pid != pid:
        raise NotStopped(f"it says that it is pid {pid}, and the record says pid {found.record.pid}")


def _open_process(pid: int) -> int | None:
    """A handle of a process, where the system has such; a wait on it ends with the process.

    Not on Android: its sandbox may kill a program for the call instead of refusing it (ownership.md section 1).
    """
    opener = None if current_platform() == ANDROID else getattr(os, "pidfd_open", None)
    try:
        return None if opener is None else int(opener(pid))
    except OSError:
        return None


def _has_ended(pid: int, handle: int | None) -> bool:
    if handle is not None:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        return bool(poller.poll(STOP_DEADLINE_S * 1000))
    end = time.monotonic() + STOP_DEADLINE_S
    while time.monotonic() < end:
        os.kill(pid, 0)
        time.sleep(_POLL_S)
    return False


START = Command(
    "broker start",
    start,
    "Start the broker, if none runs.\n\nIt runs detached, and ends by itself some seconds after the last session has "
    "left. Every command starts it when it is needed; this one is for checking that it starts.",
    JSON,
)
STOP = Command(
    "broker stop",
    stop,
    "Stop the broker, if one runs.\n\nIt is asked to end (SIGTERM), only when its lock proves which process it is, and "
    "never killed. Connected sessions lose it, and start another one when they need it.",
    JSON,
)
RESTART = Command("broker restart", restart, "Stop the broker if one runs, then start one.", JSON)
