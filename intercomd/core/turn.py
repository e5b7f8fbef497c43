"""One turn of the core: the time it happens at and the effects it has so far.

Owns collecting effects. Every part of the core shares one ``Turn``; the router begins it anew for each event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomd.core.effects import Log, Write

if TYPE_CHECKING:
    from intercomd.core.effects import Effect
    from libintercom.wire.answers import Answer

_MS_PER_S = 1000.0


class Turn:
    """``now``: monotonic seconds of this turn; wall time follows it from the last wall time an event told."""

    def __init__(self, now: float, at_ms: int) -> None:
        self.now = now
        self.effects: list[Effect] = []
        # The last wall time that an event told, and when it did.
        self._told_ms, self._told_at = at_ms, now

    @property
    def at_ms(self) -> int:
        """This turn's wall time in Unix milliseconds."""
        if self.now == self._told_at:
            return self._told_ms
        return round((self.now - self._told_at) * _MS_PER_S) + self._told_ms

    def begin(self, now: float) -> None:
        """Start a turn with no effects."""
        self.now = now
        self.effects = []

    def learn_wall_time(self, at_ms: int) -> None:
        """An event told the wall time; it may have been set back or forward since."""
        self._told_ms, self._told_at = at_ms, self.now

    def add(self, effect: Effect) -> None:
        """Ask for an effect, after those asked for before."""
        self.effects.append(effect)

    def write(self, conn: int, frame: Answer) -> None:
        """Ask for a frame to be written."""
        self.effects.append(Write(conn, frame))

    def log(self, level: str, what: str, **parts: Any) -> None:
        """Ask for a log record: ids, sizes and reasons, never a body."""
        self.effects.append(Log(level, what, parts))
