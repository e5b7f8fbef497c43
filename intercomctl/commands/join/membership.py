"""A joined session at work: lines become actions, actions are carried out, what arrives is shown.

Owns the order of things and the end: what happens when the input ends, the broker goes, or the person leaves. Does
not own what a line means or how something is shown: those are the two faces (``jsonl``, ``console``).
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Protocol

from intercomctl import joining, output
from intercomctl.commands.join.actions import ASK, LIST, PENDING, PRESENCE, QUIT, REPLY, SEND, STATUS
from intercomctl.commands.join.lines import MAX_LINE_BYTES, Lines
from libintercom import texts
from libintercom.asking import DEFAULT_TIMEOUT_S
from libintercom.errors import EXIT_DONE, EXIT_UNREACHABLE, IntercomError
from libintercom.inbound import AskEnded, ConnectionEnded, Inbound, LetterDied, PeerLeft

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from intercomctl.commands.join.actions import Action
    from libintercom.aio import AsyncClient
    from libintercom.member import Member
    from libintercom.outcomes import Listing, Outcome
    from libintercom.pending import PendingAsks
    from libintercom.profile import Profile
    from libintercom.wire.record import Record

# Actions under way at one time; more are read once some are answered, so a script cannot fill the memory.
MAX_UNDER_WAY = 256


class Face(Protocol):
    """What a script or a person says and is told."""

    def read(self, line: str, /) -> Action | None: ...
    def refuse(self, reason: str, /) -> None: ...
    def sent(self, action: Action, outcome: Outcome, /) -> None: ...
    def replied(self, action: Action, reply: Inbound, /) -> None: ...
    def failed(self, action: Action, reason: str, ended_by: str = "", /) -> None: ...
    def listed(self, action: Action, member: Member, listing: Listing, /) -> None: ...
    def told_pending(self, action: Action, asks: PendingAsks, /) -> None: ...
    def changed(self, action: Action, /) -> None: ...
    def joined(self, member: Member, /) -> None: ...
    def arrived(self, inbound: Inbound, /) -> None: ...
    def peer_left(self, session_id: str, /) -> None: ...
    def ask_retired(self, ended: AskEnded, /) -> None: ...
    def letter_died(self, letter: LetterDied, /) -> None: ...
    def disconnected(self, reason: str, /) -> None: ...
    def end(self, reason: str, /) -> None: ...


def stay(profile: Profile, session_id: str | None, face: Face) -> int:
    """Join and stay until standard input ends, the broker goes, or nobody reads; return the exit status.

    Raises:
        IntercomError: the session could not join.

    """
    return asyncio.run(_stay(profile, session_id, face))


async def _stay(profile: Profile, session_id: str | None, face: Face) -> int:
    client = await joining.speak_async(profile, session_id)
    return await Membership(client, face, output.is_read).run(Lines(_open_input()))


def _open_input() -> int:
    # It is None when the program was started with it closed: then there is nothing to read.
    return os.open(os.devnull, os.O_RDONLY) if sys.stdin is None else sys.stdin.fileno()


class Membership:
    """A connected client, a face, and everything between them until the session ends.

    ``is_read`` says whether what the face shows still has a reader; the session ends when it has none.
    """

    def __init__(self, client: AsyncClient, face: Face, is_read: Callable[[], bool]) -> None:
        self._client, self._face, self._is_read = client, face, is_read
        self._under_way: set[asyncio.Task[None]] = set()
        self._asks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_UNDER_WAY)
        self._told_pending = 0
        # Of the ask that was begun last: its question has left, or never will.
        self._question_is_out = asyncio.Event()
        self._is_leaving = False
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
        """Carry out lines and show events until one of them ends; return the exit status."""
        self._face.joined(self._client)
        reading = asyncio.create_task(self._read(lines))
        showing = asyncio.create_task(self._show_events())
        try:
            await asyncio.wait({reading, showing}, return_when=asyncio.FIRST_COMPLETED)
            is_lost = not self._client.is_connected
            await self._finish(reading, is_lost=is_lost)
        finally:
            self._is_leaving = True
            # What had arrived before is still shown: its senders know it as delivered.
            await self._client.disconnect()
            await showing
            self._face.end("the session ended")
        for bug in self._bugs:
            raise bug
        return EXIT_UNREACHABLE if is_lost else EXIT_DONE

    async def _finish(self, reading: asyncio.Task[None], *, is_lost: bool) -> None:
        """What was sent gets its answer, in a time that the client bounds; nobody waits for replies any more."""
        reading.cancel()
        if not is_lost:
            for task in self._asks:
                task.cancel()
        await asyncio.gather(reading, *self._under_way, return_exceptions=True)
        if not reading.cancelled():
            reading.result()

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
            await self._publish_pending()
        except IntercomError as failure:
            self._face.failed(action, str(failure))

    async def _send(self, action: Action) -> None:
        options = {**action.message, "reply_to": action.reply_to}
        self._face.sent(action, await self._client.send(action.to or "", action.text, **options))

    async def _reply(self, action: Action) -> None:
        told = await self._client.reply(action.reply_to, action.text, action.to or "", **action.message)
        self._face.sent(action, told)

    async def _ask(self, action: Action) -> None:
        to, timeout_s = action.to or "", action.timeout_s or DEFAULT_TIMEOUT_S
        is_out = self._question_is_out

        def tell(outcome: Outcome) -> None:
            is_out.set()
            self._face.sent(action, outcome)

        try:
            answered = await self._client.ask(to, action.text, timeout_s=timeout_s, on_outcome=tell, **action.message)
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
        self._face.listed(action, self._client, await self._client.list_sessions())

    async def _tell_pending(self, action: Action) -> None:
        self._face.told_pending(action, self._client.pending)

    async def _change(self, action: Action) -> None:
        await self._client.presence(**action.changes)
        self._face.changed(action)

    # ------------------------------------------------------------------ events

    async def _show_events(self) -> None:
        async for event in self._client.events():
            self._show(event)
            if isinstance(event, ConnectionEnded) or not self._is_read():
                return
            await self._publish_pending()

    def _show(self, event: Record) -> None:
        if isinstance(event, Inbound):
            self._face.arrived(event)
        elif isinstance(event, PeerLeft):
            self._face.peer_left(event.session_id)
        elif isinstance(event, AskEnded):
            self._face.ask_retired(event)
        elif isinstance(event, LetterDied):
            self._face.letter_died(event)
        elif isinstance(event, ConnectionEnded) and not self._is_leaving:
            self._face.disconnected(event.reason)

    async def _publish_pending(self) -> None:
        """Let others see how many questions wait here."""
        count = len(self._client.pending)
        if count != self._told_pending and self._client.is_connected:
            self._told_pending = count
            await self._client.presence(pending_asks=count)
