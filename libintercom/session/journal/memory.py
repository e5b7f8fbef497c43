"""What an open journal keeps in memory: where messages beyond the index stand, and what was asked for last.

Owns two bounded tables. Does not own the file (``store``) nor any lock: its caller holds one.

``tail``: message id -> numbers of first and last entry and whether it is unfinished, for entries beyond the index.
``recent``: message id -> what is known of it, also that nothing is; entries not stored yet are never evicted, so a
message that is not here is on disk as a whole.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.session.entries import Entry, Standing
    from libintercom.session.journal.store import EntryRow

# Messages whose standing is kept: more than a session has in hand at a time.
RECENT_LIMIT = 1_024
# Their texts: a message has at most 1 MiB, and a session few long ones at a time.
RECENT_BYTES = 4 * 1024 * 1024


class Known:
    """One message: its standing (``None``: there is no such message), its last number, its entries not stored yet."""

    __slots__ = ("last", "size_bytes", "standing", "waiting")

    def __init__(self, standing: Standing | None, last: int, size_bytes: int = 0) -> None:
        self.standing, self.last, self.size_bytes = standing, last, size_bytes
        self.waiting: list[tuple[int, Entry]] = []


class Memory:
    """Both tables, and up to which number everything is stored."""

    def __init__(self, stored: int, limit: int = RECENT_LIMIT, limit_bytes: int = RECENT_BYTES) -> None:
        self.stored = stored
        self.tail: dict[str, tuple[int, int, int]] = {}
        self.recent: dict[str, Known] = {}
        self._limit, self._limit_bytes, self._bytes = limit, limit_bytes, 0

    def remember(self, message_id: str, known: Known) -> None:
        """Keep what was read, and forget what was read longest ago."""
        self.recent[message_id] = known
        self._bytes += known.size_bytes
        self._evict()

    def add(self, message_id: str, known: Known, size_bytes: int) -> None:
        """An entry of ``known`` waits to be stored; it is the newest now."""
        if self.recent.pop(message_id, None) is not None:
            self._bytes -= known.size_bytes
        known.size_bytes += size_bytes
        self._bytes += known.size_bytes
        # Last in the order of eviction, behind everything that may go.
        self.recent[message_id] = known
        self._evict()

    def settle(self, rows: list[EntryRow]) -> None:
        """These rows are on disk, and everything before them."""
        self.stored = stored = rows[-1][0]
        for number, _previous, first, unfinished, _at_ms, _entry_id, message_id, *_rest in rows:
            self.tail[message_id] = (first, number, unfinished)
            known = self.recent.get(message_id)
            if known is not None and known.waiting:
                known.waiting = [one for one in known.waiting if one[0] > stored]
        self._evict()

    def unfinished(self, after: int) -> list[tuple[int, str]]:
        """Place in the order of admission and message id: unfinished beyond the index, or with entries not stored."""
        found = {seen[0]: name for name, seen in self.tail.items() if seen[2] and seen[0] > after}
        for name, known in self.recent.items():
            if known.waiting and known.standing and known.standing.order > after:
                found[known.standing.order] = name
        return sorted(found.items())

    def folded(self, up_to: int) -> None:
        """The index has everything up to ``up_to``."""
        self.tail = {message_id: seen for message_id, seen in self.tail.items() if seen[1] > up_to}

    def forget(self) -> None:
        """Nothing that is not on disk counts any more."""
        self.recent.clear()
        self._bytes = 0

    def _evict(self) -> None:
        while len(self.recent) > self._limit or self._bytes > self._limit_bytes:
            oldest = next(iter(self.recent))
            if self.recent[oldest].waiting or len(self.recent) == 1:
                return
            self._bytes -= self.recent.pop(oldest).size_bytes
