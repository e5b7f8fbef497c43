"""Launching one detached candidate broker and reading its one-line report (ownership.md section 4).

Owns the candidate's command line, its clean environment, its stdio and the report pipe. Does not own when a candidate
is launched (``starting``) nor what it decides (``intercomd.candidate``).

Agents sit in untrusted repositories: a folder called ``msgspec`` in the working directory, PYTHONPATH or LD_PRELOAD
must not run code in the broker. So: an absolute interpreter, ``-I``, the root directory, and an environment that is
built from a short list instead of inherited. The candidate itself resets what is inherited beside it (signals, umask,
limits) before it does anything else; a function run between fork and exec would not be safe in a threaded agent.
"""

from __future__ import annotations

import json
import os
import select
import stat
import sys
import time

from libintercom.errors import InvalidConfiguration, NotStarted
from libintercom.paths import LOG_NAME, RUNTIME_DIR_VARIABLE
from libintercom.platforms import ANDROID, current_platform
from libintercom.wire.record import Record, required
from libintercom.wire.values import BOOL, STRING, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from typing import Callable

    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.paths import Places

# What a candidate may report.
READY = "ready"
ALREADY = "already"
CLAIMED = "claimed"
UNCERTAIN = "uncertain"
ERROR = "error"
RESULTS = (READY, ALREADY, CLAIMED, UNCERTAIN, ERROR)
# What is observed instead of a report: the pipe closed without a line; no line in time.
CRASHED = "crashed"
SILENT = "silent"

# An agent's surroundings may set these, and must not choose the program that becomes the broker.
_INTERPRETER_VARIABLES = ("PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__")
# proc(5): the program that really runs here.
_RUNNING_PROGRAM = "/proc/self/exe"
# intercomd runs on this Python or newer; an older client runs the installed script, which names its own interpreter.
_BROKER_PYTHON = (3, 11)
# Settings of the broker pass, but not the identity of the session that happens to start it.
_SETTING_PREFIX = "PI_INTERCOM_"
_SESSION_VARIABLES = frozenset(
    (
        "PI_INTERCOM_ROOT_SESSION_ID",
        "PI_INTERCOM_PARENT_SESSION_ID",
        "PI_INTERCOM_SESSION_ID",
        "PI_INTERCOM_STABLE_ID",
        "PI_INTERCOM_SCOPE_ID",
    )
)
# Android's programs need these to find their system; the places depend on PREFIX and, without it, on TMPDIR.
_ANDROID_VARIABLES = ("PREFIX", "TMPDIR", "TMP", "TEMP", "ANDROID_DATA", "ANDROID_ROOT", "ANDROID_ART_ROOT")
_FIXED = {
    # UTF-8 whatever the agent's locale was; every C library knows it by now, and an unknown name means plain C.
    "LANG": "C.UTF-8",
    # For a configured executable that starts through "env".
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    # With its defaults glibc returns and fetches memory for every 1 MiB frame (mallopt(3)). Frames and their copies
    # stay below 4 MiB, so they come from the heap, which keeps 4 MiB at its top and grows by 1 MiB.
    "MALLOC_MMAP_THRESHOLD_": str(4 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(4 * 1024 * 1024),
    "MALLOC_TOP_PAD_": str(1024 * 1024),
}

# A report is one short line; what is longer is none.
_REPORT_LIMIT_BYTES = 8192
# Of a crashed candidate's last words: enough for the end of a traceback, little enough for one sentence.
_TAIL_BYTES, _TAIL_LINES = 2048, 3
# The launched program hands over to its own child at once; this only bounds a machine that is stuck.
_REAP_S = 1.0


class Report(Record):
    """A candidate's answer: one of ``RESULTS``, or ``crashed`` or ``silent``; ``reason`` is for a person.

    ``is_doubtful`` on ``claimed``: the claim may be a living program's or not. It is waited for, since claims are
    short, but at the end it is an uncertain owner.
    """

    result: str = required(STRING)
    reason: str = required(TEXT)
    is_doubtful: bool = required(BOOL)


def launch_candidate(places: Places, directory: RuntimeDirectory, executable: str, deadline_s: float) -> Report:
    """Launch one candidate and wait at most ``deadline_s`` seconds for its report. Never kills it.

    Raises:
        NotStarted: there is nothing to launch, or launching failed.
        InvalidConfiguration: ``executable`` is not an absolute path of a program.

    """
    command = find_command(executable, places.socket)
    log = _open_log(directory, places)
    try:
        tail_start = os.lseek(log, 0, os.SEEK_END)
        end = time.monotonic() + deadline_s
        candidate, pipe = _spawn(command, log, places)
        try:
            line = _read_line(pipe, end)
        finally:
            os.close(pipe)
        ending = _reap(candidate, 0.0 if line is None else _REAP_S)
        if line is None:
            return observed(SILENT, f"a candidate did not report within {deadline_s:.1f} s")
        return parse_report(line) or observed(CRASHED, _describe_crash(ending, log, tail_start))
    finally:
        os.close(log)


def observed(result: str, reason: str) -> Report:
    """What a starter saw itself, where no candidate told."""
    return Report(result=result, reason=reason, is_doubtful=False)


def find_command(executable: str, path: str) -> list[str]:
    """The command line of a candidate, without the report pipe.

    ``executable`` is the configured absolute path, or ``""`` for the ``intercomd`` beside the running interpreter,
    whose own links are not resolved: they lead out of a virtual environment.
    """
    if executable:
        _require_program(executable)
        return [executable, "serve"]
    variable = _false_interpreter()
    if variable:
        found = f"the interpreter {sys.executable} was named by {variable} alone, and no executable is configured"
        raise NotStarted(path, found)
    beside = os.path.join(os.path.dirname(sys.executable), "intercomd") if sys.executable else ""
    if not _is_program(beside):
        found = f"no intercomd stands beside {sys.executable or 'this program'}, and no executable is configured"
        raise NotStarted(path, found)
    if sys.version_info >= _BROKER_PYTHON:
        return [sys.executable, "-I", "-m", "intercomd", "serve"]
    return [beside, "serve"]


def clean_environment(environ: Mapping[str, str], platform: str = "") -> dict[str, str]:
    """The whole environment of a broker: fixed values, its settings, and on Android where the system is."""
    kept = {name: value for name, value in environ.items() if _is_setting(name)}
    environment = {**_FIXED, **kept}
    if (platform or current_platform()) == ANDROID:
        environment.update({name: environ[name] for name in _ANDROID_VARIABLES if environ.get(name)})
        if environ.get("PREFIX"):
            environment["PATH"] = f"{environ['PREFIX']}/bin:{_FIXED['PATH']}"
    return environment


def parse_report(line: bytes) -> Report | None:
    """A candidate's line; ``None`` when it is none."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("result") not in RESULTS:
        return None
    reason = value.get("reason", "")
    return Report(
        result=value["result"],
        reason=reason if isinstance(reason, str) else "",
        is_doubtful=value.get("doubtful") is True,
    )


def _is_setting(name: str) -> bool:
    return name.startswith(_SETTING_PREFIX) and name not in _SESSION_VARIABLES


def _false_interpreter() -> str:
    """The variable that made up ``sys.executable``, or ``""``; Python believes both from 3.11 on."""
    named = [name for name in _INTERPRETER_VARIABLES if os.environ.get(name) == sys.executable]
    variable = named[0] if named else ""
    try:
        is_running = not variable or os.path.samestat(os.stat(sys.executable), os.stat(_RUNNING_PROGRAM))
    except OSError:
        # macOS has no such file, and its framework builds set the second variable themselves.
        is_running = not os.path.exists(_RUNNING_PROGRAM)
    return "" if is_running else variable


def _is_program(path: str) -> bool:
    return bool(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def _require_program(executable: str) -> None:
    if not executable.startswith("/"):
        raise InvalidConfiguration("the broker settings", "executable", f"{executable!r} is not an absolute path")
    if not _is_program(executable):
        reason = f"{executable} is not a program that this user may run"
        raise InvalidConfiguration("the broker settings", "executable", reason)


def _open_log(directory: RuntimeDirectory, places: Places) -> int:
    """The broker's log, for what a candidate says before it has a log of its own."""
    try:
        log = directory.open(LOG_NAME, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise NotStarted(places.socket, f"its log {places.log} cannot be opened ({error.strerror})") from error
    if stat.S_ISREG(os.fstat(log).st_mode):
        return log
    os.close(log)
    raise NotStarted(places.socket, f"its log {places.log} is not an ordinary file")


def _environment_for(places: Places) -> dict[str, str]:
    """The broker's environment, leading it to exactly these places."""
    environment = clean_environment(os.environ)
    environment.pop(RUNTIME_DIR_VARIABLE, None)
    if places.is_override:
        environment[RUNTIME_DIR_VARIABLE] = places.runtime_dir
    return environment


def _spawn(command: list[str], log: int, places: Places) -> tuple[subprocess.Popen[bytes], int]:
    """Start the command detached; return it and the reading end of its report pipe."""
    import subprocess  # imported here: it is slow to load, and most clients find their broker running

    reading, writing = os.pipe()
    try:
        candidate = subprocess.Popen(  # noqa: S603 - an absolute path, configured or beside this interpreter
            [*command, "--detach", "--report-fd", str(writing)],
            env=_environment_for(places),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writing,),
            start_new_session=True,
        )
    except OSError as error:
        os.close(reading)
        raise NotStarted(places.socket, f"{command[0]} cannot be run ({error.strerror})") from error
    finally:
        os.close(writing)
    return candidate, reading


def _read_line(fd: int, end: float, clock: Callable[[], float] = time.monotonic) -> bytes | None:
    """The first line from a pipe, what came before its end, or ``None`` when neither came until ``end``."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    received = b""
    while b"\n" not in received and len(received) < _REPORT_LIMIT_BYTES:
        # At least one look, and never a negative time, which would mean for ever.
        if not poller.poll(max(0.0, end - clock()) * 1000.0):
            return None
        chunk = os.read(fd, _REPORT_LIMIT_BYTES)
        if not chunk:
            break
        received += chunk
    return received.partition(b"\n")[0]


def _reap(candidate: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit status of the launched program, which must not stay behind as a zombie that looks like an owner."""
    from subprocess import TimeoutExpired  # loaded already

    _lingering[:] = [former for former in _lingering if former.poll() is None]
    try:
        return candidate.wait(timeout_s)
    except TimeoutExpired:
        # Somebody stopped it. It is not ours to kill, so it is collected when it has ended.
        _lingering.append(candidate)
        return None


# Launched programs that had not ended when their report was read or given up.
_lingering: list[subprocess.Popen[bytes]] = []


def _describe_crash(ending: int | None, log: int, tail_start: int) -> str:
    status = "" if not ending else f" (status {ending})" if ending > 0 else f" (signal {-ending})"
    tail = read_tail(log, tail_start)
    said = f"; it said last: {tail}" if tail else ""
    return f"a candidate ended without a report{status}{said}"


def read_tail(log: int, start: int) -> str:
    """The last lines written to ``log`` since ``start``, as one printable line."""
    size = os.lseek(log, 0, os.SEEK_END)
    first = max(start, size - _TAIL_BYTES)
    text = os.pread(log, _TAIL_BYTES, first).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(char if char.isprintable() else "?" for char in " | ".join(lines[-_TAIL_LINES:]))
