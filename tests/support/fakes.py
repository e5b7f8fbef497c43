"""Fakes of the small edges: a clock moved by hand, a spool that can fail, a log that remembers.

Owns the fakes behind ``intercomd.ports``; that of the listener stands in ``fake_listener``.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Any

from intercomd.core.effects import Store
from intercomd.core.events import Forgotten, Recovered, Stored, StoreFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.core.effects import Forget
    from intercomd.core.items import Item
    from intercomd.ports import Report


class FakeTimer:
    """One call that is due at ``when``."""

    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when, self._action, self.is_cancelled = when, action, False

    def cancel(self) -> None:
        self.is_cancelled = True

    def fire(self) -> None:
        if not self.is_cancelled:
            self.is_cancelled = True
            self._action()

    def __lt__(self, other: FakeTimer) -> bool:
        return self.when < other.when


class FakeClock:
    """A clock that stands until it is moved. ``early_s`` is how much too early its timers fire, as real ones may."""

    def __init__(self, at: float = 1000.0, early_s: float = 0.0) -> None:
        self._at, self._early_s = at, early_s
        self._timers: list[FakeTimer] = []
        self._soon: deque[Callable[[], None]] = deque()

    @property
    def timers(self) -> list[FakeTimer]:
        """Those that will still fire, earliest first."""
        return sorted(timer for timer in self._timers if not timer.is_cancelled)

    def now(self) -> float:
        return self._at

    def call_at(self, when: float, action: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(when, action)
        heapq.heappush(self._timers, timer)
        return timer

    def call_soon(self, action: Callable[[], None]) -> None:
        self._soon.append(action)

    def run_soon(self) -> int:
        """Call what is to be called soon, one round; how many calls that were."""
        due, self._soon = self._soon, deque()
        for action in due:
            action()
        return len(due)

    def advance(self, seconds: float) -> None:
        """Let time pass, firing each timer at its time."""
        end = self._at + seconds
        while self._timers and self._timers[0].when <= end:
            timer = heapq.heappop(self._timers)
            self._at = max(self._at, timer.when - self._early_s)
            timer.fire()
        self._at = end

    def stand_still(self, seconds: float) -> None:
        """Let time pass while nothing runs, as in a suspend; then what is overdue fires at once."""
        self._at += seconds
        self.advance(0.0)


class FakeSpool:
    """A spool that stores at once, or with ``failure`` does not; started again it still has what it stored."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.failure = ""
        self.is_closed = False
        self._report: Report | None = None

    def start(self, report: Report) -> None:
        self._report = report
        if self.items:
            report([Recovered(tuple(self.items.values()))])

    def apply(self, effect: Store | Forget) -> None:
        assert self._report, "a spool is started first"
        if not isinstance(effect, Store):
            self.items.pop(effect.key, None)
            if effect.is_answered:
                self._report([Forgotten(effect.key, self.failure)])
        elif self.failure:
            self._report([StoreFailed(effect.item.key, self.failure)])
        else:
            self.items[effect.item.key] = effect.item
            self._report([Stored(effect.item.key)])

    def close(self) -> None:
        self.is_closed = True
        self._report = None


class FakeLog:
    """A log in memory."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, dict[str, Any]]] = []
        self.bugs: list[tuple[BaseException, object]] = []

    def write(self, level: str, what: str, parts: dict[str, Any]) -> None:
        self.records.append((level, what, parts))

    def report_bug(self, error: BaseException, event: object) -> None:
        self.bugs.append((error, event))
