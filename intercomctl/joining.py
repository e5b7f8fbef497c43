"""How a command joins the broker: as whom, and what happens when none runs.

Owns the profiles of one-shot commands (wire.md 9.2 and 9.9), starting a broker with a word about it, and saying what
an old broker cannot do. Does not own the start itself (``libintercom.starting``) nor the identity rules
(``libintercom.identity``).
"""

from __future__ import annotations

import os

from intercomctl import output
from intercomctl.failures import InvalidUsage
from libintercom.client import Client
from libintercom.errors import NotRunning
from libintercom.identity import find_name, peer_id
from libintercom.profile import Profile, profile_from_environment
from libintercom.wire.values import MAX_LABEL_BYTES, is_label, js_trim, scrub_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.aio import AsyncClient
    from libintercom.member import Member
    from libintercom.roster import Filters, Roster
    from libintercom.session.aio import AsyncSession

# What others read as the model of a session that has none.
MODEL = output.PROGRAM


def observe(session_id: str | None = None, *, may_start: bool = True) -> Client:
    """A connected client that only looks: no row, no target, the view of the lineage that the environment gives.

    ``session_id`` is the native ID of the session it looks for. With ``may_start`` a broker is started where none
    runs and the start policy allows it.

    Raises:
        InvalidLineage, InvalidConfiguration: the environment gives no identity.
        NotRunning and the other errors of ``Client.connect`` and ``ensure_broker``.

    """
    client = _join(_profile(None, session_id, observer=True), may_start=may_start)
    if not client.is_observer:
        output.note("the running broker is older than this program: it lists this command as an ordinary main.")
    return client


def speak(as_name: str | None, session_id: str | None, *, may_start: bool = True, **parts: Any) -> Client:
    """A connected client under a name of its own, for sending; ``parts`` of its profile. Raises as ``observe``."""
    client = _join(speaking_profile(as_name, session_id, **parts), may_start=may_start)
    _tell_other_identity(client, session_id)
    return client


async def speak_async(profile: Profile, session_id: str | None) -> AsyncClient:
    """The same on a running event loop, with a profile from ``speaking_profile``."""
    # Imported here: the hot commands do without an event loop.
    from libintercom.aio import AsyncClient

    try:
        client = await AsyncClient.join(profile, spawn=False)
    except NotRunning:
        client = await AsyncClient.join(profile, spawn=True)
        _tell_start(client)
    _tell_other_identity(client, session_id)
    return client


async def join_session(profile: Profile, native_id: str, **options: Any) -> AsyncSession:
    """The same as a session with its journal, which joins again by itself; ``options`` as of ``AsyncSession.join``."""
    # Imported here: hardly any command stays.
    from libintercom.session.aio import AsyncSession

    try:
        session = await AsyncSession.join(profile, native_id=native_id, spawn=False, **options)
    except NotRunning:
        session = await AsyncSession.join(profile, native_id=native_id, **options)
        _tell_start(session)
    _tell_other_identity(session, native_id)
    return session


def speaking_profile(as_name: str | None, session_id: str | None, **parts: Any) -> Profile:
    """The profile of a command that others can see: named by ``--as``, the environment, or the user.

    Raises:
        InvalidUsage: the name is given and empty.
        InvalidLineage, InvalidConfiguration: the environment gives no identity.

    """
    if as_name is not None and not js_trim(as_name):
        raise InvalidUsage("the name is empty. Give one, or none at all.")
    return _profile(as_name or find_name() or f"{output.PROGRAM}-{_user()}", session_id, **parts)


def _profile(name: str | None, session_id: str | None, **parts: Any) -> Profile:
    return profile_from_environment(name=name, model=MODEL, cwd=working_directory(), native_id=session_id, **parts)


def working_directory() -> str:
    """Where this program was started, as a label: what cannot be shown to others is replaced."""
    try:
        path = os.getcwd()
    except FileNotFoundError:
        # It was deleted under this program; the shell still knows its name.
        path = os.environ.get("PWD") or "/"
    if is_label(path) and path.isprintable():
        return path
    # Four bytes are the most that one character takes.
    return scrub_label(os.fsencode(path).decode("utf-8", "replace"))[: MAX_LABEL_BYTES // 4]


def _user() -> str:
    return scrub_label(os.environ.get("USER") or str(os.getuid()))


def _join(profile: Profile, *, may_start: bool) -> Client:
    try:
        return Client.join(profile, spawn=False)
    except NotRunning:
        if not may_start:
            raise
    client = Client.join(profile, spawn=True)
    _tell_start(client)
    return client


def _tell_start(client: Member | AsyncSession) -> None:
    hello = client.broker
    who = "a broker" if hello is None else f"{hello.program} {hello.version} (pid {hello.pid})"
    output.note(f"no broker was running; started {who}.")


def _tell_other_identity(client: Member | AsyncSession, session_id: str | None) -> None:
    if session_id is not None and client.session_id != peer_id(session_id):
        output.note(f"session {session_id} is connected already; this command speaks as {client.session_id}.")


def read_roster(client: Client, filters: Filters | None = None) -> Roster:
    """Who the observed session sees. It is the roster's own one when it is connected; the command never is."""
    # Imported here: sending does without it.
    from libintercom.roster import build_roster

    listing = client.list_sessions()
    # An old broker lists the observer itself.
    others = listing.replace(rows=tuple(row for row in listing.rows if row.id != client.session_id))
    return build_roster(others, client.profile, client.profile.requested_id or "", filters)
