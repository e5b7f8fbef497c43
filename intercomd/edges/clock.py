"""Time as the broker sees it: the loop's monotonic clock and the wall clock. Owns both readings and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from intercomd.ports import Timer

_NS_PER_MS = 1_000_000


class LoopClock:
    """The real edge behind ``intercomd.ports.Clock``: the time of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # The method itself: it is read in every turn.
        self.now: Callable[[], float] = loop.time

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        return self._loop.call_at(when, action)

    def call_soon(self, action: Callable[[], None]) -> None:
        """Call ``action`` after a whole round of the loop; some loops look at sockets after what is called soon."""
        self._loop.call_soon(self._loop.call_soon, action)


def wall_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // _NS_PER_MS
