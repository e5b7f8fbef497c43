"""The first phase of ``intercomd serve``: from the command line to winning or losing the namespace.

Owns parsing the arguments and composing ownership, binding and report. It imports the standard library and libintercom
only: of a hundred candidates started at once, ninety-nine end here, and none of them should have loaded an event loop.
Does not own serving: the caller imports the rest once it has won.
"""

from __future__ import annotations

import os
import stat

from intercomd import settling
from intercomd.edges.listener.binding import bind_socket
from intercomd.edges.ownership.acquisition import acquire
from intercomd.edges.ownership.outcomes import ERROR, Outcome
from intercomd.edges.ownership.reporting import Reporter
from intercomd.streams import STANDARD_FDS, complain
from libintercom.errors import EXIT_UNREACHABLE, EXIT_USAGE, IntercomError
from libintercom.paths import find_places
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import BOOL, COUNT, NUMBER, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from intercomd.edges.ownership.holding import Ownership
    from libintercom.paths import Places

USAGE = "usage: intercomd serve [--idle-exit-s SECONDS] [--report-fd FD] [--as-broker-command PATH] [--limits bench]"
# The only named set of limits: every rate and queue limit raised, accounting on.
BENCH_LIMITS = "bench"
# The event loops have eight or nine, ownership and log five, loading a module two; the rest is for the first sessions.
NEEDED_FDS = 32


class Options(Record):
    """The arguments of ``serve``. ``idle_exit_s`` is absent when the command line does not say it.

    ``report_fd`` is the starter's pipe. ``is_detached``: a starter launched us and goes its own way. The path of
    ``--as-broker-command`` is accepted for clients that are told to start our broker instead of theirs, and ignored.
    """

    idle_exit_s: float | None = optional(NUMBER, default=None)
    report_fd: int | None = optional(COUNT, default=None)
    limits: str | None = optional(STRING, default=None)
    is_detached: bool = required(BOOL)


class UsageError(IntercomError):
    """The command line is not one of ``serve``."""

    exit_status = EXIT_USAGE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"intercomd serve: {self.reason}\n{USAGE}"


class Won:
    """What the winner serves with. The caller must call ``reporter.ready()`` once it accepts registrations.

    ``ownership.listening`` is the listening socket at the canonical path, non-blocking; ``ownership`` is withdrawn and
    released at the end. After a failed start: ``fail``.
    """

    def __init__(self, options: Options, places: Places, ownership: Ownership, reporter: Reporter) -> None:
        self.options, self.places, self.ownership, self.reporter = options, places, ownership, reporter

    @property
    def listening(self) -> socket.socket:
        return self.ownership.listening

    def fail(self, reason: str) -> None:
        """Take every file away again, let go, and report that the start failed after it was won.

        In this order: a starter that hears of the failure looks at the endpoint next, and must find nobody there.
        """
        self.ownership.leave()
        self.reporter.report(ERROR, reason)


def run(arguments: list[str]) -> Won | int:
    """Become the broker, or return the exit status of a candidate that did not; the report is then sent already.

    ``arguments`` is what follows ``intercomd`` on the command line, beginning with ``serve``. Statuses: 0 a broker
    serves already; 1 another program holds the start; 2 usage or settings; 3 an owner may be alive; 4 the runtime
    directory cannot be used.
    """
    try:
        options = parse(arguments)
    except UsageError as error:
        complain(f"{error}\n")
        return error.exit_status
    reporter = Reporter(options.report_fd)
    if options.is_detached:
        settling.detach()
    settling.settle()
    free = settling.count_free_fds(NEEDED_FDS)
    if free < NEEDED_FDS:
        reason = f"{free} of the {NEEDED_FDS} descriptors that a broker needs are free; raise RLIMIT_NOFILE (ulimit -n)"
        return _lose(reporter, ERROR, reason, EXIT_UNREACHABLE)
    try:
        places = find_places()
    except IntercomError as error:
        return _lose(reporter, ERROR, str(error), error.exit_status)
    won = acquire(places, bind_socket)
    if isinstance(won, Outcome):
        return _lose(reporter, won.kind, won.reason, won.exit_status, is_doubtful=won.is_doubtful)
    return Won(options, places, won, reporter)


def parse(arguments: list[str]) -> Options:
    """The options of a ``serve`` command line. Raises ``UsageError``."""
    if arguments[:1] != ["serve"]:
        raise UsageError(f"{arguments[0]!r} is not serve" if arguments else "the command is missing")
    values: dict[str, object] = {"is_detached": False}
    rest = list(arguments[1:])
    while rest:
        name, separator, inline = rest.pop(0).partition("=")
        if name == "--detach":
            values["is_detached"] = True
            continue
        if name not in _READERS:
            raise UsageError(f"{name!r} is not known")
        if not separator and not rest:
            raise UsageError(f"{name} needs a value")
        key, read = _READERS[name]
        value = read(name, inline if separator else rest.pop(0))
        if key:
            values[key] = value
    return Options(**values)  # type: ignore[arg-type]  # each reader returns what its field holds


def _read_seconds(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    # The second comparison is false for infinity and for what is not a number.
    if not 0.0 <= value < float("inf"):
        raise UsageError(f"{name} takes a number of seconds, 0 or more, not {text!r}")
    return value


def _read_fd(name: str, text: str) -> int:
    try:
        fd = int(text) if text.isascii() and text.isdigit() else -1
        mode = os.fstat(fd).st_mode
    except (OSError, OverflowError, ValueError):
        raise UsageError(f"{name}: {text!r} is no open descriptor") from None
    if fd in STANDARD_FDS:
        # It is closed after the report; a client's connection would then hear what is written to the stream.
        raise UsageError(f"{name}: descriptor {text} is a standard stream")
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        raise UsageError(f"{name}: descriptor {text} is neither a pipe nor a socket")
    # Whatever this program may start one day must not keep the starter waiting for the pipe's end.
    os.set_inheritable(fd, False)
    return fd


def _read_limits(name: str, text: str) -> str:
    if text != BENCH_LIMITS:
        raise UsageError(f"{name} knows only {BENCH_LIMITS}, not {text!r}")
    return text


def _read_path(_name: str, text: str) -> str:
    return text


# Option, the field it fills ("" for none), and its reader.
_READERS = {
    "--idle-exit-s": ("idle_exit_s", _read_seconds),
    "--report-fd": ("report_fd", _read_fd),
    "--limits": ("limits", _read_limits),
    "--as-broker-command": ("", _read_path),
}


def _lose(reporter: Reporter, result: str, reason: str, exit_status: int, *, is_doubtful: bool = False) -> int:
    if not reporter.report(result, reason, is_doubtful=is_doubtful):
        # Nobody waits for a report: a person or a supervisor started us, and reads this instead.
        complain(f"intercomd: {result}: {reason}\n")
    return exit_status
