"""A ledger whose appends wait for the test: each is stored, or fails, when it says so.

Owns no rule of a ledger: ``tests/unit/libintercom/session/test_ledgers.py`` holds it to the journal's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libintercom.errors import IntercomError
from libintercom.session.volatile import VolatileJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from libintercom.session.entries import Entry


class Full(IntercomError):
    """What a full disk says."""

    def __str__(self) -> str:
        return "the disk is full."


class Held:
    """One append."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self.tell: Callable[[Any], object] = lambda _failure: None
        self.end: list[Any] = []

    def add_done(self, callback: Callable[[Any], object]) -> None:
        self.tell = callback
        if self.end:
            callback(self.end[0])

    def settle(self, failure: Exception | None) -> None:
        self.end.append(failure)
        self.tell(failure)


class HeldLedger(VolatileJournal):
    """``is_holding`` false: appends are stored at once. ``failure``: what they end with."""

    def __init__(self, *, is_holding: bool = False) -> None:
        super().__init__()
        self.is_holding = is_holding
        self.failure: Exception | None = None
        self.held: list[Held] = []
        self.kinds: list[str] = []

    def append(self, entries: Sequence[Entry]) -> Any:
        held = Held(entries)
        if self.is_holding:
            self.held.append(held)
        else:
            self._end(held)
        return held

    def release(self) -> None:
        """End everything held, in order."""
        while self.held:
            self._end(self.held.pop(0))

    def _end(self, held: Held) -> None:
        if self.failure is None:
            super().append(held.entries)
            self.kinds += [entry.kind for entry in held.entries]
        held.settle(self.failure)
