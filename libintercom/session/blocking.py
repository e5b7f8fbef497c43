"""A session's end for programs without an event loop: the blocking twin of ``AsyncSession``, with the same names.

Owns running that one on a loop in a thread of its own. Does not own anything that it says or does (``aio``).

Any thread may call, several at once. Callbacks (``on_outcome``, ``on_background_error``, ``on_notice``, a host's
methods, observers of a bus) are called on the loop's thread and must not call back into the session. A program that
ends without ``leave`` leaves all the same, when its main thread has ended.
"""

from __future__ import annotations

import asyncio

from libintercom.asking import DEFAULT_TIMEOUT_S
from libintercom.session.aio import AsyncSession
from libintercom.session.looping import LoopThread
from libintercom.wire.reads import MAX_PAGE_UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self, TypeVar, Unpack

    from libintercom.drafts import SendOptions
    from libintercom.inbound import Inbound
    from libintercom.outcomes import Answered, Listing, Outcome
    from libintercom.profile import Profile
    from libintercom.session.feed import Arrival
    from libintercom.session.host import Host
    from libintercom.session.options import JoinOptions
    from libintercom.session.states import Context
    from libintercom.wire.messages import BrokerHello
    from libintercom.wire.reads import Page

    T = TypeVar("T")


class Session:
    """A joined session. Use it in a ``with`` block, or call ``leave``. Its methods are those of ``AsyncSession``."""

    def __init__(self, session: AsyncSession, thread: LoopThread) -> None:
        """For ``join``."""
        self._session, self._thread = session, thread

    @classmethod
    def join(cls, profile: Profile, *, native_id: str, **options: Unpack[JoinOptions]) -> Self:
        """Join as ``AsyncSession.join`` does, and raise what it raises."""
        abandoned = _Abandoned()
        thread = LoopThread(abandoned.leave)
        try:
            session = thread.call(AsyncSession.join(profile, native_id=native_id, **options))
        except BaseException:
            thread.stop()
            raise
        abandoned.session, abandoned.thread = session, thread
        return cls(session, thread)

    def leave(self) -> None:
        """Leave the broker, finish what was admitted, let go of the journal. Nothing when it has left."""
        self._thread.check_owner()
        if self._thread.is_running:
            self._thread.finish(self._session.leave())

    def replace_context(self, native_id: str, incarnation: str) -> None:
        """Become another native session, or the same in another incarnation."""
        self._thread.call(self._session.replace_context(native_id, incarnation))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.leave()

    # ------------------------------------------------------------------ what it is

    @property
    def native_id(self) -> str:
        return self._session.native_id

    @property
    def host(self) -> Host:
        return self._session.host

    @property
    def session_id(self) -> str:
        """The peer ID that the broker assigned; ``""`` after leaving."""
        return self._session.session_id

    @property
    def is_connected(self) -> bool:
        return self._session.is_connected

    @property
    def broker(self) -> BrokerHello | None:
        """Who answers; None: an old broker that does not say, or nobody."""
        return self._session.broker

    @property
    def state(self) -> Context:
        """``Inactive``, ``Live``, or ``Invalidated`` (``states``)."""
        return self._session.state

    @property
    def journal_note(self) -> str:
        """Why it runs without a journal, or that a damaged one was set aside; ``""`` when all is well."""
        return self._session.journal_note

    @property
    def profile(self) -> Profile:
        return self._session.profile

    def check_owner(self) -> None:
        """Raises Forked in a program forked from the one that joined."""
        self._thread.check_owner()

    # ------------------------------------------------------------------ saying and learning

    def send(self, to: str, text: str | None = None, **options: Unpack[SendOptions]) -> Outcome:
        """Send one message; the outcome says what is known of it."""
        return self._thread.call(self._session.send(to, text, **options))

    def ask(
        self,
        to: str,
        text: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        on_outcome: Callable[[Outcome], object] | None = None,
        **options: Unpack[SendOptions],
    ) -> Answered:
        """Ask and wait for the reply. An interrupt retires the question."""
        return self._thread.call(
            self._session.ask(to, text, timeout_s=timeout_s, on_outcome=on_outcome, **options)
        )

    def reply(
        self, which: Inbound | str | None, text: str, to: str = "", **options: Unpack[SendOptions]
    ) -> Outcome:
        """Answer a question: the given one (or its message ID), the one from ``to``, else the active or only one."""
        return self._thread.call(self._session.reply(which, text, to, **options))

    def presence(self, **changes: Any) -> None:
        """Change what others see."""
        self._thread.call(self._session.presence(**changes))

    def set_application_guard(self, target: dict[str, Any], revision: str | None) -> None:
        """A companion's consent for guarded messages, or None to withdraw it."""
        self._now(lambda: self._session.set_application_guard(target, revision))

    def list_sessions(self) -> Listing:
        return self._thread.call(self._session.list_sessions())

    def last(self, to: str, entry_id: str | None = None, offset: int = 0, limit: int = MAX_PAGE_UNITS) -> Page:
        """A page of another session's last response, without waking it."""
        return self._thread.call(self._session.last(to, entry_id, offset, limit))

    def receipt(self, to: str, root_session_id: str, message_id: str) -> dict[str, Any]:
        """What another session's journal observed of a message."""
        return self._thread.call(self._session.receipt(to, root_session_id, message_id))

    def pending(self) -> list[dict[str, Any]]:
        """Questions that wait for a reply, then messages of which nobody knows whether the host has them."""
        return self._now(self._session.pending)

    # ------------------------------------------------------------------ the host's side

    def inbound(self, timeout_s: float | None = None) -> Iterator[Arrival]:
        """Messages for a program with a ``QueueHost``; asking for the next one says that the last was consumed."""
        while True:
            arrival = self.next_inbound(timeout_s)
            if arrival is None:
                return
            yield arrival

    def next_inbound(self, timeout_s: float | None = None) -> Arrival | None:
        """One step of ``inbound``. What an interrupted step did not hand out comes with the next one."""
        arrival = self.give_inbound(timeout_s)
        if arrival is not None:
            self.note_received(arrival.message.id)
        return arrival

    def give_inbound(self, timeout_s: float | None = None) -> Arrival | None:
        """``next_inbound`` for a reader that may lose what it is given: the same again until ``note_received``."""
        return self._thread.call(self._session.give_inbound(timeout_s))

    def note_received(self, message_id: str) -> None:
        """A message of ``give_inbound`` is with its reader."""
        self._session.note_received(message_id)

    def consumed(self, message_ids: Iterable[str]) -> None:
        """The host's reader took these in."""
        self._now(lambda: self._session.consumed(message_ids))

    def placed(self, entries: dict[str, str]) -> None:
        """The host has these now: message ID to its own entry's ID."""
        self._now(lambda: self._session.placed(entries))

    def returned(self, message_ids: Iterable[str], reason: str) -> None:
        """The host took these in and certainly does not have them now."""
        self._now(lambda: self._session.returned(message_ids, reason))

    def waiting(self) -> tuple[str, ...]:
        """The IDs of messages on record that the host was not seen to have, oldest first."""
        return self._now(self._session.waiting)

    def settle(self) -> None:
        """Wait until everything that was begun so far is on record, or could not be."""
        self._thread.call(self._session.settle())

    def turn_started(self) -> None:
        self._now(self._session.turn_started)

    def turn_ended(self, ok: bool, consumed_ids: Iterable[str] = ()) -> None:
        """The host is idle."""
        self._now(lambda: self._session.turn_ended(ok, consumed_ids))

    def record_response(self, text: str) -> str:
        """A program with a ``QueueHost`` completed a response that others may read; the ID of its entry."""
        return self._now(lambda: self._session.record_response(text))

    def place(self, message_id: str) -> None:
        """Place an uncertain message, be it for the second time."""
        self._thread.call(self._session.place(message_id))

    def discard(self, message_id: str, reason: str = "discarded") -> None:
        """Never place an uncertain or still staged message."""
        self._thread.call(self._session.discard(message_id, reason))

    def _now(self, call: Callable[[], T]) -> T:
        """The result of a call that does not wait, on the loop."""

        async def on_loop() -> T:
            return call()

        return self._thread.call(on_loop())


class _Abandoned:
    """What the loop does when the program's main thread ended and nobody had left."""

    def __init__(self) -> None:
        self.session: AsyncSession | None = None
        self.thread: LoopThread | None = None

    def leave(self) -> None:
        if self.session is None or self.thread is None:
            # Still joining, or joining failed: there is nobody left who could use it.
            asyncio.get_running_loop().stop()
            return
        leaving = asyncio.ensure_future(self.session.leave())
        leaving.add_done_callback(lambda _leaving: asyncio.get_running_loop().stop())
