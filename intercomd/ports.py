"""What the shell needs from each edge. Owns the shapes only; the edges never import one another.

Each has a real edge under ``intercomd.edges`` and a fake in ``tests/support``, under one contract test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from intercomd.core.effects import Effect, Forget, Store
    from intercomd.core.events import Event

    Report = Callable[[Iterable[Event]], None]


class Listener(Protocol):
    """The endpoint: sockets in, frames out. Reports events through the ``report`` it was started with."""

    def start(self, report: Report) -> None:
        """Begin to accept and read."""

    def action(self, kind: type[Effect]) -> Callable[[Any], None]:
        """What carries out effects of a kind on connections or on accepting; writing only queues until ``flush``."""

    def flush(self) -> list[Event]:
        """Write what was queued, recipients before acknowledgements; return what was observed.

        Called by the shell after each turn until nothing is observed any more.
        """

    def close(self) -> None:
        """Close every connection."""


class Spool(Protocol):
    """Keeps what must survive a restart. What became of an effect is reported through what it was started with."""

    def start(self, report: Report) -> None:
        """Report what an earlier broker left (``Recovered``, before this returns), and begin to take items."""

    def apply(self, effect: Store | Forget) -> None:
        """Carry out one effect, at once or later; the order is kept."""

    def close(self) -> None:
        """Return when everything asked for was done, or cannot be; nothing is reported any more."""


class Log(Protocol):
    """The broker's log: types, ids, sizes, reasons; never a body."""

    def write(self, level: str, what: str, parts: dict[str, Any]) -> None:
        """One record."""

    def report_bug(self, error: BaseException, event: object) -> None:
        """A bug, with the event that caused it."""


class Timer(Protocol):
    """Something that will happen once, unless it is cancelled."""

    def cancel(self) -> None:
        """It will not happen; harmless when it has."""


class Clock(Protocol):
    """Monotonic time and being called back. ``call_at`` may be late, and early by less than the clock's resolution."""

    def now(self) -> float:
        """Seconds on a clock that never runs backwards."""

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call ``action`` once at ``when``."""

    def call_soon(self, action: Callable[[], None]) -> None:
        """Call ``action`` once, after every socket that is ready now had its turn."""
