"""What reaches a session unasked, as its program sees it: past-tense events, one frozen type each.

Owns the vocabulary and the bound on what waits unread. Does not own when something is read.
"""

from __future__ import annotations

from collections import deque

from libintercom.wire.messages import Message, Row, nested
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import ANYTHING, COUNT, NUMBER, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Unread beyond this (the broker holds as much again for us, wire.md 14.6): nothing more is read from the
# socket while no call of ours waits, so the broker's own quota tells senders the truth.
SOFT_EVENTS = 1_000
SOFT_BYTES = 4 * 1024 * 1024
# While a call waits reading goes on, for its answer stands behind the messages; but never past this. The call
# then ends in time with what is known, and memory stays bounded.
HARD_EVENTS = 4 * SOFT_EVENTS
HARD_BYTES = 4 * SOFT_BYTES
# An event that is no message is small; it counts like the smallest message.
_SMALL_EVENT_BYTES = 256


class Inbound(Record):
    """A message. ``raw`` is ``{"from": …, "message": …}`` exactly as on the wire, unknown members included."""

    row: Row = required(nested(Row))
    message: Message = required(nested(Message))
    raw: dict[str, Any] = required(ANYTHING)

    @property
    def sender(self) -> str:
        """What to call the sender: its name, else the first eight characters of its ID."""
        return self.row.name or self.row.id[:8]


class PeerLeft(Record):
    """A session that this one could see is gone."""

    session_id: str = required(STRING)


class AskEnded(Record):
    """Nobody waits any more for our reply to this question.

    ``reason``: ``timeout``, ``cancelled``, ``asker_left``, ``replaced`` (wire.md 9.6), or ``evicted`` when more
    questions than ``pending.MAX_PENDING`` wait and this was the oldest.
    """

    message_id: str = required(STRING)
    asker_id: str = required(STRING)
    reason: str = required(STRING)


class LetterDied(Record):
    """A message of ours that had been accepted can no longer arrive. ``at_ms``: Unix milliseconds."""

    message_id: str = required(STRING)
    recipient_id: str = required(STRING)
    reason: str = required(STRING)
    at_ms: float = required(NUMBER)


class WakeAsked(Record):
    """Input waits for a parked child of this main: wake it, and say with ``answer_wake`` what came of that.

    ``message_id`` is the message that asks for it, or the first of those that wait.
    """

    child_id: str = required(STRING)
    message_id: str = required(STRING)
    attempt: int = required(COUNT)


class WakeFailed(Record):
    """The session that our question waits for could not be woken. The question stands: do not ask it again."""

    message_id: str = required(STRING)
    reason: str = required(STRING)


class ReadAsked(Record):
    """Somebody reads this session's last response or receipt; answered with ``answer_read`` within five seconds.

    ``kind`` is ``last`` (with ``offset`` and ``limit`` in UTF-16 code units, and an ``entry_id`` to keep to, if any)
    or ``receipt`` (with ``root_session_id`` and ``message_id``). Only sessions that serve reads get it.
    """

    token: str = required(STRING)
    kind: str = required(STRING)
    entry_id: str | None = optional(STRING, default=None)
    offset: int | None = optional(COUNT, default=None)
    limit: int | None = optional(COUNT, default=None)
    root_session_id: str | None = optional(STRING, default=None)
    message_id: str | None = optional(STRING, default=None)


class ConnectionEnded(Record):
    """The last event of a connection."""

    reason: str = required(STRING)


class Mailroom:
    """Events in order of arrival, counted in number and bytes."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Record, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, event: Record, size_bytes: int = _SMALL_EVENT_BYTES) -> None:
        """Take an event in; nothing is ever dropped here."""
        self._waiting.append((event, size_bytes))
        self._bytes += size_bytes

    def take(self) -> Record | None:
        """The oldest event, or None."""
        if not self._waiting:
            return None
        event, size_bytes = self._waiting.popleft()
        self._bytes -= size_bytes
        return event

    def has_room(self, *, is_call_waiting: bool) -> bool:
        """Whether more may be read from the socket now."""
        events, size_bytes = (HARD_EVENTS, HARD_BYTES) if is_call_waiting else (SOFT_EVENTS, SOFT_BYTES)
        return len(self._waiting) < events and self._bytes < size_bytes
