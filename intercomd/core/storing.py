"""What was given to the spool and is not answered for yet.

Owns the keys of items and the two effects about them. Does not own what follows from the answers (``spooled``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomd.core.effects import Forget, Store
from intercomd.core.items import Item
from libintercom.wire.frames import encode_json

if TYPE_CHECKING:
    from intercomd.core.turn import Turn


class Storing:
    """What was given to the spool and is not answered for."""

    def __init__(self, turn: Turn, incarnation: str) -> None:
        self._turn, self._incarnation = turn, incarnation
        self._made = 0
        self._unanswered: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._unanswered)

    def next_key(self) -> str:
        """A key that no item of any broker has."""
        self._made += 1
        return f"{self._incarnation}-{self._made}"

    def store(self, kind: str, key: str, facts: dict[str, Any], row: bytes = b"", message: bytes = b"") -> None:
        """Ask for an item to be kept; ``Stored`` or ``StoreFailed`` follows."""
        self._unanswered[key] = kind
        self._turn.add(Store(Item(key, kind, encode_json(facts), row, message)))

    def forget(self, key: str, *, is_answered: bool = False) -> None:
        """Ask for an item to be kept no longer, and maybe to be told when that is so."""
        self._turn.add(Forget(key, is_answered))

    def settle(self, key: str) -> str:
        """The spool answered: the kind of what it answered for, ``""`` when nothing was asked."""
        return self._unanswered.pop(key, "")
