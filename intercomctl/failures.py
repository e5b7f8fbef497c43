"""From an error to what is said and how the program ends: the only place of the command line that decides it.

Owns the exit statuses' words, the one sentence of every failure, and the report of a bug. Does not own the errors
themselves (``libintercom.errors``) nor how a line is printed (``output``).
"""

from __future__ import annotations

from intercomctl import output, shapes
from libintercom import errors, outcomes
from libintercom.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_USAGE, IntercomError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from intercomctl.options import Command
    from libintercom.outcomes import Outcome

    class UsageMistake(Protocol):
        """What the framework raises for a command line that it cannot read."""

        ctx: Any

        def format_message(self) -> str: ...


# What scripts may rely on (house.md section 6); shown by --help of every command.
EXIT_STATUSES = (
    (errors.EXIT_DONE, "done"),
    (errors.EXIT_REFUSED, "refused, unknown target, or a check found something"),
    (errors.EXIT_USAGE, "usage or configuration mistake; nothing was sent"),
    (errors.EXIT_UNKNOWN, "outcome unknown: the message may have arrived"),
    (errors.EXIT_UNREACHABLE, "not running, unreachable, or nothing there to talk to"),
    (errors.EXIT_NO_REPLY, "accepted, but no reply in time"),
    (errors.EXIT_BUG, "a bug in this program; a report file was written"),
    (errors.EXIT_INTERRUPTED, "interrupted"),
)
# The mark tells the framework to keep the lines as they are.
EXIT_STATUS_HELP = "\b\nExit statuses:\n" + "\n".join(f"{status:4}  {meaning}" for status, meaning in EXIT_STATUSES)


# A message that never left: which codes are the caller's mistake and which the broker's absence; others are refusals.
_NOT_SENT_STATUSES = {
    "invalid_message": errors.EXIT_USAGE,
    "too_large": errors.EXIT_USAGE,
    outcomes.NOT_CONNECTED: errors.EXIT_UNREACHABLE,
}
# An interrupt before anything left; the word that the library has for a wait that its own side ended.
_CANCELLED = "cancelled"
# The codes of a target that the roster would have helped with.
_TARGET_CODES = ("not_found", "ambiguous", "too_short")


class InvalidUsage(IntercomError):
    """Options that are each valid and do not go together, or a value outside its range. Nothing was sent."""

    exit_status = EXIT_USAGE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def run_command(command: Command, values: Mapping[str, Any]) -> int:
    """Run a command with the values of its command line; return the exit status."""
    return guard(lambda: command.run(**values), is_json=bool(values.get("as_json")))


def guard(run: Callable[[], int], *, is_json: bool = False) -> int:
    """Run and return the exit status; a failure is one line on stderr, with ``is_json`` an object on stdout as well."""
    try:
        return run()
    except IntercomError as failure:
        return _say(str(failure), failure.exit_status, is_json=is_json)
    except KeyboardInterrupt:
        return _say("interrupted", EXIT_INTERRUPTED, is_json=is_json)
    except Exception as bug:  # noqa: BLE001 - the one place where anything else becomes a report and status 70
        return _say(_report(bug), EXIT_BUG, is_json=is_json)


def status_of(outcome: Outcome) -> int:
    """The exit status of a message's outcome."""
    if outcome.is_accepted:
        return errors.EXIT_DONE
    if outcome.outcome == outcomes.UNKNOWN:
        return errors.EXIT_UNKNOWN
    if outcome.outcome == outcomes.NOT_SENT:
        return _NOT_SENT_STATUSES.get(outcome.code or "", errors.EXIT_REFUSED)
    return errors.EXIT_REFUSED


def hint_at_roster(outcome: Outcome, call: str = f"{output.PROGRAM} list") -> str:
    """What to do about a target that means nobody, or too many: ``call`` prints the roster."""
    return f" See who is there: {call}" if outcome.code in _TARGET_CODES else ""


def tell_not_sent(message_id: str, failure: IntercomError | KeyboardInterrupt, *, is_json: bool) -> int:
    """Say that a message never left this program, and why; return the exit status."""
    reason = str(failure) or "interrupted. The message was not sent."
    output.note(reason)
    if is_json:
        output.emit(shapes.outcome(outcomes.not_sent(message_id, _code_of(failure), reason)))
    return EXIT_INTERRUPTED if isinstance(failure, KeyboardInterrupt) else failure.exit_status


def _code_of(failure: IntercomError | KeyboardInterrupt) -> str:
    if isinstance(failure, KeyboardInterrupt):
        return _CANCELLED
    if isinstance(failure, errors.TooLarge):
        return "too_large"
    # Failures that are about the target say their own.
    code = getattr(failure, "code", "")
    if code:
        return str(code)
    return outcomes.NOT_CONNECTED if failure.exit_status == errors.EXIT_UNREACHABLE else "invalid_message"


def refuse_usage(mistake: UsageMistake) -> int:
    """Say what is wrong with a command line and where its help is."""
    command = mistake.ctx.command_path if mistake.ctx else output.PROGRAM
    return _say(f"{mistake.format_message()}\nTry '{command} --help'.", EXIT_USAGE, is_json=False)


def _say(sentence: str, status: int, *, is_json: bool) -> int:
    output.note(sentence)
    if is_json:
        output.emit({"error": sentence, "exitStatus": status})
    return status


def _report(bug: Exception) -> str:
    """Write the report of a bug; return the line that says where it is."""
    what = f"bug: {type(bug).__name__}{_place_of(bug)}"
    try:
        return f"{what}. A report for the authors is in {_write_report(bug)}; nothing was sent anywhere."
    except (OSError, IntercomError) as failure:
        return f"{what}: {bug}. No report could be written: {failure}"


def _place_of(bug: Exception) -> str:
    place = bug.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return ""
    return f" in {place.tb_frame.f_globals.get('__name__', '?')}, line {place.tb_lineno}"


def _write_report(bug: Exception) -> str:
    # Imported here: only a bug needs them.
    import os
    import time
    import traceback

    from libintercom.paths import find_places

    folder = f"{find_places().state_dir}/reports"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = f"{folder}/{output.PROGRAM}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.txt"
    # Only the owner may read it: an error's text can quote a message.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as report:
        report.write(_describe_program())
        report.writelines(traceback.format_exception(bug))
    return path


def _describe_program() -> str:
    """Versions and the command's name; never its arguments, which may hold a message."""
    import platform
    import sys

    from libintercom.version import __version__

    command = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].isalpha() else ""
    return f"{output.PROGRAM} {__version__} {command}\nPython {sys.version}\n{platform.platform()}\n\n"
