"""The replace stage: updates of one thread that wait a moment for a newer one (wire.md 5.4, 14.13).

Owns what is staged and its bounds. Does not own acknowledging nor delivering it (``sends``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intercomd.core.asks import Ask
    from intercomd.core.limits import Limits
    from intercomd.core.roster import Session
    from libintercom.wire.messages import Message

StageKey = tuple[str, str, str]


@dataclass(slots=True, eq=False)
class Staged:
    """One message in the stage; ``sender_row`` is the sender's row as it was at staging."""

    key: StageKey
    message: Message
    message_bytes: bytes
    sender_row: bytes
    # Who sent it; it may have left since.
    sender: Session
    # The ask it makes; it may have ended since.
    ask: Ask | None = None

    @property
    def sender_id(self) -> str:
        return self.key[0]

    @property
    def recipient_id(self) -> str:
        return self.key[1]

    @property
    def size_bytes(self) -> int:
        return len(self.message_bytes) + len(self.sender_row)


class Stage:
    """Staged messages by (sender, recipient, thread)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._staged: dict[StageKey, Staged] = {}
        self._keys_of_sender: dict[str, int] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._staged)

    def has_room_for(self, staged: Staged) -> bool:
        """Replacing an existing key never needs a new one; bytes are bounded always."""
        limits, before = self._limits, self._staged.get(staged.key)
        freed = before.size_bytes if before else 0
        if self.size_bytes - freed + staged.size_bytes > limits.stage_bytes:
            return False
        own = self._keys_of_sender.get(staged.sender_id, 0)
        return before is not None or (own < limits.stage_keys_per_sender and len(self._staged) < limits.stage_keys)

    def put(self, staged: Staged) -> None:
        """Stage a message; its key must be free."""
        self._staged[staged.key] = staged
        self._keys_of_sender[staged.sender_id] = self._keys_of_sender.get(staged.sender_id, 0) + 1
        self.size_bytes += staged.size_bytes

    def take(self, key: StageKey) -> Staged | None:
        """Remove and return what is staged under a key."""
        staged = self._staged.pop(key, None)
        if staged is not None:
            self.size_bytes -= staged.size_bytes
            self._keys_of_sender[staged.sender_id] -= 1
            if not self._keys_of_sender[staged.sender_id]:
                del self._keys_of_sender[staged.sender_id]
        return staged

    def all_keys(self) -> list[StageKey]:
        """Everything staged, oldest first."""
        return list(self._staged)

    def concerning(self, peer_id: str) -> list[Staged]:
        """What is staged from or to a session."""
        return [staged for staged in self._staged.values() if peer_id in staged.key[:2]]

    def find_message(self, sender_id: str, message_id: str) -> Staged | None:
        """A sender's staged message by its id."""
        own = (staged for staged in self._staged.values() if staged.sender_id == sender_id)
        return next((staged for staged in own if staged.message.id == message_id), None)
