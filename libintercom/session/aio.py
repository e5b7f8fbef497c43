"""A session's end for one event loop: one identity, durable, reconnecting; the asyncio twin of ``Session``.

Owns what a program may say and learn. Does not own the order of beginning and ending (``life``), decisions (``inbox``),
carrying them out (``engine``), what arrives (``reception``), staying connected (``reconnecting``) nor the wire
(``libintercom.aio``).

What reaches the session is on disk before its host hears of it. Without a journal it runs all the same, and
``journal_note`` says why it has none.
"""

from __future__ import annotations

import asyncio

from libintercom.asking import DEFAULT_TIMEOUT_S
from libintercom.identity import make_uuid
from libintercom.session import happenings
from libintercom.session.errors import NotLive, ReplyWithheld
from libintercom.session.host import QueueHost
from libintercom.session.life import Life
from libintercom.session.options import Chosen
from libintercom.session.replying import reply
from libintercom.session.views import pending_views
from libintercom.wire.reads import MAX_PAGE_UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from typing import Any, Self, Unpack

    from libintercom.drafts import SendOptions
    from libintercom.inbound import Inbound
    from libintercom.outcomes import Answered, Listing, Outcome
    from libintercom.profile import Profile
    from libintercom.session.feed import Arrival, Feed
    from libintercom.session.options import JoinOptions
    from libintercom.wire.reads import Page
    from libintercom.wire.record import Record


class AsyncSession(Life):
    """A joined session. Use it in an ``async with`` block, or call ``leave``. For the loop that joined it only.

    ``journal_note``: why it runs without a journal, or that a damaged one was set aside; ``""`` when all is well.
    """

    # ------------------------------------------------------------------ joining and leaving

    @classmethod
    async def join(cls, profile: Profile, *, native_id: str, **options: Unpack[JoinOptions]) -> Self:
        """Open the journal, take up what an earlier run left, and join. What may be chosen: ``options.JoinOptions``.

        ``profile`` says name, directory, model and lineage; peer ID and incarnation follow from ``native_id`` and this
        start. With the default host, iterate over ``inbound``.

        Raises: what ``AsyncClient.join`` raises; nothing is left behind then.
        """
        session = cls(profile, native_id, Chosen(options))
        await session._start(profile.incarnation or make_uuid())
        return session

    async def leave(self) -> None:
        """Leave the broker, finish what was admitted, let go of the journal. Nothing when it has left."""
        self.check_owner()
        # To its end, though whoever waits for it is interrupted: half a leaving helps nobody.
        await asyncio.shield(asyncio.ensure_future(self._leave()))

    async def replace_context(self, native_id: str, incarnation: str) -> None:
        """Become another native session, or the same in another incarnation (reload): leave as one, join as the other.

        What was admitted for the old one stays in its journal. The application guard is withdrawn.
        """
        self.check_owner()
        async with self._changing:
            await self._stop()
            self.native_id = native_id
            await self._start(incarnation)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.leave()

    # ------------------------------------------------------------------ saying

    async def send(self, to: str, text: str | None = None, **options: Unpack[SendOptions]) -> Outcome:
        """Send one message; the outcome says what is known of it (``AsyncClient.send``). It is never sent again."""
        client, reception = self._joined("send"), self._receiving("send")
        reception.note_activity()
        return await client.send(to, text, **options)

    async def ask(
        self,
        to: str,
        text: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        on_outcome: Callable[[Outcome], object] | None = None,
        **options: Unpack[SendOptions],
    ) -> Answered:
        """Ask and wait for the reply (``AsyncClient.ask``); it is on record before it is returned.

        Raises ReplyWithheld: a reply came and could not be recorded, or is a repetition.
        """
        client, tenure = self._joined("ask"), self._working("ask")
        self._receiving("ask").note_activity()
        answered = await client.ask(to, text, timeout_s=timeout_s, on_outcome=on_outcome, **options)
        if answered.reply is not None:
            reason = await tenure.engine.record_reply(answered.reply)
            if reason:
                raise ReplyWithheld(answered.outcome.message_id, answered.reply, reason)
        return answered

    async def reply(
        self, which: Inbound | str | None, text: str, to: str = "", **options: Unpack[SendOptions]
    ) -> Outcome:
        """Answer a question: the given one (or its message ID), the one from ``to``, else the active or only one.

        That a reply leaves, and that it settled the question, is on record when this returns.
        """
        client, tenure = self._joined("reply"), self._working("reply")
        self._receiving("reply").note_activity()
        return await reply(client, tenure, which, text, to, options)

    async def presence(self, **changes: Any) -> None:
        """Change what others see: ``name``, ``status``, ``model``; ``accepts_asks`` above what the host says (or None).

        How many questions wait, and when this session last spoke, is kept true by itself.
        """
        client, reception = self._joined("change its presence"), self._receiving("change its presence")
        if "accepts_asks" in changes:
            reception.decide_asks(changes.pop("accepts_asks"))
        if changes:
            await client.presence(**changes)

    def set_application_guard(self, target: dict[str, Any], revision: str | None) -> None:
        """A companion's consent for guarded messages to exactly this ``target``, or None to withdraw it.

        ``target``: ``rootSessionId``, ``peerId`` and ``incarnation`` of this session now. It counts here at once; the
        broker hears of it in the next turn of the loop. Raises ``bus.StaleTarget``.
        """
        self._receiving("set an application guard").set_application_guard(target, revision)

    # ------------------------------------------------------------------ learning

    async def list_sessions(self) -> Listing:
        """The sessions this one may see. Raises Disconnected or TimedOut."""
        return await self._joined("list sessions").list_sessions()

    async def last(
        self, to: str, entry_id: str | None = None, offset: int = 0, limit: int = MAX_PAGE_UNITS
    ) -> Page:
        """A page of another session's last response, without waking it (``AsyncClient.last``)."""
        return await self._joined("read").last(to, entry_id, offset, limit)

    async def receipt(self, to: str, root_session_id: str, message_id: str) -> dict[str, Any]:
        """What another session's journal observed of a message (``AsyncClient.receipt``)."""
        return await self._joined("read").receipt(to, root_session_id, message_id)

    def pending(self) -> list[dict[str, Any]]:
        """Questions that wait for a reply, then messages that nobody knows whether the host has (``views``)."""
        return pending_views(self._working("list what waits").inbox)

    # ------------------------------------------------------------------ the host's side

    async def inbound(self, timeout_s: float | None = None) -> AsyncIterator[Arrival]:
        """Messages for a program with a ``QueueHost``; asking for the next one says that the last was consumed.

        Ends when the session has left, or when nothing came for ``timeout_s`` seconds. For one reader at a time.
        Raises JournalStopped: what comes next cannot be recorded as given.
        """
        while True:
            arrival = await self.next_inbound(timeout_s)
            if arrival is None:
                return
            yield arrival

    async def next_inbound(self, timeout_s: float | None = None) -> Arrival | None:
        """One step of ``inbound``."""
        arrival = await self.give_inbound(timeout_s)
        if arrival is not None:
            self.note_received(arrival.message.id)
        return arrival

    async def give_inbound(self, timeout_s: float | None = None) -> Arrival | None:
        """``next_inbound`` for a reader that may lose what it is given: the same again until ``note_received``."""
        return await self._feeding().take(timeout_s)

    def note_received(self, message_id: str) -> None:
        """A message of ``give_inbound`` is with its reader. May be called from any thread."""
        if self._tenure is not None and self._tenure.feed is not None:
            self._tenure.feed.note_received(message_id)

    def consumed(self, message_ids: Iterable[str]) -> None:
        """The host's reader took these in."""
        ids = tuple(message_ids)
        tenure = self._working("consume")
        tenure.engine.happen(happenings.InputConsumed(message_ids=ids))
        if tenure.feed is not None:
            tenure.feed.finish(ids)

    def placed(self, entries: dict[str, str]) -> None:
        """The host has these now: message ID to its own entry's ID."""
        self._working("place").engine.happen(happenings.HostPlaced(placements=dict(entries)))

    def turn_started(self) -> None:
        self._working("begin a turn").engine.happen(happenings.TurnStarted())

    def turn_ended(self, ok: bool, consumed_ids: Iterable[str] = ()) -> None:
        """The host is idle; ``consumed_ids``: what this turn took in and was not told by ``consumed``."""
        self._working("end a turn").engine.happen(happenings.TurnEnded(is_ok=ok, consumed_ids=tuple(consumed_ids)))

    def record_response(self, text: str) -> str:
        """A program with a ``QueueHost`` completed a response that others may read; the ID of its entry."""
        if not isinstance(self.host, QueueHost):
            raise NotLive("record a response", "has a host of its own, which tells its responses itself")
        entry_id = make_uuid()
        self.host.record_response(entry_id, text)
        return entry_id

    async def place(self, message_id: str) -> None:
        """Place an uncertain message, be it for the second time. Returns once that is on record."""
        await self._decide(happenings.PlaceChosen(message_id=message_id))

    async def discard(self, message_id: str, reason: str = "discarded") -> None:
        """Never place an uncertain or still staged message. Returns once that is on record."""
        await self._decide(happenings.DiscardChosen(message_id=message_id, reason=reason))

    async def _decide(self, chosen: Record) -> None:
        engine = self._working("decide about a message").engine
        engine.happen(chosen)
        await engine.flush()

    def _feeding(self) -> Feed:
        feed = self._working("read").feed
        if feed is None:
            raise NotLive("iterate", "has a host of its own, which gets its messages")
        return feed
