"""Waiting for something that can be observed, with a deadline.

Owns the only two loops of the tests that sleep. Does not own time in tests of pure code: those move a clock by hand.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Seen = TypeVar("Seen")

# Long enough for a process to start on a busy two-core machine; a wait that succeeds never takes this long.
DEADLINE_S = 10.0

# Short beside everything waited for (a process start is tens of milliseconds), and cheap on one core.
INTERVAL_S = 0.005


class NotSeen(AssertionError):
    """What was waited for did not come; ``last`` is what the predicate said last."""

    def __init__(self, what: str, deadline_s: float, last: object) -> None:
        super().__init__(what, deadline_s, last)
        self.what, self.deadline_s, self.last = what, deadline_s, last

    def __str__(self) -> str:
        return f"waited {self.deadline_s:g} s in vain for {self.what}; seen last: {self.last!r}"


def wait_until(predicate: Callable[[], Seen], what: str, deadline_s: float = DEADLINE_S) -> Seen:
    """Call ``predicate`` until it returns something true, and return that.

    Raises:
        NotSeen: nothing true came within ``deadline_s`` seconds; the predicate was asked once more at the end.

    """
    end = time.monotonic() + deadline_s
    while True:
        is_last = time.monotonic() >= end
        seen = predicate()
        if seen:
            return seen
        if is_last:
            raise NotSeen(what, deadline_s, seen)
        time.sleep(INTERVAL_S)


async def wait_until_async(predicate: Callable[[], Seen], what: str, deadline_s: float = DEADLINE_S) -> Seen:
    """Do the same as `wait_until` while the running loop goes on."""
    end = time.monotonic() + deadline_s
    while True:
        is_last = time.monotonic() >= end
        seen = predicate()
        if seen:
            return seen
        if is_last:
            raise NotSeen(what, deadline_s, seen)
        await asyncio.sleep(INTERVAL_S)
