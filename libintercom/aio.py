"""The asyncio client: the same methods as ``client``, each of them awaited where it waits.

Owns watching one connection on the running loop. What is said and what it means is ``flows``, ``sending``
and ``asking``. Unread events are bounded: see ``inbound`` for when reading from the socket pauses.
"""

from __future__ import annotations

import asyncio
import time

from libintercom import asking, flows, parking, reading, sending
from libintercom.asking import DEFAULT_TIMEOUT_S, Question
from libintercom.endpoint import CONNECT_TIMEOUT_S, dial_nonblocking
from libintercom.errors import Busy, NotRegistered, NotRunning
from libintercom.inbound import ConnectionEnded
from libintercom.link import Link
from libintercom.member import Member, is_passing, retry_pauses_s
from libintercom.wire import reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable
    from typing import Any, Self, TypeVar, Unpack

    from libintercom.calls import Call, Exchange
    from libintercom.drafts import SendOptions
    from libintercom.flows import Flow
    from libintercom.inbound import Inbound, WakeAsked
    from libintercom.outcomes import Answered, LateReply, Listing, Outcome
    from libintercom.paths import Places
    from libintercom.profile import Profile
    from libintercom.sending import Timeouts
    from libintercom.wire.answers import DeadLetters
    from libintercom.wire.record import Record

    T = TypeVar("T")

# How often a full backlog is asked again: the broker empties it in one turn of its loop.
_DIAL_AGAIN_S = 0.01


class AsyncClient(Member):
    """A session at the broker, for one event loop. Calls may run side by side; one ask at a time.

    Use it in an ``async with`` block, or call ``disconnect``. Failures of the connection raise ``IntercomError``s
    from ``connect``, ``list_sessions`` and the like; ``send``, ``ask`` and ``reply`` tell theirs by their outcome.
    """

    _connection: _Connection | None = None
    # Made on first use: on Python 3.9 a lock belongs to the loop it was made under.
    _gate: asyncio.Lock | None = None

    @classmethod
    async def join(
        cls,
        profile: Profile,
        *,
        spawn: bool = True,
        places: Places | None = None,
        timeouts: Timeouts | None = None,
    ) -> Self:
        """A connected client; with ``spawn`` a broker is started where none runs and the start policy allows it.

        Raises: as ``connect``, and what ``libintercom.starting.ensure_broker`` raises.
        """
        client = cls(profile, places=places, timeouts=timeouts)
        client._may_start = spawn
        await client.connect()
        return client

    async def connect(self) -> str:
        """Join; returns the session's ID. A connection that breaks off unanswered is tried again a few times.

        Raises:
            NotRunning, NotPermitted, ForeignOwner, Busy, Unreachable: no connection.
            NotRegistered: no registration on it.
            InvalidProfile: this program's description of itself cannot be registered.
        """
        if self._gate is None:
            self._gate = asyncio.Lock()
        # Two tasks that find the connection gone join once.
        async with self._gate:
            return self.session_id if self.is_connected else await self._connect()

    async def register(self, profile: Profile | None = None) -> str:
        """Join again on the same connection after ``unregister``, with a changed profile if one is given."""
        if profile is not None:
            self._exchange.profile = profile
        return await self._run(flows.register(self._exchange, self._timeouts.register_s))

    async def list_sessions(self) -> Listing:
        """The sessions this one may see. Raises Disconnected or TimedOut."""
        return await self._run(flows.list_sessions(self._exchange, self._timeouts.list_s))

    async def send(self, to: str, text: str | None = None, **options: Unpack[SendOptions]) -> Outcome:
        """Send one message; the outcome says what is known of it, refusals included."""
        return await self._run(sending.send(self._exchange, to, text, options, self._timeouts))

    async def ask(
        self,
        to: str,
        text: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        on_outcome: Callable[[Outcome], object] | None = None,
        keep_reply_s: float | None = None,
        **options: Unpack[SendOptions],
    ) -> Answered:
        """Ask and wait for the reply. ``on_outcome`` hears at once how the question itself fared.

        With ``keep_reply_s`` a reply that comes later is kept so long: see ``asking.Question``.

        A cancelled task retires the question and stays cancelled; ``cancel_ask`` ends the wait with a result.
        """
        question = Question(to, text, timeout_s, options, on_outcome, keep_reply_s)
        return await self._run(asking.ask(self._exchange, question, self._timeouts))

    async def reply(
        self, which: Inbound | str | None, text: str, to: str = "", **options: Unpack[SendOptions]
    ) -> Outcome:
        """Answer a question: the given one (or its message ID), the one from ``to``, else the active or only one."""
        return await self._run(sending.reply(self._exchange, which, text, to, options, self._timeouts))

    async def presence(self, **changes: Any) -> None:
        """Change what others see of this session: see ``flows.publish_presence``."""
        flows.publish_presence(self._exchange, changes)
        self._flush()

    async def cancel_ask(self, message_id: str) -> None:
        """Stop waiting for a reply (see ``asking.cancel_ask``)."""
        asking.cancel_ask(self._exchange, message_id)
        self._flush()

    async def health(self) -> bool:
        """True once the broker answered. Raises Unsupported, Disconnected or TimedOut."""
        return await self._run(flows.check_health(self._exchange, self._timeouts.list_s))

    async def stats(self) -> dict[str, Any]:
        """``{"counters": …, "gauges": …}``. Raises as ``health``."""
        return await self._run(flows.read_stats(self._exchange, self._timeouts.list_s))

    async def dead_letters(self, since_ms: float | None = None) -> DeadLetters:
        """This session's messages that could not arrive. Raises as ``health``."""
        return await self._run(flows.list_dead_letters(self._exchange, since_ms, self._timeouts.list_s))

    async def park(self, child_id: str, *, row: dict[str, Any] | None = None, run_id: str | None = None) -> None:
        """Say that a child of this main goes away and will be back: see ``parking.park``."""
        await self._run(parking.park(self._exchange, child_id, row, run_id, self._timeouts.list_s))

    async def unpark(self, child_id: str, *, discard: bool = False) -> int:
        """End a child's parking; how many waiting messages were given up (``discard``). Raises as ``park``."""
        return await self._run(
            parking.unpark(self._exchange, child_id, discard=discard, timeout_s=self._timeouts.list_s)
        )

    async def answer_wake(self, asked: WakeAsked, *, failure: str | None = None) -> None:
        """Say that waking a child was started, or with ``failure`` why it was not."""
        parking.answer_wake(self._exchange, asked, failure=failure)
        self._flush()

    async def fetch_reply(self, message_id: str, token: str) -> LateReply:
        """What became of an ask with ``keep_reply_s``; any session that has the token may look."""
        return await self._run(parking.fetch_reply(self._exchange, message_id, token, self._timeouts.list_s))

    async def ack_reply(self, message_id: str, token: str) -> None:
        """A fetched reply is where it belongs: the broker may forget it."""
        parking.ack_reply(self._exchange, message_id, token)
        self._flush()

    async def last(
        self, to: str, entry_id: str | None = None, offset: int = 0, limit: int = reads.MAX_PAGE_UNITS
    ) -> reads.Page:
        """A page of a session's last completed response, which wakes nobody. Raises as ``reading.read_last``."""
        return await self._run(reading.read_last(self._exchange, to, (entry_id, offset, limit), self._timeouts.list_s))

    async def receipt(self, to: str, root_session_id: str, message_id: str) -> dict[str, Any]:
        """What a session's journal observed of one message (wire.md 9.4). Raises as ``reading.read_receipt``."""
        about = (root_session_id, message_id)
        return await self._run(reading.read_receipt(self._exchange, to, about, self._timeouts.list_s))

    async def answer_read(self, token: str, answer: reading.Answerable) -> bool:
        """Answer a ``ReadAsked``; False when nobody waits for it here. Raises as ``reading.answer_read``."""
        is_said = reading.answer_read(self._exchange, token, answer)
        self._flush()
        return is_said

    async def events(self, timeout_s: float | None = None) -> AsyncIterator[Record]:
        """What arrives, as the events of ``libintercom.inbound``; ``ConnectionEnded`` at last.

        Ends behind ``ConnectionEnded``, or when nothing came for ``timeout_s`` seconds. For one consumer at a time.
        """
        while True:
            event = await self._next_event(timeout_s)
            if event is None:
                return
            yield event
            if isinstance(event, ConnectionEnded):
                return

    async def unregister(self) -> None:
        """Leave, and keep the connection for ``register``."""
        flows.unregister(self._exchange)
        self._flush()

    async def disconnect(self) -> None:
        """Leave and close, in order: say so, half-close, wait up to two seconds for the broker to close."""
        connection = self._connection
        if connection is not None:
            flows.unregister(self._exchange)
            connection.half_close()
            try:
                await self._run(flows.await_end(self._exchange))
            finally:
                connection.close("this program disconnected")

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.disconnect()

    # ------------------------------------------------------------------ connecting

    async def _connect(self) -> str:
        for pause_s in retry_pauses_s():
            try:
                return await self._connect_once()
            except (NotRegistered, NotRunning) as error:
                if not is_passing(error, may_start=self._may_start):
                    raise
            await asyncio.sleep(pause_s)
        return await self._connect_once()

    async def _connect_once(self) -> str:
        opened = await self._dial()
        if self._connection is not None:
            # One that stayed open behind ``unregister`` would be nobody's.
            self._connection.close("this program connects again")
        connection = self._connection = _Connection(opened, self._begin_exchange())
        try:
            return await self._run(flows.register(self._exchange, self._timeouts.register_s))
        except BaseException:
            connection.close("not registered")
            raise

    async def _dial(self) -> socket.socket:
        path = self._find_path()
        try:
            return await _dial_patiently(path)
        except NotRunning:
            if not self._may_start:
                raise
        await asyncio.get_running_loop().run_in_executor(None, self._start_broker)
        return await _dial_patiently(path)

    # ------------------------------------------------------------------ waiting

    async def _run(self, flow: Flow[T]) -> T:
        """Go through a flow's steps, waiting for each call."""
        try:
            call, timeout_s = next(flow)
            while True:
                call, timeout_s = flow.send(await self._wait(call, timeout_s))
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            # Cancelled half-way: the flow says what has to be said, and that still leaves.
            flow.close()
            self._flush()

    async def _wait(self, call: Call, timeout_s: float) -> float:
        self._flush()
        if call.is_settled or self._connection is None or self._connection.is_over:
            return 0.0
        started = time.monotonic()
        await self._connection.wait_for(call, timeout_s)
        return time.monotonic() - started

    async def _next_event(self, timeout_s: float | None) -> Record | None:
        mailroom = self._exchange.mailroom
        if not len(mailroom) and self._connection is not None and not self._connection.is_over:
            await self._connection.wait_for_event(timeout_s)
        event = mailroom.take()
        # There is room again: reading may go on.
        self._flush()
        return event

    def _flush(self) -> None:
        if self._connection is not None:
            self._connection.balance()


class _Connection:
    """A link that the running loop watches: bytes both ways, and the pauses of each way."""

    def __init__(self, opened: socket.socket, exchange: Exchange) -> None:
        self._exchange = exchange
        self._link = Link(opened, exchange)
        self._loop = asyncio.get_running_loop()
        self._is_reading = self._is_writing = self._is_closed = False
        self._arrival: asyncio.Future[None] | None = None
        self.balance()

    @property
    def is_over(self) -> bool:
        return self._link.is_over

    def balance(self) -> None:
        """Hand over output, watch for what can go on, wake who waits for an event, close what is over."""
        if self._is_closed:
            return
        self._link.write()
        self._watch(reading=self._link.wants_read, writing=self._link.wants_write)
        if self._arrival is not None and len(self._exchange.mailroom):
            _finish(self._arrival)
        if self.is_over:
            self._is_closed = True
            self._link.close()

    def half_close(self) -> None:
        """Hand over what was said, and nothing after it."""
        self._link.half_close()
        self.balance()

    def close(self, reason: str) -> None:
        self._exchange.end(reason)
        self.balance()

    async def wait_for(self, call: Call, timeout_s: float) -> None:
        """Return once the call is settled, or after so many seconds."""
        settled = self._loop.create_future()
        call.on_settled = lambda: _finish(settled)
        timer = self._loop.call_later(timeout_s, _finish, settled)
        try:
            await settled
        finally:
            timer.cancel()
            call.on_settled = None

    async def wait_for_event(self, timeout_s: float | None) -> None:
        """Return once an event waits (the end of the connection is one), or after so many seconds."""
        arrival = self._arrival = self._loop.create_future()
        timer = None if timeout_s is None else self._loop.call_later(timeout_s, _finish, arrival)
        try:
            await arrival
        finally:
            self._arrival = None
            if timer is not None:
                timer.cancel()

    def _read(self) -> None:
        self._link.read()
        self.balance()

    def _watch(self, *, reading: bool, writing: bool) -> None:
        descriptor = self._link.fileno()
        if reading and not self._is_reading:
            self._loop.add_reader(descriptor, self._read)
        elif self._is_reading and not reading:
            self._loop.remove_reader(descriptor)
        if writing and not self._is_writing:
            self._loop.add_writer(descriptor, self.balance)
        elif self._is_writing and not writing:
            self._loop.remove_writer(descriptor)
        self._is_reading, self._is_writing = reading, writing


def _finish(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _dial_patiently(path: str) -> socket.socket:
    """Dial without blocking the loop; a full backlog is asked again for as long as the blocking dialer would."""
    end = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            return dial_nonblocking(path)
        except Busy:
            if time.monotonic() >= end:
                raise
        await asyncio.sleep(_DIAL_AGAIN_S)
