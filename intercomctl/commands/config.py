"""`intercomctl config show|check`: the settings that a broker would start with now.

Owns the two commands. The daemon alone knows its settings, so they are asked from `intercomd config --json`, run as a
broker would be: the same program, the same clean environment.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from intercomctl import output
from intercomctl.options import JSON, Command
from libintercom.errors import (
    EXIT_DONE,
    EXIT_REFUSED,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    IntercomError,
    InvalidConfiguration,
)
from libintercom.launching import clean_environment, find_command
from libintercom.paths import find_places
from libintercom.starting import read_start_settings

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping

# The daemon's settings library takes a third of a second to load; a machine that swaps needs longer.
DEADLINE_S = 30.0
_DEFAULT = "default"
# How much of a failed program's words is shown; the last ones say what it was.
_TAIL_CHARS = 400


class Rejected(IntercomError):
    """The daemon cannot use its configuration; the text is its own, which names source, key and reason."""

    exit_status = EXIT_USAGE

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class Unanswered(IntercomError):
    """The daemon's program did not tell its configuration."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, command: str, found: str) -> None:
        super().__init__(command, found)
        self.command, self.found = command, found

    def __str__(self) -> str:
        return f"cannot read the configuration through {self.command}: {self.found}."


def show(*, as_json: bool) -> int:
    """Print every setting, its value and where that comes from."""
    found = _read_configuration()
    if as_json:
        output.emit(found)
    else:
        output.say("\n".join(_describe(found)))
    return EXIT_DONE


def check(*, as_json: bool) -> int:
    """Say whether a broker could start with the settings as they are."""
    problem, changed = "", []
    try:
        settings = _read_configuration()["settings"]
        changed = [key for key, setting in settings.items() if setting["source"] != _DEFAULT]
    except (Rejected, InvalidConfiguration) as wrong:
        problem = str(wrong)
    if as_json:
        output.emit({"ok": not problem, "problem": problem or None, "changed": changed})
    elif problem:
        output.note(problem)
    else:
        output.say(f"The configuration is valid. Changed from the defaults: {', '.join(changed) or 'nothing'}.")
    return EXIT_REFUSED if problem else EXIT_DONE


def _describe(found: Mapping[str, Any]) -> Iterator[str]:
    settings = found["settings"]
    width = max(len(key) for key in settings)
    for key, setting in settings.items():
        source = "" if setting["source"] == _DEFAULT else f"   from {setting['source']}"
        yield f"{key:{width}}  {json.dumps(setting['value'])}{source}"
    yield ""
    for file in found["files"]:
        yield f"{file['path']}: {'read' if file['exists'] else 'not there'}"


def _read_configuration() -> dict[str, Any]:
    """What `intercomd config --json` says.

    Raises:
        Rejected: it refuses its configuration.
        Unanswered, NotStarted: it cannot be run, or says something else.

    """
    ended, program = _run_daemon()
    if ended.returncode == EXIT_USAGE:
        raise Rejected(ended.stderr.strip().removeprefix("intercomd: "))
    if ended.returncode:
        said = ended.stderr.strip()[-_TAIL_CHARS:].rstrip(".") or "it said nothing"
        raise Unanswered(program, f"it ended with status {ended.returncode}: {said}")
    try:
        found = json.loads(ended.stdout)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not {"settings", "files"} <= found.keys():
        raise Unanswered(program, "it says something else")
    return found


def _run_daemon() -> tuple[subprocess.CompletedProcess[str], str]:
    # Imported here: registering the command does without it.
    import subprocess

    places = find_places()
    *command, _serve = find_command(read_start_settings(places).executable, places.socket)
    try:
        ended = subprocess.run(  # noqa: S603 - the program that would be started as the broker
            [*command, "config", "--json"],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",
            env={**clean_environment(os.environ), "PI_INTERCOM_RUNTIME_DIR": places.runtime_dir},
            timeout=DEADLINE_S,
        )
    except OSError as failure:
        raise Unanswered(command[0], failure.strerror or str(failure)) from None
    except subprocess.TimeoutExpired:
        raise Unanswered(command[0], f"it did not answer within {DEADLINE_S:g} s") from None
    return ended, command[0]


SHOW = Command("config show", show, "Print every setting of the broker, its value and where that comes from.", JSON)
CHECK = Command(
    "config check",
    check,
    "Check the settings that a broker would start with.\n\nExits 1 and names source, key and reason when one cannot be "
    "used.",
    JSON,
)
