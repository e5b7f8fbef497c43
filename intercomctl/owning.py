"""Which native session a one-shot command is about, and how it is reached: its journal, or the process that has it.

Owns finding the native ID of ``--as NAME`` and ``--session-id``, and asking a live session (sessions.md section 1).
Does not own the journal (``libintercom.session.journal``) nor what is asked (``libintercom.session.errands``).
"""

from __future__ import annotations

import os

from intercomctl import joining, output
from intercomctl.failures import InvalidUsage
from libintercom.errors import EXIT_UNREACHABLE, IntercomError
from libintercom.identity import NATIVE_ID_VARIABLE, find_native_id
from libintercom.paths import find_places
from libintercom.session.native import NativeClaim, claim_native_id, find_kept_id
from libintercom.wire.values import js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.session.journal import Journal, JournalBusy


class NoSuchSession(IntercomError):
    """No session of that name ever joined in this directory, so there is nothing of it to look at."""

    def __init__(self, name: str, cwd: str) -> None:
        super().__init__(name, cwd)
        self.name, self.cwd = name, cwd

    def __str__(self) -> str:
        return (
            f"no session {self.name!r} has joined in {self.cwd}: a name is kept for each directory. Go there, or give "
            "the native ID with --session-id."
        )


class JournalHeld(IntercomError):
    """A live process holds the journal and cannot be asked. ``holder_pid`` is 0 when it does not say who it is."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, holder_pid: int, reason: str) -> None:
        super().__init__(holder_pid, reason)
        self.holder_pid, self.reason = holder_pid, reason

    def __str__(self) -> str:
        holder = f"process {self.holder_pid}" if self.holder_pid else "another process"
        return f"{holder} holds the journal of this session and cannot be asked: {self.reason}. Ask there, or end it."


def claim_native(name: str, session_id: str | None) -> NativeClaim:
    """The native ID under which ``name`` joins: the given one, the environment's, else the one kept for the name here.

    While another live session has that one, it is a fresh one, and a note says so.

    Raises:
        InvalidUsage: the name is empty.
        NativeIdUnavailable: the IDs that are kept cannot be read or written.

    """
    if session_id is not None or NATIVE_ID_VARIABLE in os.environ:
        return NativeClaim(find_native_id(session_id))
    if not js_trim(name):
        raise InvalidUsage("the name is empty. Give one.")
    claim = claim_native_id(name, joining.working_directory())
    if not claim.is_kept:
        output.note(f"{name} has joined from this directory already; this session is another one, with its own ID.")
    return claim


def find_native(as_name: str | None, session_id: str | None) -> str:
    """The native ID that a command is about; ``""`` when nothing names one.

    Raises:
        NoSuchSession: the name has no session in this directory.
        InvalidConfiguration: an ID is given and cannot be one.

    """
    if session_id is not None or (as_name is None and NATIVE_ID_VARIABLE in os.environ):
        return find_native_id(session_id)
    if as_name is None:
        return ""
    cwd = joining.working_directory()
    native_id = find_kept_id(as_name, cwd)
    if not native_id:
        raise NoSuchSession(as_name, cwd)
    return native_id


def require_native(as_name: str | None, session_id: str | None) -> str:
    """The same, where a command can do nothing without one."""
    native_id = find_native(as_name, session_id)
    if not native_id:
        raise InvalidUsage("whose? Give --as NAME of a session that joined in this directory, or --session-id ID.")
    return native_id


def open_journal(native_id: str) -> Journal | JournalBusy:
    """The journal of a session that is not live, or who holds it."""
    # Imported here: a live session's journal is not touched, and most commands do without SQLite.
    from libintercom.session.journal import Journal, JournalBusy

    try:
        return Journal.open(native_id)
    except JournalBusy as busy:
        return busy


def ask_holder(busy: JournalBusy, native_id: str, as_name: str | None, action: str, **parts: str) -> dict[str, Any]:
    """Have the live session do ``action`` (``errands``); its answer's members.

    Raises:
        JournalHeld: it cannot be asked.
        NotRunning and the other errors of joining.

    """
    from libintercom.session.errands import ErrandFailed, read_badge, run_errand

    badge = read_badge(find_places().journals, native_id)
    if badge is None:
        raise JournalHeld(busy.holder_pid, "it says nowhere how; it may be of another version, or just joining")
    with joining.speak(as_name and f"{as_name}-command", None) as client:
        if not client.has_ext:
            raise JournalHeld(badge.pid, "the running broker is older than this request")
        try:
            return run_errand(client, badge, action, **parts)
        except ErrandFailed as failed:
            raise JournalHeld(failed.pid, failed.reason) from None
