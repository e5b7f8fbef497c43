"""A joined session at work: lines become actions, actions are carried out, what arrives is shown.

Owns the order of things and the end: what happens when the input ends, the broker goes and comes back, or the person
leaves. Does not own what a line means or how something is shown: those are the two faces (``jsonl``, ``console``).
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any, Protocol

from intercomctl import joining, output
from intercomctl.commands.join.actions import ASK, LIST, PENDING, PRESENCE, QUIT, REPLY, SEND, STATUS
from intercomctl.commands.join.lines import MAX_LINE_BYTES, Lines
from libintercom import texts
from libintercom.asking import DEFAULT_TIMEOUT_S
from libintercom.errors import EXIT_DONE, IntercomError
from libintercom.inbound import AskEnded, LetterDied, PeerLeft
from libintercom.session.bus import CONTEXT_STATE, Bus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from intercomctl.commands.join.actions import Action
    from libintercom.inbound import Inbound
    from libintercom.outcomes import Listing, Outcome
    from libintercom.profile import Profile
    from libintercom.session.aio import AsyncSession
    from libintercom.session.background import BackgroundError
    from libintercom.wire.record import Record

# Actions under way at one time; more are read once some are answered, so a script cannot fill the memory.
MAX_UNDER_WAY = 256
# What is known when the connection ends; why it ended, and why joining again fails, is told on stderr.
_LOST = "the connection to the broker ended"
# The kind of the views that a reply can answer.
_ASK_VIEW = "ask"
# Handing over what came before the end takes one commit of the journal each.
_LAST_MESSAGES_S = 1.0


class Face(Protocol):
    """What a script or a person says and is told."""

    def read(self, line: str, /) -> Action | None: ...
    def refuse(self, reason: str, /) -> None: ...
    def sent(self, action: Action, outcome: Outcome, /) -> None: ...
    def replied(self, action: Action, reply: Inbound, /) -> None: ...
    def failed(self, action: Action, reason: str, ended_by: str = "", /) -> None: ...
    def listed(self, action: Action, session: AsyncSession, listing: Listing, /) -> None: ...
    def told_pending(self, action: Action, views: list[dict[str, Any]], /) -> None: ...
    def changed(self, action: Action, /) -> None: ...
    def joined(self, session: AsyncSession, /) -> None: ...
    def arrived(self, inbound: Inbound, /) -> None: ...
    def peer_left(self, session_id: str, /) -> None: ...
    def ask_retired(self, ended: AskEnded, /) -> None: ...
    def letter_died(self, letter: LetterDied, /) -> None: ...
    def disconnected(self, reason: str, /) -> None: ...
    def end(self, reason: str, /) -> None: ...


def stay(profile: Profile, native_id: str, face: Face) -> int:
    """Join and stay until standard input ends or nobody reads; return the exit status.

    Raises:
        IntercomError: the session could not join.

    """
    return asyncio.run(_stay(profile, native_id, face))


async def _stay(profile: Profile, native_id: str, face: Face) -> int:
    watch = _Watch(face)
    session = await joining.join_session(
        profile,
        native_id,
        bus=watch.bus,
        on_notice=watch.take_notice,
        on_background_error=_note_failure,
    )
    if session.journal_note:
        output.note(session.journal_note)
    return await Membership(session, face, watch, output.is_read).run(Lines(_open_input()))


def _open_input() -> int:
    # It is None when the program was started with it closed: then there is nothing to read.
    return os.open(os.devnull, os.O_RDONLY) if sys.stdin is None else sys.stdin.fileno()


def _note_failure(error: BackgroundError) -> None:
    output.note(f"{error.operation}: {error.reason}")


class _Watch:
    """What the session tells by itself, shown while it is at work: notices, and the broker that goes and comes back."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self.bus = Bus()
        self._session: AsyncSession | None = None
        self._is_connected = True

    def begin(self, session: AsyncSession) -> None:
        """The session is joined and was shown."""
        self._session = session
        self.bus.on(CONTEXT_STATE, self._take_state)

    def end(self) -> None:
        """The session leaves: that is no loss of a connection."""
        self._session = None

    def take_notice(self, event: Record) -> None:
        if isinstance(event, PeerLeft):
            self._face.peer_left(event.session_id)
        elif isinstance(event, AskEnded):
            self._face.ask_retired(event)
        elif isinstance(event, LetterDied):
            self._face.letter_died(event)

    def _take_state(self, snapshot: dict[str, Any]) -> None:
        session, is_connected = self._session, bool(snapshot["connected"])
        if session is None or is_connected == self._is_connected:
            return
        self._is_connected = is_connected
        if is_connected:
            self._face.joined(session)
        else:
            self._face.disconnected(_LOST)


class Membership:
    """A session, a face, and everything between them until the session ends.

    ``is_read`` says whether what the face shows still has a reader; the session ends when it has none.
    """

    def __init__(self, session: AsyncSession, face: Face, watch: _Watch, is_read: Callable[[], bool]) -> None:
        self._session, self._face, self._watch, self._is_read = session, face, watch, is_read
        self._under_way: set[asyncio.Task[None]] = set()
        self._asks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_UNDER_WAY)
        # Of the ask that was begun last: its question has left, or never will.
        self._question_is_out = asyncio.Event()
        self._has_shown = asyncio.Event()
        self._bugs: list[BaseException] = []
        self._verbs: dict[str, Callable[[Action], Awaitable[None]]] = {
            SEND: self._send,
            ASK: self._ask,
            REPLY: self._reply,
            PENDING: self._tell_pending,
            PRESENCE: self._change,
            LIST: self._list,
            STATUS: self._list,
        }

    async def run(self, lines: AsyncIterator[str | None]) -> int:
        """Carry out lines and show messages until one of them ends; return the exit status."""
        self._face.joined(self._session)
        self._watch.begin(self._session)
        reading = asyncio.create_task(self._read(lines))
        showing = asyncio.create_task(self._show_messages())
        try:
            await asyncio.wait({reading, showing}, return_when=asyncio.FIRST_COMPLETED)
            await self._finish(reading)
            await self._show_the_rest()
        finally:
            self._watch.end()
            left = len(self._session.waiting())
            await self._session.leave()
            await showing
            self._face.end("the session ended")
        if left:
            output.note(f"{left} messages were not shown; they wait for this session to join again.")
        for bug in self._bugs:
            raise bug
        return EXIT_DONE

    async def _finish(self, reading: asyncio.Task[None]) -> None:
        """What was sent gets its answer, in a time that the client bounds; nobody waits for replies any more."""
        reading.cancel()
        for task in self._asks:
            task.cancel()
        await asyncio.gather(reading, *self._under_way, return_exceptions=True)
        if not reading.cancelled():
            reading.result()

    async def _show_the_rest(self) -> None:
        """What had come before the end is still shown: its senders know it as delivered."""
        await self._session.settle()
        rest = set(self._session.waiting())
        try:
            async with asyncio.timeout(_LAST_MESSAGES_S):
                while self._is_read() and rest & set(self._session.waiting()):
                    self._has_shown.clear()
                    await self._has_shown.wait()
        except TimeoutError:
            # They are on record, and shown when the session joins again.
            return

    # ------------------------------------------------------------------ lines

    async def _read(self, lines: AsyncIterator[str | None]) -> None:
        async for line in lines:
            if line is None:
                self._face.refuse(f"the line is longer than {MAX_LINE_BYTES} bytes")
                continue
            action = self._face.read(line)
            if action is not None and action.kind == QUIT:
                return
            if action is not None:
                await self._begin(action)

    async def _begin(self, action: Action) -> None:
        await self._room.acquire()
        is_out = self._question_is_out = asyncio.Event()
        task = asyncio.create_task(self._carry_out(action))
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        if action.kind == ASK:
            self._asks.add(task)
            # An ask looks its target up before it says anything; what is told after it must not overtake it.
            await is_out.wait()
        else:
            # Let it say its frame now, for the same reason.
            await asyncio.sleep(0)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._asks.discard(task)
        self._room.release()
        if not task.cancelled() and (bug := task.exception()) is not None:
            self._bugs.append(bug)

    async def _carry_out(self, action: Action) -> None:
        try:
            await self._verbs[action.kind](action)
        except IntercomError as failure:
            self._face.failed(action, str(failure))

    async def _send(self, action: Action) -> None:
        options = {**action.message, "reply_to": action.reply_to}
        self._face.sent(action, await self._session.send(action.to or "", action.text, **options))

    async def _reply(self, action: Action) -> None:
        told = await self._session.reply(action.reply_to, action.text, action.to or "", **action.message)
        self._face.sent(action, told)

    async def _ask(self, action: Action) -> None:
        to, timeout_s = action.to or "", action.timeout_s or DEFAULT_TIMEOUT_S
        is_out = self._question_is_out

        def tell(outcome: Outcome) -> None:
            is_out.set()
            self._face.sent(action, outcome)

        try:
            answered = await self._session.ask(to, action.text, timeout_s=timeout_s, on_outcome=tell, **action.message)
            if not is_out.is_set():
                self._face.sent(action, answered.outcome)
        except asyncio.CancelledError:
            self._face.failed(action, "the session left before a reply came", "cancelled")
            raise
        finally:
            is_out.set()
        if answered.reply is not None:
            self._face.replied(action, answered.reply)
            return
        self._face.failed(action, texts.failed_ask_text(to, answered, timeout_s), answered.ended_by)

    async def _list(self, action: Action) -> None:
        self._face.listed(action, self._session, await self._session.list_sessions())

    async def _tell_pending(self, action: Action) -> None:
        self._face.told_pending(action, [view for view in self._session.pending() if view["kind"] == _ASK_VIEW])

    async def _change(self, action: Action) -> None:
        await self._session.presence(**action.changes)
        self._face.changed(action)

    # ------------------------------------------------------------------ messages

    async def _show_messages(self) -> None:
        """Each message is on record as placed before it is shown."""
        async for inbound in self._session.inbound():
            self._face.arrived(inbound)
            self._has_shown.set()
            if not self._is_read():
                return
