"""Connections whose peers are gone: they end one after the other, everybody else in between.

Owns who ends when. Does not own what an end is (``listener``), nor those who stay and said much (``rounds``).

An end may cost a frame to each of thousands who hear of it. So a few end in the turn that finds them gone, if that is
quick, and everybody else one in a turn of the loop; and where a crowd is leaving, nobody's end is told before it is
known who leaves: those need not hear of each other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from intercomd.edges.listener.connection import Connection

    # Hear a little more of a connection, or end it; whether there is more.
    HearOn = Callable[[Connection], bool]

# Those who end in the turn that finds them gone, so that what is said to them next finds it too, and for how long.
ENDS_PER_TURN = 4
_TURN_S = 0.001
# More than these waiting for their ends are a crowd.
_CROWD = 16
# A crowd is complete when nobody joined it for so long; a program closes a socket every 10 to 50 us.
_QUIET_S = 0.01
# Whoever waits for its end does not wait longer than this for the crowd to be complete.
_PATIENCE_S = 0.25


class Departures:
    """One of them is heard on in each turn of the loop. True while anybody waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hear_on: HearOn) -> None:
        self._loop, self._hear_on = loop, hear_on
        self._waiting: dict[int, Connection] = {}
        self._is_scheduled = False
        # How many ended in the turn that found them, and when the first of these began.
        self._count, self._began_at = 0, 0.0
        # When the first of those who wait came, and the last.
        self._first_at = self._last_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def is_free(self) -> bool:
        """Whether one may end at once: nobody waits, and few ended in this turn of the loop."""
        if self._waiting or self._count >= ENDS_PER_TURN:
            return False
        return not self._count or time.perf_counter() - self._began_at < _TURN_S

    def claim(self, connection: Connection) -> bool:
        """Whether it may end at once, and then it is one of this turn's; else it waits."""
        if not self.is_free:
            self.add(connection)
            return False
        if not self._count:
            self._began_at = time.perf_counter()
        self._count += 1
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take_turn)
        return True

    def add(self, connection: Connection) -> None:
        """It is heard on when all who wait already were."""
        self._last_at = self._loop.time()
        if not self._waiting:
            self._first_at = self._last_at
        self._waiting[connection.number] = connection
        self._schedule()

    def remove(self, connection: Connection) -> None:
        """It has ended; harmless when it does not wait."""
        self._waiting.pop(connection.number, None)

    def _schedule(self) -> None:
        if not self._waiting or self._is_scheduled:
            return
        self._is_scheduled = True
        if self._is_growing():
            self._loop.call_later(_QUIET_S, self._take_turn)
        else:
            self._loop.call_soon(self._take_turn)

    def _is_growing(self) -> bool:
        if len(self._waiting) <= _CROWD:
            return False
        now = self._loop.time()
        return now - self._last_at < _QUIET_S and now - self._first_at < _PATIENCE_S

    def _take_turn(self) -> None:
        self._is_scheduled = False
        self._count = 0
        number = None if self._is_growing() else next(iter(self._waiting), None)
        # Whatever becomes of this one, the others are not forgotten.
        connection = None if number is None else self._waiting.pop(number)
        self._schedule()
        if connection is not None and self._hear_on(connection):
            self._waiting[connection.number] = connection
            self._schedule()
