"""Items kept in this process: the spool that cannot fail and that no restart survives.

Owns agreeing at once. The core holds what it stores itself, so nothing more has to be kept here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.effects import Store
from intercomd.core.events import Forgotten, Recovered, Stored

if TYPE_CHECKING:
    from intercomd.core.effects import Forget
    from intercomd.core.items import Item
    from intercomd.ports import Report


class MemorySpool:
    """A spool behind ``intercomd.ports.Spool``. Started again, it still has its items: they live as long as it does."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._report: Report | None = None

    def start(self, report: Report) -> None:
        """Begin; what an earlier start left is reported."""
        self._report = report
        if self._items:
            report([Recovered(tuple(self._items.values()))])

    def apply(self, effect: Store | Forget) -> None:
        """Keep or forget an item."""
        if not isinstance(effect, Store):
            self._items.pop(effect.key, None)
            if effect.is_answered and self._report is not None:
                self._report([Forgotten(effect.key)])
            return
        self._items[effect.item.key] = effect.item
        if self._report is not None:
            self._report([Stored(effect.item.key)])

    def close(self) -> None:
        """Nothing is reported any more."""
        self._report = None
