"""The places in a session's end where a crash can fall between two effects, by name.

Owns the names and the one call that stands at such a place. Does not own what happens there: nothing does, unless a
test has set a hook, which then ends the program, fails, or counts. A place that is not listed here does not exist.
"""

from __future__ import annotations

from libintercom.errors import IntercomError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

# In the order of a journal's life; a test reaches each.
POINTS = (
    "journal.locked",  # this process owns the journal; nothing of it was read
    "journal.aside_log",  # the log of a damaged file has its new name, the file itself does not
    "journal.aside",  # the damaged file has its new name; there is no journal
    "journal.created",  # an empty file of mode 0600
    "journal.migrated",  # the schema stands
    "journal.opened",  # the writer runs
    "journal.begun",  # a transaction is open, nothing is in it
    "journal.inserted",  # the entries are in the open transaction
    "journal.committed",  # they are on disk; nobody was told
    "journal.settled",  # everybody who waited was told
    "journal.folding",  # the index is brought up to date in an open transaction
    "journal.folded",  # and committed
    "journal.checkpointed",  # the log was copied into the database
    "journal.collecting",  # old messages are removed in an open transaction
    "journal.collected",  # and committed
    "journal.closing",  # the writer has ended
    "journal.closed",  # the database is closed; the lock is still held
    "start.taken_up",  # the inbox has what an earlier run left; nobody is connected yet
    "start.asking",  # the host is about to be asked for what was handed to it and never heard of
    "start.told",  # it answered; the inbox does not know
    "start.joined",  # the broker knows this run
    "session.arrived",  # a message was read and may be admitted; nothing of it is on record
    "session.stored",  # a checkpoint is on disk; the inbox does not know
    "session.placing",  # that a batch goes to the host is on record; the host was not called
    "session.answered",  # the host said what became of it; nothing of that is on record
    "session.given",  # that the program has a message is on record; it does not have it
    "session.consumed",  # the program asked for the next message; nothing of that is on record
    "session.reply_leaving",  # that a reply leaves is on record; it did not
    "session.reply_sent",  # what became of the reply is known; it is not on record
    "session.reply_received",  # an ask of ours has its reply; it is not on record
    "session.leaving",  # the broker was left; what was admitted is not finished
    "session.detached",  # everything is on record; the journal is still open
)

_hook: Callable[[str], None] | None = None


class UnknownPoint(IntercomError):
    """Code reached a fault point that ``POINTS`` does not list; a crash test would never try it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"fault point {self.name} is not listed in libintercom.session.faults; add it to POINTS."


def reach(name: str) -> None:
    """Stand at the point ``name``: nothing, or the hook of a test."""
    if _hook is not None:
        if name not in POINTS:
            raise UnknownPoint(name)
        _hook(name)


def set_hook(hook: Callable[[str], None] | None) -> None:
    """Have ``hook(name)`` called at every point, by whichever thread gets there; ``None`` ends it. For tests."""
    global _hook  # noqa: PLW0603 - one constant-time test of a global is what normal use pays
    _hook = hook
