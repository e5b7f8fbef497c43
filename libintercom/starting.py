"""Seeing to it that a broker serves the namespace: look, and where nobody is, start one (ownership.md section 4).

Owns the start policy and the loop of a starter. Does not own launching (``launching``), ownership (the candidate
decides that) nor the endpoint's checks (``endpoint``).

A starter owns nothing: it launches a candidate and waits for a healthy endpoint. ``.gate`` lets one candidate at a
time be launched, which only saves work; the candidate's own locks keep brokers apart.
"""

from __future__ import annotations

import json
import os
import stat
import time

from libintercom.endpoint import ABSENT, BUSY, CONNECTED, REFUSED, Attempt, attempt
from libintercom.errors import InvalidConfiguration, NotRunning, NotStarted, UncertainOwner, UnsafeDirectory
from libintercom.launching import CLAIMED, ERROR, SILENT, UNCERTAIN, Report, launch_candidate, observed
from libintercom.ownership.directory import RuntimeDirectory, describe_owner, open_directory, trusted_owners
from libintercom.ownership.locks import try_lock
from libintercom.paths import GATE_NAME
from libintercom.wire.record import Record, required
from libintercom.wire.values import STRING, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Callable

    from libintercom.paths import Places

    Launch = Callable[[Places, RuntimeDirectory, str, float], Report]

# Who may start a broker: this program, only the supervisor, or nobody at all (ownership.md section 4).
SPAWN = "spawn"
SUPERVISOR = "supervisor"
NEVER = "never"
POLICIES = (SPAWN, SUPERVISOR, NEVER)

# How long a starter waits in all; it never kills a candidate that takes longer.
START_DEADLINE_S = 5.0

# Between two looks at the endpoint: first about as long as a candidate takes, then longer, since a hundred starters
# may be looking at once.
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.2

# The two settings that clients read, and the variables that overrule the files.
_KEYS = {"startPolicy": "PI_INTERCOM_START_POLICY", "executable": "PI_INTERCOM_EXECUTABLE"}
# A settings file is a page of JSON; whatever is this large is something else.
_SETTINGS_LIMIT_BYTES = 1024 * 1024
_WORLD_WRITABLE = 0o002


class StartSettings(Record):
    """Who may start a broker, and which program it is (``""``: the ``intercomd`` beside the running interpreter)."""

    policy: str = required(one_of(*POLICIES))
    executable: str = required(STRING)


def ensure_broker(
    places: Places,
    policy: str = "",
    *,
    deadline_s: float = START_DEADLINE_S,
    launch: Launch = launch_candidate,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return once a broker of our own user takes connections at ``places.socket``; start one where nobody does.

    ``policy`` is ``spawn``, ``supervisor`` or ``never``; ``""`` means what the settings say.

    Raises:
        NotRunning: nobody listens, and the policy leaves starting to somebody else.
        UncertainOwner: a record says that another broker may be alive.
        NotStarted: no candidate brought up a broker within ``deadline_s`` seconds; the text says what they reported.
        NotPermitted, ForeignOwner, Unreachable: what stands at the path is not ours to use or to replace.
        UnsafeDirectory, InvalidConfiguration: the directory or the settings cannot be used.

    """
    end = clock() + deadline_s
    seen = _look(places)
    if _is_healthy(seen):
        return
    settings = _settings_for(places, policy, seen)
    pause_s, trouble = _FIRST_PAUSE_S, observed(SILENT, "another starter's candidate did not come up")
    while True:
        trouble = _more_telling(trouble, _launch_once(places, settings, end - clock(), launch))
        if _is_healthy(_look(places)):
            return
        if trouble.result in (UNCERTAIN, ERROR) or clock() >= end:
            raise _give_up(places, trouble, deadline_s)
        sleep(min(pause_s, max(0.0, end - clock())))
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def read_start_settings(places: Places, environ: Mapping[str, str] | None = None) -> StartSettings:
    """The two settings that clients read; a later file overrules an earlier one, the environment both.

    Raises:
        InvalidConfiguration: a file or value cannot be used; the message names file and key. Nothing is guessed.

    """
    given = os.environ if environ is None else environ
    found = {"startPolicy": SPAWN, "executable": ""}
    for path in places.settings_files:
        values = read_settings_file(path, places.uid)
        found.update({key: _checked(path, key, values[key]) for key in _KEYS if key in values})
    for key, variable in _KEYS.items():
        if variable in given:
            found[key] = _checked("the environment", key, given[variable], shown=variable)
    return StartSettings(policy=found["startPolicy"], executable=found["executable"])


def _settings_for(places: Places, policy: str, seen: Attempt) -> StartSettings:
    """The settings under which a broker may be started here, or ``NotRunning``."""
    if policy == NEVER:
        raise seen.error()
    settings = read_start_settings(places)
    chosen = policy or settings.policy
    if chosen == SUPERVISOR:
        remedy = "Only its supervisor may start it (startPolicy is supervisor): start it there"
        raise NotRunning(places.socket, seen.found, remedy)
    if chosen == NEVER:
        raise seen.error()
    return settings


def _is_healthy(seen: Attempt) -> bool:
    """Whether a listener of ours is there. A full backlog is one too; anything else but "nobody" is an error."""
    if seen.outcome in (CONNECTED, BUSY):
        return True
    if seen.outcome in (ABSENT, REFUSED):
        return False
    raise seen.error()


def _look(places: Places) -> Attempt:
    # Without waiting: a full backlog already says that somebody listens.
    found = attempt(places.socket, timeout_s=0.0, uid=places.uid)
    found.close()
    return found


def _launch_once(places: Places, settings: StartSettings, remaining_s: float, launch: Launch) -> Report | None:
    """Launch a candidate if no other starter is at it; ``None`` when one is, or when there is no time left."""
    # Opened each time anew: until a broker keeps it, a cleaner may take the directory away, and somebody make it again.
    with open_directory(places.runtime_dir, uid=places.uid) as directory:
        if remaining_s <= 0:
            return None
        try:
            return _launch_in(directory, places, settings, remaining_s, launch)
        except (UnsafeDirectory, NotStarted):
            if directory.is_current():
                raise
            return observed(CLAIMED, f"{places.runtime_dir} was removed or replaced during the start")


def _launch_in(
    directory: RuntimeDirectory, places: Places, settings: StartSettings, remaining_s: float, launch: Launch
) -> Report | None:
    try:
        gate = try_lock(directory, GATE_NAME)
    except OSError as error:
        raise NotStarted(places.socket, f"{places.gate} cannot be locked ({error.strerror})") from error
    if gate is None:
        return None
    with gate:
        # The one before us may have finished between our look and our turn.
        if _is_healthy(_look(places)):
            return None
        try:
            return launch(places, directory, settings.executable, remaining_s)
        except OSError as error:
            raise NotStarted(places.socket, f"a candidate cannot be launched ({error.strerror})") from error


def _more_telling(former: Report, latest: Report | None) -> Report:
    """What to tell at the end: the last candidate may only have had too little time left to say what is wrong."""
    if latest is None or (latest.result == SILENT and former.result != SILENT):
        return former
    return latest


def _give_up(places: Places, trouble: Report, deadline_s: float) -> NotStarted | UncertainOwner:
    if trouble.result == UNCERTAIN or trouble.is_doubtful:
        return UncertainOwner(places.socket, trouble.reason)
    if trouble.result == ERROR:
        return NotStarted(places.socket, trouble.reason)
    reason = trouble.reason or f"a candidate reported {trouble.result}, and then nobody listened"
    return NotStarted(places.socket, f"no broker came up within {deadline_s:g} s; {reason}")


def read_settings_file(path: str, uid: int) -> dict[str, Any]:
    """The JSON object in a settings file, empty when there is no such file.

    Raises:
        InvalidConfiguration: it cannot be read, is no JSON object, or is neither ours nor root's alone to write.

    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            _check_settings_owner(path, os.fstat(file.fileno()), uid)
            raw = file.read(_SETTINGS_LIMIT_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise InvalidConfiguration(path, "the file", f"it cannot be read ({error.strerror})") from error
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidConfiguration(path, "the file", f"it is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise InvalidConfiguration(path, "the file", "it is not a JSON object")
    return values


def _open_at_once(path: str, flags: int) -> int:
    # Opening a pipe that nobody writes to would wait, in a serving broker for ever.
    return os.open(path, flags | os.O_NONBLOCK)


def _check_settings_owner(path: str, seen: os.stat_result, uid: int) -> None:
    """A file that names the program to run must be ours or the system's."""
    if not stat.S_ISREG(seen.st_mode):
        raise InvalidConfiguration(path, "the file", "it is not an ordinary file")
    if seen.st_uid not in trusted_owners(uid):
        reason = f"it belongs to {describe_owner(seen.st_uid)}, neither to you nor to root"
        raise InvalidConfiguration(path, "the file", reason)
    if seen.st_mode & _WORLD_WRITABLE:
        raise InvalidConfiguration(path, "the file", "everybody may write to it", f"Run: chmod o-w {path}")


def _checked(source: str, key: str, value: object, shown: str = "") -> str:
    if key == "startPolicy":
        if value in POLICIES:
            return str(value)
        raise InvalidConfiguration(source, shown or key, f"{value!r} is not one of {', '.join(POLICIES)}")
    if isinstance(value, str) and value.startswith("/"):
        return value
    raise InvalidConfiguration(source, shown or key, f"{value!r} is not an absolute path")
