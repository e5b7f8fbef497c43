"""Where socket, state and configuration are, on each platform: the only place that knows (ownership.md section 1).

Owns every path of ours, the rule of ``PI_INTERCOM_RUNTIME_DIR`` and the length limit of the socket path. Touches no
file: opening and judging the directory is ``libintercom.ownership.directory``.

What every session of one user must agree on (endpoint, spool, start policy) depends on the user id and the password
database alone, never on HOME, TMPDIR, XDG or the agent directory; Android without PREFIX is the one exception.
"""

from __future__ import annotations

import os

from libintercom.errors import InvalidConfiguration
from libintercom.platforms import ANDROID, current_platform
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import BOOL, COUNT, STRING, js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

RUNTIME_DIR_VARIABLE = "PI_INTERCOM_RUNTIME_DIR"

# sockaddr_un holds 104 bytes on macOS and 108 on Linux; the lineage agreed on 100 for all (bytes, not characters).
SOCKET_PATH_LIMIT_BYTES = 100

# File names in the runtime directory. Other programs of the lineage read the first three.
SOCKET_NAME = "broker.sock"
RECORD_NAME = "broker.pid"
CLAIM_NAME = "broker.spawn.lock"
GUARD_NAME = ".guard"
GATE_NAME = ".gate"
LOG_NAME = "broker.log"

# Enough of the digest that two runtime directories of one user never share a spool.
_SPOOL_DIGEST_CHARS = 16


class Places(Record):
    """Every path of one namespace. ``runtime_dir`` is absolute and has no trailing slash.

    ``prefix`` is Termux's ``$PREFIX`` or absent; ``is_override`` says that ``PI_INTERCOM_RUNTIME_DIR`` chose.
    """

    runtime_dir: str = required(STRING)
    uid: int = required(COUNT)
    is_override: bool = required(BOOL)
    agent_dir: str = required(STRING)
    state_home: str = required(STRING)
    prefix: str | None = optional(STRING, default=None)

    @property
    def socket(self) -> str:
        return _join(self.runtime_dir, SOCKET_NAME)

    @property
    def record(self) -> str:
        return _join(self.runtime_dir, RECORD_NAME)

    @property
    def claim(self) -> str:
        return _join(self.runtime_dir, CLAIM_NAME)

    @property
    def guard(self) -> str:
        return _join(self.runtime_dir, GUARD_NAME)

    @property
    def gate(self) -> str:
        return _join(self.runtime_dir, GATE_NAME)

    @property
    def log(self) -> str:
        return _join(self.runtime_dir, LOG_NAME)

    @property
    def spool(self) -> str:
        """The broker's database of what must survive a restart; one for each real runtime directory.

        Raises:
            InvalidConfiguration: the user has no entry in the password database, so no home to keep it in.

        """
        name = f"{self._digest()}.sqlite"
        if self.prefix:
            return f"{self.prefix}/var/lib/intercom/spool/{name}"
        home = passwd_home(self.uid)
        if not home:
            raise InvalidConfiguration(
                "the password database",
                f"uid {self.uid}",
                "there is no entry, so there is no home for the broker's spool",
                "Add an entry with a home directory for this user.",
            )
        return f"{home}/.local/state/intercom/spool/{name}"

    @property
    def settings_files(self) -> tuple[str, ...]:
        """The broker's settings and the start policy; a later file wins over an earlier one."""
        if self.prefix:
            return (f"{self.prefix}/etc/intercom/config.json",)
        home = passwd_home(self.uid)
        return ("/etc/intercom/config.json", *((f"{home}/.config/intercom/config.json",) if home else ()))

    @property
    def session_settings(self) -> str:
        """Settings of sessions, shared with existing clients: read, written only by an explicit ``config set``."""
        return f"{self.agent_dir}/intercom/config.json"

    @property
    def state_dir(self) -> str:
        """Session journals and reports."""
        return f"{self.state_home}/intercom"

    @property
    def journals(self) -> str:
        """The folder of session journals: one file for each native session of this user, whatever its broker."""
        return f"{self.state_dir}/journals"

    def _digest(self) -> str:
        # Imported here: only the broker and the operator's reports need the spool, every client imports this module.
        from hashlib import sha256

        return sha256(os.fsencode(os.path.realpath(self.runtime_dir))).hexdigest()[:_SPOOL_DIGEST_CHARS]


def find_places(environ: Mapping[str, str] | None = None, *, platform: str = "", uid: int | None = None) -> Places:
    """The places of this user's namespace, or of the one that ``PI_INTERCOM_RUNTIME_DIR`` selects.

    ``environ``, ``platform`` and ``uid`` default to this program's own.

    Raises:
        InvalidConfiguration: a variable is not usable; the message names it, and bytes and limit where a socket path
            is too long. There is no fallback to another namespace.

    """
    given = os.environ if environ is None else environ
    name = platform or current_platform()
    user = os.getuid() if uid is None else uid
    prefix = _prefix(given) if name == ANDROID else None
    runtime_dir = _runtime_dir(given, name, user, prefix)
    _require_short(runtime_dir, given)
    return Places(
        runtime_dir=runtime_dir,
        uid=user,
        is_override=RUNTIME_DIR_VARIABLE in given,
        agent_dir=_agent_dir(given),
        state_home=_state_home(given),
        prefix=prefix,
    )


def passwd_home(uid: int) -> str:
    """The home directory that the password database gives ``uid``; empty when it has no entry."""
    # Imported here: the lookup may ask a directory server, and a client that finds its broker running needs no home.
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir.rstrip("/")
    except KeyError:
        return ""


def _join(directory: str, name: str) -> str:
    return f"{directory}{name}" if directory == "/" else f"{directory}/{name}"


def _runtime_dir(environ: Mapping[str, str], platform: str, uid: int, prefix: str | None) -> str:
    chosen = environ.get(RUNTIME_DIR_VARIABLE)
    if chosen is not None:
        return _checked_override(chosen)
    if platform != ANDROID:
        return f"/tmp/pi-intercom-{uid}"  # noqa: S108 - the lineage's shared name; the directory itself is checked
    parent = f"{prefix}/tmp" if prefix else _node_temporary_dir(environ)  # noqa: S108 - the same, in Termux
    return _join(parent, f"pi-intercom-{uid}")


def _checked_override(chosen: str) -> str:
    if not chosen.startswith("/"):
        raise _invalid(RUNTIME_DIR_VARIABLE, f"{chosen!r} is not an absolute path")
    if any(ord(char) < ord(" ") or char == "\x7f" for char in chosen):
        raise _invalid(RUNTIME_DIR_VARIABLE, f"{chosen!r} contains control characters")
    return chosen.rstrip("/") or "/"


def _require_short(runtime_dir: str, environ: Mapping[str, str]) -> None:
    path = _join(runtime_dir, SOCKET_NAME)
    size_bytes = len(os.fsencode(path))
    if size_bytes > SOCKET_PATH_LIMIT_BYTES:
        key = RUNTIME_DIR_VARIABLE if RUNTIME_DIR_VARIABLE in environ else "PREFIX"
        raise _invalid(key, f"the socket path {path} takes {size_bytes} bytes; the limit is {SOCKET_PATH_LIMIT_BYTES}")


def _invalid(key: str, reason: str) -> InvalidConfiguration:
    remedy = (
        f"Set {RUNTIME_DIR_VARIABLE} to a short absolute path of a private directory, for every process that shares "
        "this broker, or unset it to use the shared one."
    )
    return InvalidConfiguration("the environment", key, reason, remedy)


def _prefix(environ: Mapping[str, str]) -> str | None:
    prefix = environ.get("PREFIX") or None
    if prefix is not None and not prefix.startswith("/"):
        raise _invalid("PREFIX", f"{prefix!r} is not an absolute path")
    return prefix.rstrip("/") if prefix else None


def _node_temporary_dir(environ: Mapping[str, str]) -> str:
    """What Node's ``os.tmpdir()`` answers, since existing clients on Android use it: first set name, no end slash."""
    chosen = environ.get("TMPDIR") or environ.get("TMP") or environ.get("TEMP") or "/tmp"  # noqa: S108 - Node's rule
    if not chosen.startswith("/"):
        raise _invalid("TMPDIR", f"{chosen!r} is not an absolute path")
    return chosen[:-1] if len(chosen) > 1 and chosen.endswith("/") else chosen


def _agent_dir(environ: Mapping[str, str]) -> str:
    """``PI_CODING_AGENT_DIR``, trimmed, ``~`` expanded; existing clients read the same file."""
    chosen = js_trim(environ.get("PI_CODING_AGENT_DIR", "")) or "~/.pi/agent"
    if chosen == "~" or chosen.startswith("~/"):
        chosen = _home(environ) + chosen[1:]
    return os.path.abspath(chosen)


def _state_home(environ: Mapping[str, str]) -> str:
    """``XDG_STATE_HOME`` when absolute, as its specification demands, else ``~/.local/state``."""
    chosen = environ.get("XDG_STATE_HOME", "")
    return chosen.rstrip("/") if chosen.startswith("/") else f"{_home(environ)}/.local/state"


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME", "").rstrip("/") or os.path.expanduser("~").rstrip("/")
