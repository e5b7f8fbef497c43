"""Iterating over a session's messages: the program's side of a ``QueueHost``.

Owns one message at a time: that it is placed on record before the program gets it, that it is consumed when the
program asks for the next one, and that an interrupted wait loses none. Does not own the queue (``host``).
"""

from __future__ import annotations

import asyncio

from libintercom.inbound import Inbound
from libintercom.session.faults import reach
from libintercom.session.happenings import TurnEnded, TurnStarted
from libintercom.wire.record import required
from libintercom.wire.values import STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from libintercom.session.host import HostInput, QueueHost
    from libintercom.wire.record import Record


class Arrival(Inbound):
    """A message as the program gets it; ``text`` is framed for a model, ``message.content.text`` is as it came."""

    text: str = required(STRING)


class Feed:
    """Messages for one reader. ``happen`` tells the inbox; ``place`` has a placement put on record.

    ``place`` returns whether the message still is this session's to give, and raises when it could not be recorded.
    """

    def __init__(
        self,
        host: QueueHost,
        happen: Callable[[Record], object],
        place: Callable[[str], Coroutine[None, None, bool]],
    ) -> None:
        self._host, self._happen, self._place = host, happen, place
        self._given: Arrival | None = None
        self._received = ""
        self._placing: asyncio.Task[bool] | None = None
        self._is_closed = False
        self._failure: BaseException | None = None
        self._arrival: asyncio.Future[None] | None = None

    def close(self, failure: BaseException | None = None) -> None:
        """No more messages: iterations end, with ``failure`` if there is one."""
        self._is_closed, self._failure = True, failure
        self._wake()

    async def stop(self) -> None:
        """Close, and wait for the placement that is being recorded."""
        self.close()
        if self._placing is not None:
            await asyncio.wait([self._placing])

    def is_given(self, message_id: str) -> bool:
        """Whether the program has this message and did not ask for the next one."""
        return self._given is not None and self._given.message.id == message_id

    def note_received(self, message_id: str) -> None:
        """The reader got this message; it is consumed when it asks for the next one."""
        self._received = message_id

    async def take(self, timeout_s: float | None = None) -> Arrival | None:
        """The next message; None when the session has left, or nothing came for ``timeout_s`` seconds.

        What the reader got is consumed now. What was given and never got there (``note_received``), because the wait
        was interrupted, is given again.

        Raises: what ``place`` raises; the message stays first in line.
        """
        if self._given is not None and self._given.message.id != self._received:
            return self._given
        self._end_turn()
        while True:
            first = await self._wait_for_first(timeout_s)
            if first is None:
                return None
            if await self._begin(first):
                return self._given

    def finish(self, message_ids: tuple[str, ...]) -> None:
        """The program said that it consumed these: its turn ends when the given one is among them."""
        if self._given is not None and self._given.message.id in message_ids:
            self._end_turn()

    async def _begin(self, first: HostInput) -> bool:
        """Whether the first in line is given now; an interrupted wait for that goes on behind the interruption."""
        if self._placing is None:
            self._happen(TurnStarted())
            self._placing = asyncio.get_running_loop().create_task(self._place(first.message_id))
        placing = self._placing
        await asyncio.wait([placing])
        self._placing = None
        failure = placing.exception()
        if failure is not None:
            self._happen(TurnEnded(is_ok=True, consumed_ids=()))
            raise failure
        reach("session.given")
        if self._host.first() is first:
            self._host.drop_first()
        if placing.result():
            parts = {name: getattr(first.inbound, name) for name in ("row", "message", "raw")}
            self._given = Arrival(text=first.text, **parts)
        else:
            self._happen(TurnEnded(is_ok=True, consumed_ids=()))
        return placing.result()

    def _end_turn(self) -> None:
        given, self._given = self._given, None
        if given is not None:
            reach("session.consumed")
            self._happen(TurnEnded(is_ok=True, consumed_ids=(given.message.id,)))

    async def _wait_for_first(self, timeout_s: float | None) -> HostInput | None:
        while not self._is_closed:
            first = self._host.first()
            if first is not None:
                return first
            if not await self._wait(timeout_s):
                return None
        if self._failure is not None:
            raise self._failure
        return None

    async def _wait(self, timeout_s: float | None) -> bool:
        """True once something may have come."""
        arrival = self._arrival = asyncio.get_running_loop().create_future()
        self._host.on_arrival(self._wake)
        try:
            done, _waiting = await asyncio.wait([arrival], timeout=timeout_s)
            return bool(done)
        finally:
            self._arrival = None
            self._host.on_arrival(None)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
