"""What is due when: one deadline a key, exact at any time.

Owns the order of deadlines. Does not own what happens at them (``router``). Times are monotonic seconds.
"""

from __future__ import annotations

import heapq

# Keys are tuples whose first word names the kind, e.g. ("ask", sender id, message id).
Key = tuple[str, ...] | tuple[str, int]
# A heap of so few entries is not worth tidying.
_SMALL_HEAP = 64


class Deadlines:
    """A heap with lazy removal; ``next_at`` never reports a removed deadline."""

    def __init__(self) -> None:
        self._at: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: Key) -> bool:
        return key in self._at

    def keys(self) -> set[Key]:
        """Everything that waits."""
        return set(self._at)

    def set(self, key: Key, at: float) -> None:
        """Make ``key`` due at ``at``, instead of any time before."""
        if self._at.get(key) == at:
            return
        self._at[key] = at
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, key))
        self._compact()

    def clear(self, key: Key) -> None:
        """``key`` waits no more."""
        if self._at.pop(key, None) is not None:
            self._compact()

    def next_at(self) -> float | None:
        """When the earliest deadline is due."""
        heap = self._heap
        if heap and self._at.get(heap[0][2]) != heap[0][0]:
            self._drop_stale()
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> Key | None:
        """Remove and return one key that is due, earliest first."""
        self._drop_stale()
        if not self._heap or self._heap[0][0] > now:
            return None
        _at, _count, key = heapq.heappop(self._heap)
        del self._at[key]
        return key

    def _drop_stale(self) -> None:
        heap = self._heap
        while heap and self._at.get(heap[0][2]) != heap[0][0]:
            heapq.heappop(heap)

    def _compact(self) -> None:
        # Removed entries stay in the heap until they surface; twice the live ones is the most they may be.
        if len(self._heap) > _SMALL_HEAP and len(self._heap) > 2 * len(self._at):
            self._heap = [entry for entry in self._heap if self._at.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)
