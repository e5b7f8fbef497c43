"""Opening what a session remembers in: its journal, or memory with a word about why.

Owns that choice and its sentences. Does not own the journal (``journal``).
"""

from __future__ import annotations

import asyncio
import os

from libintercom.session.errors import Forked
from libintercom.session.volatile import VolatileJournal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    from libintercom.session.journal import Journal

    Ledger = Union[Journal, VolatileJournal]

NOT_WANTED = "no journal was asked for; what this session was sent is lost when it ends"
_LOST_WITH_IT = "what this session was sent is lost when it ends"


class Opened:
    """``note``: why there is no journal, or that a damaged one was set aside; ``""`` when all is well.

    ``folder``: where the journal is; ``""`` when there is none. ``is_own``: it was opened here.
    """

    __slots__ = ("folder", "is_own", "ledger", "note")

    def __init__(self, ledger: Ledger, note: str, folder: str = "", *, is_own: bool = False) -> None:
        self.ledger, self.note, self.folder, self.is_own = ledger, note, folder, is_own


async def open_ledger(native_id: str, wanted: Journal | bool, folder: str | None) -> Opened:
    """The journal of a native session; memory when another process has it, there can be none, or none is wanted.

    A ``Journal`` that the caller opened is taken as it is.
    """
    if wanted is False:
        return Opened(VolatileJournal(), NOT_WANTED)
    if wanted is not True:
        return Opened(wanted, _word(wanted), os.path.dirname(wanted.path))
    # Imported here: a session that wants none does without SQLite.
    from libintercom.session.journal import Journal, JournalBusy, JournalUnavailable

    def open_it() -> Journal:
        return Journal.open(native_id, folder=folder)

    try:
        # It reads and checks files.
        journal = await asyncio.get_running_loop().run_in_executor(None, open_it)
    except (JournalBusy, JournalUnavailable) as error:
        return Opened(VolatileJournal(), f"{error} This session runs without a journal: {_LOST_WITH_IT}.")
    return Opened(journal, _word(journal), os.path.dirname(journal.path), is_own=True)


async def reopen_ledger(opened: Opened, native_id: str) -> Opened | None:
    """A journal that stopped, closed and opened again; None when it still cannot be had.

    One that the caller opened is the caller's to mend.
    """
    if not opened.is_own:
        return None
    from libintercom.session.journal import Journal, JournalBusy, JournalUnavailable

    def open_again() -> Journal:
        opened.ledger.close()
        return Journal.open(native_id, folder=opened.folder)

    try:
        journal = await asyncio.get_running_loop().run_in_executor(None, open_again)
    except (JournalBusy, JournalUnavailable):
        # What it said when it stopped is still so.
        return None
    return Opened(journal, opened.note or _word(journal), opened.folder, is_own=True)


async def close_ledger(ledger: Ledger, owner_pid: int) -> None:
    """Wait for its writer and close it. A forked program leaves it to its parent."""
    if os.getpid() != owner_pid:
        raise Forked(owner_pid)
    try:
        closing = asyncio.get_running_loop().run_in_executor(None, ledger.close)
    except RuntimeError:
        # The interpreter ends: it starts no more work elsewhere, and nothing else waits for this loop.
        ledger.close()
    else:
        await closing


def _word(journal: Journal) -> str:
    aside = journal.set_aside
    return f"the journal was damaged and set aside as {aside}; this session begins with a fresh one" if aside else ""
