"""The server's life: a session, its shelf of messages, the tool in front of both, until the input ends.

Owns joining, leaving and what ends the program. Does not own the command line (``program``).
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from intercom_adapters.mcp.actions import Actions
from intercom_adapters.mcp.server import ToolServer
from intercom_adapters.mcp.shelf import Shelf
from intercom_adapters.mcp.stdout import Stdout
from libintercom.errors import EXIT_DONE
from libintercom.paths import find_places
from libintercom.printable import make_line
from libintercom.session.aio import AsyncSession
from libintercom.session.background import log_failure

if TYPE_CHECKING:
    from libintercom.profile import Profile
    from libintercom.session.background import BackgroundError


async def run(profile: Profile, native_id: str, ask_timeout_s: float) -> int:
    """Join, serve and leave; the exit status.

    Raises:
        IntercomError: the session could not join.

    """
    ended = _await_signals()
    shelf = Shelf()
    session = await AsyncSession.join(profile, native_id=native_id, host=shelf, on_background_error=_tell_failure)
    try:
        _tell_start(session)
        await _serve(session, shelf, ask_timeout_s, ended)
    finally:
        await session.leave()
    return EXIT_DONE


async def _serve(session: AsyncSession, shelf: Shelf, ask_timeout_s: float, ended: asyncio.Event) -> None:
    server = ToolServer(Actions(session, shelf, ask_timeout_s), Stdout())
    serving = asyncio.ensure_future(server.serve())
    stopping = asyncio.ensure_future(ended.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    # Told to end, it leaves the read of standard input that nothing can interrupt to the end of the program.
    if serving.done():
        stopping.cancel()
        serving.result()


def _await_signals() -> asyncio.Event:
    """Set when this program is told to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    return ended


def _tell_failure(error: BackgroundError) -> None:
    """To what MCP clients keep of a server's stderr, and to the log of all sessions: few people see the first."""
    log_failure(error, find_places().agent_dir)
    _say(f"{error.operation}: {error.reason}")


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"intercom-mcp: {make_line(text)}\n")
        sys.stderr.flush()
    except OSError:
        # Its client has gone; the end of the input follows.
        return


def _tell_start(session: AsyncSession) -> None:
    """What a person finds in the log that MCP clients keep of a server's stderr."""
    note = f"; no journal: {session.journal_note}" if session.journal_note else ""
    _say(f"joined as {session.profile.name} ({session.session_id}){note}")
