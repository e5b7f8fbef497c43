"""An append that is on its way to the disk.

Owns telling whoever waits, once, that it is there or that it is not. Does not own writing (``writer``).
"""

from __future__ import annotations

import threading

from libintercom.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from libintercom.session.journal.failures import JournalFailed

    Told = Callable[["JournalFailed | None"], None]


class Pending:
    """One append. Settled when its entries are on disk (synchronised, not merely written), or failed."""

    __slots__ = ("_failure", "_is_settled", "_lock", "_told")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._told: list[Told] = []
        self._failure: JournalFailed | None = None
        self._is_settled = False

    @property
    def is_settled(self) -> bool:
        return self._is_settled

    @property
    def failure(self) -> JournalFailed | None:
        """Why it is not stored; ``None`` also while that is open."""
        return self._failure

    def add_done(self, told: Told) -> None:
        """Have ``told(None)`` or ``told(failure)`` called once, in the writer's thread; at once when it is settled.

        It must be short and must not raise: the next commit waits for it. It may append, but neither wait for the
        journal nor close it.
        """
        with self._lock:
            if not self._is_settled:
                self._told.append(told)
                return
        told(self._failure)

    def wait(self, timeout_s: float) -> None:
        """Block until it is settled. Raises its failure, or TimedOut: then it may still be stored."""
        done = threading.Event()
        self.add_done(lambda _failure: done.set())
        if not done.wait(timeout_s):
            raise TimedOut("storing entries in the journal", timeout_s)
        if self._failure is not None:
            raise self._failure

    def settle(self, failure: JournalFailed | None = None) -> None:
        """Tell everybody; for the writer alone."""
        with self._lock:
            self._failure, self._is_settled = failure, True
            told, self._told = self._told, []
        for one in told:
            one(failure)
