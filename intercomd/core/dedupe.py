"""Remembering accepted messages, so that sending one again never delivers it twice (wire.md 14.3).

Owns the memory of outcomes. Refused sends are not in it: they may be tried again.
"""

from __future__ import annotations

import re
from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from intercomd.core.limits import Limits

# Longer message ids are kept as their hash, of so many bytes.
MAX_KEPT_ID_CHARS = 64
_ID_HASH_BYTES = 16
# Members that may differ between two sends of one message. The unescaped quote before the colon cannot
# stand inside a JSON string, so text that only looks like a member is not touched.
_split = re.compile(rb'"(?:timestamp|senderSequence)"\s*:\s*[-+.0-9eE]+').split

MessageKey = tuple[str, str | bytes]


def message_key(sender_id: str, message_id: str) -> MessageKey:
    """The key of one sender's message."""
    if len(message_id) <= MAX_KEPT_ID_CHARS:
        return (sender_id, message_id)
    encoded = message_id.encode("utf-8", "surrogatepass")
    return (sender_id, blake2b(encoded, digest_size=_ID_HASH_BYTES).digest())


def content_hash(recipient_id: str, message: bytes) -> int:
    """What makes two sends under one key the same: the recipient, and the message without its volatile members.

    64 bits of the interpreter's keyed hash: two contents that meet cannot be constructed, and a digest of twice the
    size costs five times as much on every message. The pieces between the members say as much as what they make
    joined: no JSON has two commas in a row.
    """
    return hash((recipient_id, *_split(message)))


class Waiting(Protocol):
    """Something in the spool, or on its way there."""

    is_over: bool
    askers: list[int]


class Remembered:
    """One accepted message: where it went and how it was answered (``""``: not settled yet).

    ``recipient_epoch`` is of the endpoint it went to: a later endpoint on that connection is another one.
    ``own`` is the memory it is in, None once it is forgotten: then it is a shadow in the lines that it stands in.
    """

    __slots__ = (
        "answer",
        "content",
        "expires_at",
        "key",
        "own",
        "recipient_conn",
        "recipient_epoch",
        "spooled",
        "token",
    )

    # Set when it is kept.
    key: str | bytes
    own: Memory | None
    expires_at: float

    def __init__(
        self, content: int, recipient_conn: int, recipient_epoch: str, token: int, answer: str = ""
    ) -> None:
        self.content, self.recipient_conn = content, recipient_conn
        self.recipient_epoch, self.token = recipient_epoch, token
        self.answer = answer
        # What it became in the spool, for as long as it is there and nowhere else.
        self.spooled: Waiting | None = None


# A line of so few entries is not worth sweeping.
_SMALL_LINE = 64
Line = deque[Remembered]


class Memory:
    """One sender's messages by the second half of their keys, and in order of age with the shadows among them."""

    __slots__ = ("known", "line", "sender_id")

    def __init__(self, sender_id: str) -> None:
        self.sender_id = sender_id
        self.known: dict[str | bytes, Remembered] = {}
        self.line: Line = deque()


_NOTHING: dict[str | bytes, Remembered] = {}


class Dedupe:
    """Accepted messages of the last hour, bounded per sender and in all."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._memories: dict[str, Memory] = {}
        # So that what has expired or is over a bound leaves from the front.
        self._line: Line = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def find(self, key: MessageKey, now: float) -> Remembered | None:
        """What is remembered of a message."""
        own = self._memories.get(key[0])
        known = None if own is None else own.known.get(key[1])
        if known is not None and known.expires_at <= now:
            self._drop(known)
            return None
        return known

    def remember(self, key: MessageKey, known: Remembered, now: float) -> None:
        """Keep a message that is being accepted; its ``answer`` is set when it is settled."""
        self.forget(key)
        self.keep_all(key[0], {key[1]: known}, now)

    def known_ids(self, sender_id: str) -> Mapping[str | bytes, Remembered]:
        """The second halves of a sender's keys that are known, or were until they expired."""
        own = self._memories.get(sender_id)
        return _NOTHING if own is None else own.known

    def keep_all(self, sender_id: str, fresh: Mapping[str | bytes, Remembered], now: float) -> None:
        """Keep messages that are not known, and let go what is over a bound or has expired."""
        limits, line = self._limits, self._line
        own = self._memories.get(sender_id)
        if own is None:
            own = self._memories[sender_id] = Memory(sender_id)
        expires_at = now + limits.dedupe_s
        for key, known in fresh.items():
            known.key, known.own, known.expires_at = key, own, expires_at
        own.known.update(fresh)
        own.line.extend(fresh.values())
        line.extend(fresh.values())
        self._size += len(fresh)
        if len(own.known) > limits.dedupe_per_sender:
            self._drop_oldest(own.line, len(own.known) - limits.dedupe_per_sender)
        if self._size > limits.dedupe_total:
            self._drop_oldest(line, self._size - limits.dedupe_total)
        # Two out for one in: what has expired leaves without a search.
        for _round in range(2 * len(fresh)):
            if not line or (line[0].own is not None and line[0].expires_at > now):
                break
            oldest = line.popleft()
            if oldest.own is not None:
                self._drop(oldest)
        if not own.known:
            self._drop_empty(own)

    def _drop_empty(self, own: Memory) -> None:
        """Of a sender of whom nothing is known nothing is kept."""
        if self._memories.get(own.sender_id) is own:
            del self._memories[own.sender_id]

    def forget(self, key: MessageKey) -> None:
        """A message was refused after all, or its recipient left."""
        own = self._memories.get(key[0])
        known = None if own is None else own.known.get(key[1])
        if known is not None:
            self._drop(known)

    def _drop_oldest(self, line: Line, count: int) -> None:
        while count:
            known = line.popleft()
            if known.own is not None:
                self._drop(known)
                count -= 1

    def _drop(self, known: Remembered) -> None:
        own = known.own
        if own is None:
            return
        del own.known[known.key]
        known.own = None
        self._size -= 1
        if not own.known:
            self._drop_empty(own)
        # As many shadows as live entries are the most there may be.
        if len(own.line) > 2 * len(own.known) + _SMALL_LINE:
            _sweep(own.line)
        if len(self._line) > 2 * self._size + _SMALL_LINE:
            _sweep(self._line)


def _sweep(line: Line) -> None:
    # In place, since a caller may hold it.
    kept = [known for known in line if known.own is not None]
    line.clear()
    line.extend(kept)
