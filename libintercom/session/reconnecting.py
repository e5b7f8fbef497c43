"""Staying joined: one connection after the other under the same identity, until the session leaves.

Owns when a lost connection is tried again (sessions.md section 1) and saying so once. Does not own what is said on it
(``libintercom.aio``) nor what its events mean.
"""

from __future__ import annotations

import asyncio
import os

from libintercom.errors import IntercomError
from libintercom.inbound import ConnectionEnded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from libintercom.aio import AsyncClient
    from libintercom.session.background import BackgroundErrors
    from libintercom.wire.record import Record

# The first try comes at once, spread so that a restarted broker does not meet everybody in one instant.
FIRST_JITTER_S = 0.1
# Each try after it; the last pause repeats for as long as it takes.
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_BYTE_VALUES = 256

RECONNECT = "reconnect"


def reconnect_pauses_s() -> Iterator[float]:
    """The pause before each try, without end."""
    yield FIRST_JITTER_S * os.urandom(1)[0] / _BYTE_VALUES
    yield from PAUSES_S
    while True:
        yield PAUSES_S[-1]


class Line:
    """A client that is connected again whenever its connection ends, and the task that reads its events.

    ``on_event`` is awaited for each event, in order; ``on_joined`` after each registration but the first;
    ``on_lost`` with the reason when a connection ended.
    """

    def __init__(
        self,
        client: AsyncClient,
        errors: BackgroundErrors,
        *,
        on_event: Callable[[Record], Awaitable[None]],
        on_joined: Callable[[], Awaitable[None]],
        on_lost: Callable[[str], None],
    ) -> None:
        self._client, self._errors = client, errors
        self._on_event, self._on_joined, self._on_lost = on_event, on_joined, on_lost
        self._left = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read the connected client's events."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    def watch_end(self, tell: Callable[[asyncio.Task[None]], object]) -> None:
        """Call ``tell`` with the reading task once it ended."""
        if self._reading is not None:
            self._reading.add_done_callback(tell)

    async def hang_up(self) -> None:
        """Leave the broker and read what it had sent until it closes; no connection follows."""
        self._left.set()
        await self._client.disconnect()
        if self._reading is not None:
            await asyncio.wait([self._reading])

    async def _read(self) -> None:
        while True:
            async for event in self._client.events():
                if isinstance(event, ConnectionEnded):
                    self._on_lost(event.reason)
                else:
                    await self._on_event(event)
            if not await self._reconnect():
                return
            self._errors.recover(RECONNECT)
            await self._on_joined()

    async def _reconnect(self) -> bool:
        """True once joined again, False once the session leaves."""
        for pause_s in reconnect_pauses_s():
            if await self._is_left_within(pause_s):
                return False
            try:
                await self._client.connect()
            except IntercomError as error:
                self._errors.report(RECONNECT, str(error))
            else:
                return not await self._is_left_meanwhile()
        return False

    async def _is_left_meanwhile(self) -> bool:
        if self._left.is_set():
            # ``hang_up`` found no connection to end: this one came behind it.
            await self._client.disconnect()
        return self._left.is_set()

    async def _is_left_within(self, pause_s: float) -> bool:
        try:
            await asyncio.wait_for(self._left.wait(), pause_s)
        except asyncio.TimeoutError:
            return self._left.is_set()
        return True
