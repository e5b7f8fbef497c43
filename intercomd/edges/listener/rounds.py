"""Connections whose turn ended before their frames did: they go on one after the other, everybody else in between.

Owns who goes on when. Does not own what going on is (``listener``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from intercomd.edges.listener.connection import Connection


class Rounds:
    """One connection goes on in each turn of the loop, so that whoever has little to say waits for few frames."""

    def __init__(self, loop: asyncio.AbstractEventLoop, go_on: Callable[[Connection], None]) -> None:
        self._loop, self._go_on = loop, go_on
        self._waiting: dict[int, Connection] = {}
        self._is_scheduled = False

    def add(self, connection: Connection) -> None:
        """It goes on when all who wait already did."""
        self._waiting[connection.number] = connection
        self._schedule()

    def remove(self, connection: Connection) -> None:
        """It does not go on; harmless when it does not wait."""
        self._waiting.pop(connection.number, None)

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_scheduled = False
        number = next(iter(self._waiting), None)
        if number is not None:
            # Whatever becomes of this one, the others are not forgotten.
            connection = self._waiting.pop(number)
            self._schedule()
            self._go_on(connection)
