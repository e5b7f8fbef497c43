"""The spool's answers, and what an earlier broker left in it, to the parts of the core that they are for.

Owns the order in which recovered items are taken over. Does not own what any of them means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.events import Forgotten, Stored, StoreFailed
from intercomd.core.items import ASK, CHILD, INPUT, LETTER, REPLY

if TYPE_CHECKING:
    from intercomd.core.events import Recovered
    from intercomd.core.kept import Kept
    from intercomd.core.parking import Parking
    from intercomd.core.state import State


class Spooled:
    """Hands answers on."""

    def __init__(self, state: State, parking: Parking, kept: Kept) -> None:
        self._state, self._parking, self._kept = state, parking, kept

    def hear(self, event: Stored | StoreFailed | Forgotten) -> None:
        """An item is kept, could not be kept, or is kept no longer."""
        if isinstance(event, Forgotten):
            self._parking.farewells.forgotten(event.key, event.failure)
        elif isinstance(event, Stored):
            self._stored(event)
        else:
            self._store_failed(event)

    def _stored(self, event: Stored) -> None:
        kind = self._state.storing.settle(event.key)
        if kind == LETTER:
            self._state.letters.stored(event.key)
        elif kind == INPUT:
            self._parking.input_stored(event.key)
        elif kind == CHILD:
            self._parking.stored(event.key)
        elif kind:
            self._kept.stored(event.key)

    def _store_failed(self, event: StoreFailed) -> None:
        kind = self._state.storing.settle(event.key)
        if kind == LETTER:
            self._state.letters.store_failed(event.key, event.reason)
        elif kind == INPUT:
            self._parking.inputs.store_failed(event.key, event.reason)
            # What was never kept has not to be forgotten.
            self._parking.farewells.forgotten(event.key)
        elif kind == CHILD:
            self._parking.store_failed(event.key, event.reason)
        elif kind:
            self._kept.store_failed(event.key, event.reason)

    def recover(self, event: Recovered) -> None:
        """Take over what is left, before anybody is here: whoever it is for has to come first."""
        for item in event.items:
            if item.kind == LETTER:
                self._state.letters.recover(item)
        self._parking.recover([item for item in event.items if item.kind in (CHILD, INPUT)])
        self._kept.recover([item for item in event.items if item.kind in (ASK, REPLY)])
