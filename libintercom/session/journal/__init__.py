"""The journal of a native session: one SQLite file that loses nothing it said it has.

Owns the names below. Import from here; the modules beside it are its parts.
"""

from __future__ import annotations

from libintercom.session.journal.failures import JournalBusy, JournalFailed, JournalForked, JournalUnavailable
from libintercom.session.journal.journal import Journal
from libintercom.session.journal.offline import (
    Collected,
    Listed,
    collect_garbage,
    export,
    find_entries,
    list_journals,
)
from libintercom.session.journal.pending import Pending
from libintercom.session.journal.retention import DEFAULT_RETENTION, Retention

__all__ = [
    "DEFAULT_RETENTION",
    "Collected",
    "Journal",
    "JournalBusy",
    "JournalFailed",
    "JournalForked",
    "JournalUnavailable",
    "Listed",
    "Pending",
    "Retention",
    "collect_garbage",
    "export",
    "find_entries",
    "list_journals",
]
