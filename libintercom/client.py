"""The blocking client: one connection, used by one thread.

Owns waiting. What is said and what it means is ``flows``, ``sending`` and ``asking``; the
asyncio client (``aio``) has the same methods.
"""

from __future__ import annotations

import select
import time

from libintercom import asking, flows, parking, reading, sending
from libintercom.asking import DEFAULT_TIMEOUT_S, Question
from libintercom.endpoint import dial
from libintercom.errors import NotRegistered, NotRunning
from libintercom.inbound import ConnectionEnded
from libintercom.link import Link
from libintercom.member import Member, is_passing, retry_pauses_s
from libintercom.wire import reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from typing import Any, Self, TypeVar, Unpack

    from libintercom.calls import Call
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

# The most that one turn waits, poll(2) counting milliseconds in an int; the loop around it goes on.
_LONG_S = 3_600.0


class Client(Member):
    """A session at the broker. Reads the socket only inside its own calls; nothing arrives between them.

    Use it in a ``with`` block, or call ``disconnect``. Failures of the connection raise ``IntercomError``s from
    ``connect``, ``list_sessions`` and the like; ``send``, ``ask`` and ``reply`` tell theirs by their outcome.
    """

    _link: Link | None = None

    @classmethod
    def join(
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
        client.connect()
        return client

    def connect(self) -> str:
        """Join; returns the session's ID. A connection that breaks off unanswered is tried again a few times.

        Raises:
            NotRunning, NotPermitted, ForeignOwner, Busy, Unreachable: no connection.
            NotRegistered: no registration on it.
            InvalidProfile: this program's description of itself cannot be registered.
        """
        if self.is_connected:
            return self.session_id
        for pause_s in retry_pauses_s():
            try:
                return self._connect_once()
            except (NotRegistered, NotRunning) as error:
                if not is_passing(error, may_start=self._may_start):
                    raise
            time.sleep(pause_s)
        return self._connect_once()

    def register(self, profile: Profile | None = None) -> str:
        """Join again on the same connection after ``unregister``, with a changed profile if one is given."""
        if profile is not None:
            self._exchange.profile = profile
        return self._run(flows.register(self._exchange, self._timeouts.register_s))

    def list_sessions(self) -> Listing:
        """The sessions this one may see. Raises Disconnected or TimedOut."""
        return self._run(flows.list_sessions(self._exchange, self._timeouts.list_s))

    def send(self, to: str, text: str | None = None, **options: Unpack[SendOptions]) -> Outcome:
        """Send one message; the outcome says what is known of it, refusals included."""
        return self._run(sending.send(self._exchange, to, text, options, self._timeouts))

    def ask(
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

        An interrupted wait (KeyboardInterrupt) retires the question and goes on to interrupt.
        """
        question = Question(to, text, timeout_s, options, on_outcome, keep_reply_s)
        return self._run(asking.ask(self._exchange, question, self._timeouts))

    def reply(self, which: Inbound | str | None, text: str, to: str = "", **options: Unpack[SendOptions]) -> Outcome:
        """Answer a question: the given one (or its message ID), the one from ``to``, else the active or only one."""
        return self._run(sending.reply(self._exchange, which, text, to, options, self._timeouts))

    def presence(self, **changes: Any) -> None:
        """Change what others see of this session: see ``flows.publish_presence``."""
        flows.publish_presence(self._exchange, changes)
        self._flush()

    def cancel_ask(self, message_id: str) -> None:
        """Stop waiting for a reply (see ``asking.cancel_ask``)."""
        asking.cancel_ask(self._exchange, message_id)
        self._flush()

    def health(self) -> bool:
        """True once the broker answered. Raises Unsupported, Disconnected or TimedOut."""
        return self._run(flows.check_health(self._exchange, self._timeouts.list_s))

    def stats(self) -> dict[str, Any]:
        """``{"counters": …, "gauges": …}``. Raises as ``health``."""
        return self._run(flows.read_stats(self._exchange, self._timeouts.list_s))

    def dead_letters(self, since_ms: float | None = None) -> DeadLetters:
        """This session's messages that could not arrive. Raises as ``health``."""
        return self._run(flows.list_dead_letters(self._exchange, since_ms, self._timeouts.list_s))

    def park(self, child_id: str, *, row: dict[str, Any] | None = None, run_id: str | None = None) -> None:
        """Say that a child of this main goes away and will be back: see ``parking.park``."""
        self._run(parking.park(self._exchange, child_id, row, run_id, self._timeouts.list_s))

    def unpark(self, child_id: str, *, discard: bool = False) -> int:
        """End a child's parking; how many waiting messages were given up (``discard``). Raises as ``park``."""
        return self._run(parking.unpark(self._exchange, child_id, discard=discard, timeout_s=self._timeouts.list_s))

    def answer_wake(self, asked: WakeAsked, *, failure: str | None = None) -> None:
        """Say that waking a child was started, or with ``failure`` why it was not."""
        parking.answer_wake(self._exchange, asked, failure=failure)
        self._flush()

    def fetch_reply(self, message_id: str, token: str) -> LateReply:
        """What became of an ask with ``keep_reply_s``; any session that has the token may look."""
        return self._run(parking.fetch_reply(self._exchange, message_id, token, self._timeouts.list_s))

    def ack_reply(self, message_id: str, token: str) -> None:
        """A fetched reply is where it belongs: the broker may forget it."""
        parking.ack_reply(self._exchange, message_id, token)
        self._flush()

    def last(
        self, to: str, entry_id: str | None = None, offset: int = 0, limit: int = reads.MAX_PAGE_UNITS
    ) -> reads.Page:
        """A page of a session's last completed response, which wakes nobody. Raises as ``reading.read_last``."""
        return self._run(reading.read_last(self._exchange, to, (entry_id, offset, limit), self._timeouts.list_s))

    def receipt(self, to: str, root_session_id: str, message_id: str) -> dict[str, Any]:
        """What a session's journal observed of one message (wire.md 9.4). Raises as ``reading.read_receipt``."""
        about = (root_session_id, message_id)
        return self._run(reading.read_receipt(self._exchange, to, about, self._timeouts.list_s))

    def answer_read(self, token: str, answer: reading.Answerable) -> bool:
        """Answer a ``ReadAsked``; False when nobody waits for it here. Raises as ``reading.answer_read``."""
        is_said = reading.answer_read(self._exchange, token, answer)
        self._flush()
        return is_said

    def events(self, timeout_s: float | None = None) -> Iterator[Record]:
        """What arrives, as the events of ``libintercom.inbound``; ``ConnectionEnded`` at last.

        Ends behind ``ConnectionEnded``, or when nothing came for ``timeout_s`` seconds.
        """
        while True:
            event = self._next_event(timeout_s)
            if event is None:
                return
            yield event
            if isinstance(event, ConnectionEnded):
                return

    def unregister(self) -> None:
        """Leave, and keep the connection for ``register``."""
        flows.unregister(self._exchange)
        self._flush()

    def disconnect(self) -> None:
        """Leave and close, in order: say so, half-close, wait up to two seconds for the broker to close."""
        if self._link is None:
            return
        flows.unregister(self._exchange)
        self._link.half_close()
        try:
            self._run(flows.await_end(self._exchange))
        finally:
            self._end_link("this program disconnected")

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.disconnect()

    # ------------------------------------------------------------------ connecting

    def _connect_once(self) -> str:
        opened = self._dial()
        # One that stayed open behind ``unregister`` would be nobody's.
        self._end_link("this program connects again")
        exchange = self._begin_exchange()
        self._link = Link(opened, exchange)
        try:
            return self._run(flows.register(exchange, self._timeouts.register_s))
        except BaseException:
            self._end_link("not registered")
            raise

    def _dial(self) -> socket.socket:
        path = self._find_path()
        try:
            return dial(path)
        except NotRunning:
            if not self._may_start:
                raise
        self._start_broker()
        return dial(path)

    # ------------------------------------------------------------------ waiting

    def _run(self, flow: Flow[T]) -> T:
        """Go through a flow's steps, waiting for each call."""
        try:
            call, timeout_s = next(flow)
            while True:
                call, timeout_s = flow.send(self._wait(call, timeout_s))
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            # Interrupted half-way: the flow says what has to be said, and that still leaves.
            flow.close()
            self._flush()

    def _wait(self, call: Call, timeout_s: float) -> float:
        started = time.monotonic()
        while not call.is_settled and self._link is not None and not self._link.is_over:
            left_s = started + timeout_s - time.monotonic()
            if left_s <= 0:
                break
            self._turn(self._link, left_s)
        return time.monotonic() - started

    def _next_event(self, timeout_s: float | None) -> Record | None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        has_looked = False
        while True:
            self._flush()
            event = self._exchange.mailroom.take()
            if event is not None or self._link is None:
                return event
            left_s = _LONG_S if deadline is None else max(0.0, deadline - time.monotonic())
            # Without any time it is still looked once: what the kernel holds has come.
            if has_looked and not left_s:
                return None
            self._turn(self._link, left_s)
            has_looked = True

    @staticmethod
    def _turn(link: Link, timeout_s: float) -> None:
        """Write what waits and read what is there; wait at most so long until one of them is possible."""
        link.write()
        if link.is_over:
            return
        poller = select.poll()
        wanted = (select.POLLIN if link.wants_read else 0) | (select.POLLOUT if link.wants_write else 0)
        poller.register(link, wanted)
        for _descriptor, ready in poller.poll(int(min(timeout_s, _LONG_S) * 1000) + 1):
            # A hang-up or an error is read even while reading pauses: little is left, and it tells the end.
            if ready & ~select.POLLOUT:
                link.read()

    def _flush(self) -> None:
        if self._link is not None:
            self._link.write()
            if self._link.is_over:
                self._end_link("")

    def _end_link(self, reason: str) -> None:
        self._exchange.end(reason)
        if self._link is not None:
            self._link.close()
            self._link = None
