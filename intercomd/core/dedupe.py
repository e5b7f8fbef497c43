"""Remembering accepted messages, so that sending one again never delivers it twice (wire.md 14.3).

Owns the memory of outcomes. Refused sends are not in it: they may be tried again.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from intercomd.core.limits import Limits

# Longer message ids are kept as their hash, of so many bytes.
_MAX_KEPT_ID_CHARS = 64
_ID_HASH_BYTES = 16
# Members that may differ between two sends of one message. The unescaped quote before the colon cannot
# stand inside a JSON string, so text that only looks like a member is not touched.
_VOLATILE = re.compile(rb'"(?:timestamp|senderSequence)"\s*:\s*[-+.0-9eE]+')
_TIMESTAMP = b'"timestamp"'
_SEQUENCE = b'"senderSequence"'

MessageKey = tuple[str, str | bytes]


def message_key(sender_id: str, message_id: str) -> MessageKey:
    """The key of one sender's message."""
    if len(message_id) <= _MAX_KEPT_ID_CHARS:
        return (sender_id, message_id)
    encoded = message_id.encode("utf-8", "surrogatepass")
    return (sender_id, blake2b(encoded, digest_size=_ID_HASH_BYTES).digest())


def content_hash(recipient_id: str, message: bytes) -> int:
    """What makes two sends under one key the same: the recipient, and the message without its volatile members.

    64 bits of the interpreter's keyed hash: two contents that meet cannot be constructed, and a digest of twice the
    size costs five times as much on every message.
    """
    at = message.find(_TIMESTAMP)
    volatile = _VOLATILE.match(message, at) if at >= 0 else None
    if volatile is None or message.find(_TIMESTAMP, volatile.end()) >= 0 or _SEQUENCE in message:
        return hash((recipient_id, _VOLATILE.sub(b"", message)))
    return hash((recipient_id, message[:at] + message[volatile.end() :]))


class Waiting(Protocol):
    """Something in the spool, or on its way there."""

    is_over: bool
    askers: list[int]


@dataclass(slots=True)
class Remembered:
    """One accepted message: where it went and how it was answered (``""``: not settled yet).

    ``recipient_epoch`` is of the endpoint it went to: a later endpoint on that connection is another one.
    """

    content: int
    recipient_conn: int
    recipient_epoch: str
    token: int
    answer: str = ""
    expires_at: float = 0.0
    # What it became in the spool, for as long as it is there and nowhere else.
    spooled: Waiting | None = None


Entry = tuple[MessageKey, Remembered]
# A line of so few entries is not worth sweeping.
_SMALL_LINE = 64


class Line:
    """Entries in order of age. What was forgotten before its time stays in line, as a shadow that does not count."""

    __slots__ = ("entries", "live")

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.live = 0

    def append(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.live += 1


class Dedupe:
    """Accepted messages of the last hour, bounded per sender and in all."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[MessageKey, Remembered] = {}
        # So that what has expired or is over a bound leaves from the front.
        self._line = Line()
        self._lines: dict[str, Line] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: MessageKey, now: float) -> Remembered | None:
        """What is remembered of a message."""
        known = self._known.get(key)
        if known is not None and known.expires_at <= now:
            self.forget(key)
            return None
        return known

    def remember(self, key: MessageKey, known: Remembered, now: float) -> None:
        """Keep a message that is being accepted; its ``answer`` is set when it is settled."""
        if key in self._known:
            self.forget(key)
        limits, line = self._limits, self._line
        known.expires_at = now + limits.dedupe_s
        self._known[key] = known
        entry = (key, known)
        own = self._lines.get(key[0])
        if own is None:
            own = self._lines[key[0]] = Line()
        own.append(entry)
        line.append(entry)
        if own.live > limits.dedupe_per_sender:
            self._drop_oldest(own)
        if line.live > limits.dedupe_total:
            self._drop_oldest(line)
        self._drop_expired(now)

    def forget(self, key: MessageKey) -> None:
        """A message was refused after all, its recipient left, or its time in memory is over."""
        if self._known.pop(key, None) is None:
            return
        own = self._lines[key[0]]
        own.live -= 1
        self._line.live -= 1
        if own.live:
            self._sweep(own)
        else:
            del self._lines[key[0]]
        self._sweep(self._line)

    def _drop_oldest(self, line: Line) -> None:
        while not self._is_live(line.entries[0]):
            line.entries.popleft()
        self.forget(line.entries.popleft()[0])

    def _drop_expired(self, now: float) -> None:
        # Two out for one in: what has expired leaves without a search.
        entries = self._line.entries
        for _round in range(2):
            if not entries:
                return
            is_live = self._is_live(entries[0])
            if is_live and entries[0][1].expires_at > now:
                return
            key, _known = entries.popleft()
            if is_live:
                self.forget(key)

    def _is_live(self, entry: Entry) -> bool:
        # Its key may be another message's by now.
        return self._known.get(entry[0]) is entry[1]

    def _sweep(self, line: Line) -> None:
        # In place, since a caller may hold it; as many shadows as live entries are the most there may be.
        if len(line.entries) > _SMALL_LINE and len(line.entries) > 2 * line.live:
            kept = [entry for entry in line.entries if self._is_live(entry)]
            line.entries.clear()
            line.entries.extend(kept)
