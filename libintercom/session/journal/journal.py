"""A native session's journal: entries appended once and never changed, on disk before anybody is told.

Owns opening (lock, examination, setting a damaged file aside), the order of appends, and answering about messages as
if everything appended were stored. Does not own when what is appended (the inbox) nor what entries add up to
(``libintercom.session.entries``).

Two connections: the writer's, used by its thread alone once it runs, and the reader's (``view``), used under
``_lock``. The lock is held for one look-up at most, never while something is written.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref

from libintercom.session.entries import extend, fold
from libintercom.session.faults import reach
from libintercom.session.journal import folder as folders
from libintercom.session.journal import store
from libintercom.session.journal.failures import JournalFailed, JournalForked, failure_of
from libintercom.session.journal.memory import Known, Memory
from libintercom.session.journal.opening import open_database
from libintercom.session.journal.pending import Pending
from libintercom.session.journal.retention import DEFAULT_RETENTION
from libintercom.session.journal.view import View
from libintercom.session.journal.writer import Job, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Callable, Self, TypeVar

    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.locks import FileLock
    from libintercom.session.entries import Entry, Standing
    from libintercom.session.journal.retention import Retention
    from libintercom.session.journal.store import EntryRow

    T = TypeVar("T")


# Unfinished messages listed at a time, without their texts.
_PAGE = 256


class Journal:
    """The open journal of one native session. Close it, or use it in a ``with`` statement.

    ``set_aside``: where a damaged file went that was found at opening, else ``None``. ``path``: the database.
    """

    def __init__(
        self,
        opened: tuple[sqlite3.Connection, RuntimeDirectory, FileLock, str],
        limits: Retention,
        set_aside: str | None,
    ) -> None:
        connection, self._folder, self._held, self._stem = opened
        self.path = f"{self._folder.path}/{self._stem}{folders.SUFFIX}"
        self.set_aside = set_aside
        self._connection = connection
        self._view = View(self.path)
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._is_closed = False
        self._memory = Memory(store.newest_number(connection))
        self._memory.tail = {row[0]: row[1:] for row in store.read_tail(connection)}
        self._number = self._memory.stored
        # Guards the waiting of every append; never held while calling anybody.
        self._pending_lock = threading.Lock()
        self._writer = Writer(
            connection,
            self.path,
            limits,
            stored=self._note_stored,
            folded=self._note_folded,
            copying=self._let_go,
            failed=self._note_failure,
        )
        _open_journals.add(self)
        self._writer.start(unfolded=len(self._memory.tail))
        reach("journal.opened")

    @classmethod
    def open(cls, native_id: str, *, folder: str | None = None, limits: Retention = DEFAULT_RETENTION) -> Self:
        """Open or make the journal of ``native_id`` in ``folder`` (default: ``Places.journals``).

        A file that is damaged, or not the journal of this native id, is set aside; a fresh one is opened.

        Raises:
            JournalBusy: a live process has it.
            JournalUnavailable: there can be none here: the folder is not safe, not local, read-only or full; the file
                is not ours alone, or a newer program wrote it.

        """
        opened, aside = open_database(native_id, folder, limits)
        try:
            return cls(opened, limits, aside)
        except BaseException:
            opened[0].close()
            opened[2].release()
            opened[1].close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        self.close()

    @property
    def failure(self) -> JournalFailed | None:
        """Why nothing more can be appended, or ``None``."""
        return self._writer.failure

    @property
    def backlog(self) -> int:
        """Entries appended and not stored yet; whoever reads from the network stops reading when it grows."""
        return self._number - self._memory.stored

    def append(self, entries: Sequence[Entry]) -> Pending:
        """Store ``entries``, all or none, after everything appended before. Settled once they are synchronised to disk.

        A message's entries are visible to ``find`` at once. A failure settles this and every later append, and
        what was not stored is forgotten.

        Raises JournalForked in a forked child, JournalFailed after ``close`` or when the file cannot be read.
        """
        bodies = [store.encode_body(entry) for entry in entries]
        pending = Pending(self._pending_lock)
        with self._mine():
            failure = self._writer.failure
            if failure is not None or not bodies:
                pending.settle(failure)
                return pending
            # All look-ups first: one that fails must leave nothing behind.
            known = {entry.message_id: self._look_up(entry.message_id) for entry in entries}
            rows = [self._add(entry, known[entry.message_id], body) for entry, body in zip(entries, bodies)]
            self._writer.put(Job(rows, pending))
        return pending

    def find(self, message_id: str) -> Standing | None:
        """Where a message stands after everything appended so far; ``None`` when the journal does not know it."""
        with self._mine():
            return self._look_up(message_id).standing

    def unfinished(self) -> Iterator[Standing]:
        """What a new start takes up, in the order of admission; each read when it is its turn."""
        after = 0
        while True:
            page = self._next_unfinished(after)
            for place, message_id in page:
                standing = self.find(message_id)
                if standing is not None and standing.is_unfinished:
                    yield standing
                after = place
            if not page:
                return

    def receipt_rows(self, message_id: str) -> list[Entry]:
        """Every stored entry of one message, oldest first: nobody is told of what a crash may yet take back."""
        with self._mine():
            return [entry for _number, entry, _size in self._ask(self._view.chain, self._place(message_id)[1])]

    def close(self) -> None:
        """Store what was appended, apply the retention and give the journal up; harmless when repeated."""
        if self._is_closed or os.getpid() != self._pid:
            return
        with self._lock:
            self._is_closed = True
        self._writer.close()
        reach("journal.closing")
        _open_journals.discard(self)
        try:
            if self._writer.failure is None:
                self._writer.collect()
        except sqlite3.Error as error:
            self._note_failure(failure_of(self.path, error))
        with self._lock:
            self._view.close()
        self._connection.close()
        reach("journal.closed")
        self._held.release()
        self._folder.close()

    def abandon(self) -> None:
        """In a forked child: let go of the lock's descriptor, or it would outlive the parent. The rest stays as it is.

        SQLite forbids even closing a connection that a fork brought along.
        """
        self._held.release()
        self._folder.close()

    def _mine(self) -> threading.Lock:
        if os.getpid() != self._pid:
            raise JournalForked(self.path, self._pid)
        if self._is_closed:
            raise JournalFailed(self.path, "it was closed")
        return self._lock

    def _ask(self, question: Callable[..., T], *arguments: object) -> T:
        try:
            return question(*arguments)
        except sqlite3.Error as error:
            failure = failure_of(self.path, error)
            if failure.is_damaged:
                folders.mark_suspect(self._folder, self._stem)
            raise failure from error

    def _add(self, entry: Entry, known: Known, body: str) -> EntryRow:
        """Give an entry its number and its place in its message's chain; it counts from now on."""
        self._number = number = self._number + 1
        previous = known.last
        standing = known.standing = extend(known.standing, entry, order=number)
        known.last = number
        known.waiting.append((number, entry))
        self._memory.add(entry.message_id, known, len(body))
        return store.make_row(entry, number, previous, standing.order, is_unfinished=standing.is_unfinished, body=body)

    def _next_unfinished(self, after: int) -> list[tuple[int, str]]:
        """Candidates after a place in the order of admission: of the index and of memory, as far as both are known."""
        with self._mine():
            indexed = self._ask(self._view.unfinished, after, _PAGE)
            recent = self._memory.unfinished(after)
        end = indexed[-1][0] if len(indexed) == _PAGE else self._number
        return sorted({*indexed, *(one for one in recent if one[0] <= end)})

    def _look_up(self, message_id: str) -> Known:
        known = self._memory.recent.get(message_id)
        if known is None:
            known = self._read(message_id)
            self._memory.remember(message_id, known)
        return known

    def _read(self, message_id: str) -> Known:
        """From disk: what is not in memory is stored as a whole."""
        first, last = self._place(message_id)
        if not last:
            return Known(None, 0)
        chain = self._ask(self._view.chain, last)
        standing = fold((entry for _number, entry, _size in chain), order=first)
        return Known(standing, last, sum(size for _number, _entry, size in chain))

    def _place(self, message_id: str) -> tuple[int, int]:
        """First and last number of a message on disk; zeros when it is not there."""
        seen = self._memory.tail.get(message_id)
        return seen[:2] if seen else self._ask(self._view.place, message_id)

    def _note_stored(self, rows: list[EntryRow]) -> None:
        with self._lock:
            self._memory.settle(rows)
            self._view.may_stay = True

    def _note_folded(self, up_to: int) -> None:
        with self._lock:
            self._memory.folded(up_to)
            self._view.release()

    def _let_go(self) -> None:
        """The log is about to be copied; it starts anew only while nobody looks at an older state of it."""
        with self._lock:
            self._view.may_stay = False
            self._view.release()

    def _note_failure(self, failure: JournalFailed) -> None:
        with self._lock:
            self._memory.forget()
        if failure.is_damaged:
            folders.mark_suspect(self._folder, self._stem)


# What a forked child must let go of.
_open_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


def _abandon_all() -> None:
    for journal in list(_open_journals):
        journal.abandon()


os.register_at_fork(after_in_child=_abandon_all)
