"""The one thread that writes a journal: what was appended meanwhile goes into one transaction.

Owns the order append -> insert -> commit (synchronised) -> tell, the bound of one transaction, and the work that can
wait until nobody waits: folding the index, copying the log, removing what retention no longer keeps. Does not own
what is in memory (``journal``).
"""

from __future__ import annotations

import sqlite3
import threading
import time

from libintercom.session.faults import reach
from libintercom.session.journal import collecting, store
from libintercom.session.journal.failures import JournalFailed, failure_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from libintercom.session.journal.pending import Pending
    from libintercom.session.journal.retention import Retention
    from libintercom.session.journal.store import EntryRow

# One transaction's rows: beyond it the synchronisation costs little beside the rows, and the first waits for the last.
BATCH_LIMIT = 512
# Entries that the index lags behind at most: as many are read when a journal is opened after a crash, 10 ms.
FOLD_LIMIT = 4_096
# Pages of the log after which it is copied (4 MiB, SQLite's own choice). It is copied in the writer's thread.
CHECKPOINT_PAGES = 1_000
# Copies of the log between two looks at the size; each is up to 4 MiB, a look is one PRAGMA.
_LOOK_EVERY = 4
_PAGE_BYTES = 4_096


class Job:
    """One append's rows and who waits for them."""

    __slots__ = ("pending", "rows")

    def __init__(self, rows: list[EntryRow], pending: Pending) -> None:
        self.rows, self.pending = rows, pending


class Writer:
    """Takes jobs in order until it is closed; ``stored(rows)`` is called before the waiting are told."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: str,
        limits: Retention,
        *,
        stored: Callable[[list[EntryRow]], None],
        folded: Callable[[int], None],
        copying: Callable[[], None],
        failed: Callable[[JournalFailed], None],
    ) -> None:
        self._connection, self._path, self._limits = connection, path, limits
        self._stored, self._folded, self._copying, self._failed = stored, folded, copying, failed
        self._jobs: list[Job] = []
        self._current: list[Job] = []
        self._lock = threading.Lock()
        # Released when there is work; who finds it released already need not do it again.
        self._wake = threading.Lock()
        self._wake.acquire()
        self._is_awake = self._is_closing = False
        self._unfolded = self._log_pages = self._copies = 0
        self.failure: JournalFailed | None = None
        # A daemon thread: a program that ends without closing must not hang; the journal is as after a crash.
        self.thread = threading.Thread(target=self._run, name="intercom-journal", daemon=True)

    def start(self, unfolded: int) -> None:
        self._unfolded = unfolded
        self.thread.start()

    def put(self, job: Job) -> None:
        """Queue a job; whoever calls keeps the order by its own lock. After a failure it is settled with it."""
        with self._lock:
            if self.failure is None and not self._is_closing:
                self._jobs.append(job)
                self._rouse()
                return
        job.pending.settle(self.failure or JournalFailed(self._path, "it was closed"))

    def close(self) -> None:
        """Store what is queued, then end the thread."""
        with self._lock:
            self._is_closing = True
            self._rouse()
        self.thread.join()

    def _rouse(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._wake.release()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except sqlite3.Error as error:
            self._fail(failure_of(self._path, error))
        except BaseException:
            # A bug: nobody may wait for a thread that is gone.
            self._fail(JournalFailed(self._path, "its writer ended by a bug"))
            raise

    def _turn(self) -> bool:
        self._current = self._take()
        if not self._current:
            return False
        self._write([row for job in self._current for row in job.rows])
        for job in self._current:
            job.pending.settle()
        reach("journal.settled")
        self._tidy()
        return True

    def _take(self) -> list[Job]:
        """The next jobs, up to the bound of a transaction; none when it is time to end."""
        while True:
            with self._lock:
                jobs, count = self._jobs, 0
                for taken, job in enumerate(jobs):
                    count += len(job.rows)
                    if count >= BATCH_LIMIT:
                        self._jobs = jobs[taken + 1 :]
                        return jobs[: taken + 1]
                self._jobs = []
                if jobs or self._is_closing:
                    return jobs
                self._is_awake = False
            self._wake.acquire()

    def _write(self, rows: list[EntryRow]) -> None:
        try:
            self._commit(rows)
        except sqlite3.Error as error:
            if "full" not in str(error):
                raise
            # The journal's own limit, perhaps: room can be made once. A full disk fails here again.
            self._roll_back()
            self.collect()
            self._commit(rows)
        reach("journal.committed")
        self._unfolded += len(rows)
        self._log_pages += len(rows) + sum(len(row[-1]) for row in rows) // _PAGE_BYTES
        self._stored(rows)

    def _commit(self, rows: list[EntryRow]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        reach("journal.begun")
        store.insert_entries(self._connection, rows)
        reach("journal.inserted")
        self._connection.execute("COMMIT")

    def _tidy(self) -> None:
        """What nobody waits for. A failure here ends the journal like one of a commit, and loses nothing."""
        if self._unfolded >= FOLD_LIMIT:
            self.fold()
        if self._log_pages >= CHECKPOINT_PAGES:
            self._log_pages = 0
            self._copying()
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            reach("journal.checkpointed")
            self._copies += 1
            if self._copies % _LOOK_EVERY == 0:
                self.collect()

    def fold(self) -> None:
        """Bring the index up to date: after the thread ended, or in it."""
        newest = store.newest_number(self._connection)
        store.fold_index(self._connection, newest)
        self._unfolded = 0
        self._folded(newest)

    def collect(self) -> None:
        """Fold, and remove what retention no longer keeps: after the thread ended, or in it."""
        self.fold()
        collecting.collect(self._connection, self._limits, time.time_ns() // 1_000_000)

    def _fail(self, failure: JournalFailed) -> None:
        self._roll_back()
        with self._lock:
            self.failure = failure
            jobs, self._jobs = self._current + self._jobs, []
        self._failed(failure)
        for job in jobs:
            if not job.pending.is_settled:
                job.pending.settle(failure)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                # It is rolled back when the connection closes, or by who opens the file next.
                pass
