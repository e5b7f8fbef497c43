"""A session's end for one event loop: joined under one identity, durable, reconnecting; the asyncio twin of ``Session``.

Owns the life of a session (join, replace, leave) and what a program may say and learn. Does not own decisions
(``inbox``), carrying them out (``tenure``, ``engine``), what arrives (``reception``), staying connected
(``reconnecting``) nor the wire (``libintercom.aio``).

What reaches the session is on disk before its host hears of it. Without a journal it runs all the same, and
``journal_note`` says why it has none.
"""

from __future__ import annotations

import asyncio
import os

from libintercom.aio import AsyncClient
from libintercom.asking import DEFAULT_TIMEOUT_S
from libintercom.drafts import choose_id
from libintercom.errors import NoPendingAsk
from libintercom.identity import make_uuid, peer_id
from libintercom.inbound import Inbound
from libintercom.member import now_ms
from libintercom.outcomes import NO_PENDING_ASK, UNKNOWN, not_sent
from libintercom.session import happenings, states
from libintercom.session.background import BackgroundErrors
from libintercom.session.errors import Forked, NotLive, ReplyWithheld
from libintercom.session.host import QueueHost
from libintercom.session.presenting import Presenting
from libintercom.session.reception import Reception
from libintercom.session.reconnecting import Line
from libintercom.session.tenure import Tenure
from libintercom.session.views import pending_views

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from typing import Any, Self, Unpack

    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Answered, Listing, Outcome
    from libintercom.paths import Places
    from libintercom.profile import Profile
    from libintercom.sending import Timeouts
    from libintercom.session.background import BackgroundError
    from libintercom.session.bus import Bus
    from libintercom.session.feed import Arrival, Feed
    from libintercom.session.host import Host
    from libintercom.session.journal import Journal
    from libintercom.session.states import Context
    from libintercom.wire.reads import NativeReceipt, Page
    from libintercom.wire.record import Record


class AsyncSession:
    """A joined session. Use it in an ``async with`` block, or call ``leave``. For the loop that joined it only.

    ``journal_note``: why it runs without a journal, or that a damaged one was set aside; ``""`` when all is well.
    """

    def __init__(
        self,
        profile: Profile,
        native_id: str,
        host: Host,
        *,
        client_options: dict[str, Any],
        journal: Journal | bool,
        bus: Bus | None,
        errors: BackgroundErrors,
        on_notice: Callable[[Record], object] | None,
    ) -> None:
        """For ``join``."""
        self.native_id = native_id
        self.host = host
        self._profile, self._client_options, self._journal = profile, client_options, journal
        self._bus, self._errors, self._on_notice = bus, errors, on_notice
        self._pid = os.getpid()
        self._state: Context = states.Inactive()
        self._changing = asyncio.Lock()
        self._client: AsyncClient | None = None
        self._tenure: Tenure | None = None
        self._reception: Reception | None = None
        self._line: Line | None = None

    # ------------------------------------------------------------------ joining and leaving

    @classmethod
    async def join(
        cls,
        profile: Profile,
        *,
        native_id: str,
        host: Host | None = None,
        spawn: bool = True,
        places: Places | None = None,
        timeouts: Timeouts | None = None,
        journal: Journal | bool = True,
        bus: Bus | None = None,
        on_background_error: Callable[[BackgroundError], object] | None = None,
        on_notice: Callable[[Record], object] | None = None,
    ) -> Self:
        """Open the journal, take up what an earlier run left, and join.

        ``host`` is by default a ``QueueHost``: iterate over ``inbound``. With ``spawn`` a broker is started, now and
        whenever it is missed, if the start policy allows it. ``bus``: answer companions on it. ``on_notice`` hears
        ``PeerLeft``, ``AskEnded`` and ``LetterDied``. The callbacks are called on the loop and must not raise.

        Raises: what ``AsyncClient.join`` raises; nothing is left behind then.
        """
        errors = BackgroundErrors(on_background_error, _find_agent_dir(places))
        options = {"spawn": spawn, "places": places, "timeouts": timeouts}
        session = cls(
            profile,
            native_id,
            QueueHost() if host is None else host,
            client_options=options,
            journal=journal,
            bus=bus,
            errors=errors,
            on_notice=on_notice,
        )
        await session._start(profile.incarnation or make_uuid())
        return session

    async def leave(self) -> None:
        """Leave the broker, finish what was admitted, let go of the journal. Nothing when it has left."""
        self._check_owner()
        # To its end, though whoever waits for it is interrupted: half a leaving helps nobody.
        await asyncio.shield(asyncio.ensure_future(self._leave()))

    async def replace_context(self, native_id: str, incarnation: str) -> None:
        """Become another native session, or the same in another incarnation (reload): leave as one, join as the other.

        What was admitted for the old one stays in its journal. The application guard is withdrawn.
        """
        self._check_owner()
        async with self._changing:
            await self._stop()
            self.native_id = native_id
            await self._start(incarnation)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.leave()

    # ------------------------------------------------------------------ what it is

    @property
    def session_id(self) -> str:
        """The peer ID that the broker assigned; ``""`` after leaving."""
        return "" if self._client is None else self._client.session_id

    @property
    def is_connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    @property
    def state(self) -> Context:
        """``Inactive``, ``Live`` with session and incarnation, or ``Invalidated`` while it cleans up (``states``)."""
        return self._state

    @property
    def journal_note(self) -> str:
        return "" if self._tenure is None else self._tenure.note

    @property
    def profile(self) -> Profile:
        """What this session says about itself."""
        return self._profile if self._client is None else self._client.profile

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
        reply_id = choose_id(options, make_uuid)
        try:
            ask = tenure.inbox.tracker.resolve(which.message.id if isinstance(which, Inbound) else which or "", to)
        except NoPendingAsk as error:
            return not_sent(reply_id, NO_PENDING_ASK, error.reason)
        refused = await tenure.engine.begin_reply(ask.message_id, reply_id)
        if refused:
            return not_sent(reply_id, NO_PENDING_ASK, refused)
        is_accepted = None
        try:
            sent: SendOptions = {**options, "message_id": reply_id, "reply_to": ask.message_id}
            outcome = await client.send(ask.sender_id, text, **sent)
            is_accepted = None if outcome.outcome == UNKNOWN else outcome.is_accepted
        finally:
            tenure.engine.end_reply(ask.message_id, reply_id, is_accepted=is_accepted)
        await tenure.engine.flush()
        return outcome

    async def presence(self, **changes: Any) -> None:
        """Change what others see: ``name``, ``status``, ``model``; ``accepts_asks`` above what the host says (or None).

        How many questions wait, and when this session last spoke, is kept true by itself.
        """
        client, reception = self._joined("change its presence"), self._receiving("change its presence")
        if "accepts_asks" in changes:
            reception.presenting.accepts_asks = changes.pop("accepts_asks")
            reception.presenting.note()
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
        self, to: str, entry_id: str | None = None, offset: int = 0, limit: int | None = None
    ) -> Page:
        """A page of another session's last response, without waking it (``AsyncClient.last``)."""
        return await self._joined("read").last(to, entry_id, offset, limit)

    async def receipt(self, to: str, root_session_id: str, message_id: str) -> NativeReceipt:
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
        received = ""
        while True:
            arrival = await self.next_inbound(received, timeout_s)
            if arrival is None:
                return
            received = arrival.message.id
            yield arrival

    async def next_inbound(self, received: str = "", timeout_s: float | None = None) -> Arrival | None:
        """One step of ``inbound``: ``received`` is the ID of the message that this reader got last."""
        return await self._feeding().take(received, timeout_s)

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

    # ------------------------------------------------------------------ beginning and ending

    async def _start(self, incarnation: str) -> None:
        self._state = live = states.activate(states.clear(self._state), self.native_id, incarnation)
        try:
            self._tenure = tenure = await Tenure.begin(
                live, self.host, self._errors, self._note_change, journal=self._journal, folder=self._folder()
            )
            await self._connect(tenure)
        except BaseException:
            self._state = states.clear(states.invalidate(live))
            if self._tenure is not None:
                await self._tenure.release()
                self._tenure = None
            raise

    async def _connect(self, tenure: Tenure) -> None:
        described = _describe(self._profile, tenure, self.host)
        self._client = client = await AsyncClient.join(described, **self._client_options)
        self._reception = reception = Reception(client, tenure, self.host, self._errors, self._bus, self)
        self._line = Line(
            client, self._errors, on_event=reception.take, on_joined=reception.rejoin, on_lost=reception.lose
        )
        self._line.start()
        self._line.watch_end(self._note_end)
        await reception.rejoin()

    async def _leave(self) -> None:
        async with self._changing:
            await self._stop()
            self._errors.close()

    async def _stop(self) -> None:
        tenure, line, reception = self._tenure, self._line, self._reception
        if tenure is None or line is None or reception is None:
            return
        await line.hang_up()
        await reception.finish()
        await tenure.end()
        self._state = states.invalidate(self._state)
        reception.detach()
        self._profile = self.profile
        self._client = self._tenure = self._line = self._reception = None
        self._state = states.clear(self._state)

    def _note_end(self, reading: asyncio.Task[None]) -> None:
        failure = None if reading.cancelled() else reading.exception()
        if failure is not None:
            # A bug: nothing is read any more, and whoever waits must not wait for ever.
            self._errors.report("session", f"it reads no more: {type(failure).__name__}: {failure}")
            if self._tenure is not None and self._tenure.feed is not None:
                self._tenure.feed.close(failure)

    def _note_change(self) -> None:
        if self._reception is not None:
            self._reception.presenting.note()

    # ------------------------------------------------------------------ who may call

    def _check_owner(self) -> None:
        if os.getpid() != self._pid:
            raise Forked(self._pid)

    def _joined(self, during: str) -> AsyncClient:
        self._check_owner()
        if self._client is None:
            raise NotLive(during, "has left")
        return self._client

    def _working(self, during: str) -> Tenure:
        self._check_owner()
        if self._tenure is None:
            raise NotLive(during, "has left")
        return self._tenure
