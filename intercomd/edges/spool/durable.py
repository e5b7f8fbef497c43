"""Items kept in a file: the spool that survives a restart, a SIGKILL and a power cut.

Owns the one thread that writes, and the order of what is asked for and reported. Does not own the file (``database``).

Everything that waits when the writer comes round goes into one transaction, so a burst costs one sync; what one turn
of the core asks for is never divided between two, so no kill leaves half of a decision. An item is
reported as stored only when its transaction is on the disk. Where that is not possible it is reported as failed, and
nothing is lost in silence. A file that is not there is made when something is to be kept.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from intercomd.core.effects import Store
from intercomd.core.events import Forgotten, Recovered, Stored, StoreFailed
from intercomd.edges.spool.faults import reach

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from intercomd.core.effects import Forget
    from intercomd.core.events import Event
    from intercomd.edges.spool.database import Database
    from intercomd.ports import Log, Report

# How long leaving waits for the disk; the broker has stopped serving by then.
_CLOSE_TIMEOUT_S = 10.0


class DurableSpool:
    """A spool behind ``intercomd.ports.Spool``. ``path`` is absolute; only the owner of the namespace may have it open.

    ``call_soon`` runs something on the thread that ``start`` and ``apply`` are called from (``call_soon_threadsafe``).
    With a ``refusal`` nothing can be kept, for that reason.
    """

    def __init__(
        self, path: str, log: Log, call_soon: Callable[[Callable[[], None]], object], refusal: str = ""
    ) -> None:
        self._path, self._log, self._call_soon = path, log, call_soon
        # Why nothing can be kept as long as this broker lives, "" when something can.
        self._refusal = refusal
        self._report: Report | None = None
        self._database: Database | None = None
        # Of the turn that is being applied; the writer gets it as a whole.
        self._turning: list[Store | Forget] = []
        self._waiting: list[Store | Forget] = []
        # What is to be forgotten although a transaction failed: otherwise it would be there again after a restart.
        self._owed: list[Store | Forget] = []
        self._last_failure = ""
        self._turn = threading.Condition()
        self._is_closing = False
        self._writer: threading.Thread | None = None

    def start(self, report: Report) -> None:
        """Report what is in the file, if there is one. A file that cannot be read now is not written to either."""
        self._report = report
        if self._refusal or not os.path.lexists(self._path):
            return
        try:
            self._database = self._open()
            items = self._database.load()
        except self._failures() as error:
            self._refusal = _explain(error)
            self._log.write("error", "spool not opened", {"path": self._path, "reason": self._refusal})
            return
        if items:
            self._log.write("info", "spool recovered", {"items": len(items)})
            report([Recovered(items)])

    def apply(self, effect: Store | Forget) -> None:
        """Hand an effect to the writer, together with the others of this turn."""
        self._turning.append(effect)
        if len(self._turning) == 1:
            self._call_soon(self._hand_over)

    def _hand_over(self) -> None:
        if not self._turning:
            return
        with self._turn:
            self._waiting += self._turning
            self._turning = []
            self._turn.notify()
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_on, name="spool", daemon=True)
            self._writer.start()

    def close(self) -> None:
        """Let the writer finish, within a bound."""
        self._report = None
        self._hand_over()
        with self._turn:
            self._is_closing = True
            self._turn.notify()
        if self._writer is not None:
            self._writer.join(_CLOSE_TIMEOUT_S)
            if self._writer.is_alive():
                self._log.write("error", "spool not closed in time", {"path": self._path})
        elif self._database is not None:
            self._database.close()

    # -- on the writer's thread ----------------------------------------------------------------------

    def _write_on(self) -> None:
        """Write what waits, whenever something does, until the broker leaves."""
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._waiting or self._is_closing)
                batch, self._waiting = self._waiting, []
            if not batch:
                break
            reach("batch taken")
            answers = self._write(batch)
            reach("before report")
            self._call_soon(lambda answers=answers: self._tell(answers))  # type: ignore[misc]
            reach("reported")
        if self._database is not None:
            self._database.close()

    def _write(self, batch: Sequence[Store | Forget]) -> list[Event]:
        failure = self._refusal or self._try_to_write(batch)
        if failure:
            self._tell_failure(failure)
        else:
            self._last_failure = ""
        return [_answer(effect, failure) for effect in batch if isinstance(effect, Store) or effect.is_answered]

    def _try_to_write(self, batch: Sequence[Store | Forget]) -> str:
        """Why nothing of a batch could be kept, ``""`` when all of it was."""
        try:
            if self._database is None:
                self._database = self._open()
            self._database.write([*self._owed, *batch])
        except self._failures() as error:
            self._owed += [effect for effect in batch if not isinstance(effect, Store)]
            return _explain(error)
        self._owed = []
        reach("committed")
        return ""

    def _open(self) -> Database:
        from intercomd.edges.spool.database import Database  # imported here: see that module's docstring

        return Database.open(self._path, self._tell_damage)

    @staticmethod
    def _failures() -> tuple[type[BaseException], ...]:
        from sqlite3 import Error  # imported here, for the same reason

        from intercomd.edges.spool.database import Damaged, SpoolUnavailable

        return (Error, OSError, Damaged, SpoolUnavailable)

    def _tell_damage(self, kept: str, reason: str) -> None:
        self._log_later("error", "spool damaged, set aside", {"path": self._path, "kept": kept, "reason": reason})

    def _tell_failure(self, failure: str) -> None:
        """Once, until it changes: a full disk may stay full for days."""
        if failure != self._last_failure:
            self._last_failure = failure
            self._log_later("error", "not stored", {"path": self._path, "reason": failure})

    def _log_later(self, level: str, what: str, parts: dict[str, Any]) -> None:
        self._call_soon(lambda: self._log.write(level, what, parts))

    # -- on the caller's thread ----------------------------------------------------------------------

    def _tell(self, answers: list[Event]) -> None:
        if self._report is not None:
            self._report(answers)


def _answer(effect: Store | Forget, failure: str) -> Event:
    if not isinstance(effect, Store):
        return Forgotten(effect.key, failure)
    return StoreFailed(effect.item.key, failure) if failure else Stored(effect.item.key)


def _explain(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        return reason
    return getattr(error, "strerror", None) or str(error)
