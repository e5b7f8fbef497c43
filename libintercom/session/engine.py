"""Carrying out what an inbox asks for: checkpoints into the journal, messages to the host, words to whoever waits.

Owns the loop of happenings and steps of one context (one native session in one incarnation), bounded admission, and
the drain at its end. Does not own any decision (``inbox``), the host's calls (``placing``) nor the connection.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque

from libintercom.errors import IntercomError
from libintercom.session import entries, happenings, steps
from libintercom.session.errors import JournalStopped
from libintercom.session.faults import reach
from libintercom.session.framing import frame
from libintercom.session.host import HostInput
from libintercom.session.placing import Placing
from libintercom.session.retrying import Retry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, ClassVar

    from libintercom.inbound import Inbound
    from libintercom.session.background import BackgroundErrors
    from libintercom.session.entries import Entry
    from libintercom.session.host import Host
    from libintercom.session.inbox import Inbox
    from libintercom.session.opening import Ledger
    from libintercom.wire.record import Record

# Messages whose first checkpoint is under way; past this the connection is not read on, so the broker's quota tells
# senders the truth. Two group commits of a busy disk.
MAX_ADMITTING = 1_024
# Messages that the host was not seen to have, in memory; past this the same.
MAX_UNPLACED = 1_000
# No sender guesses the end of its own frame.
_NONCE_BYTES = 8
ARREARS = "unstored messages"
_NEVER_STORED = "messages came and were never stored or offered: the journal took none when this session left"
JOURNAL, HOST = "journal", "host"
# What the host or the journal would not take.
_RETRIED = frozenset({steps.HOST_REFUSED, steps.NOT_STORED, steps.UNRECORDED})
# No failures (a repetition, a context that is over), or said once for all where they occur (``Placing``, ``_settle``).
_QUIET = _RETRIED | {steps.DUPLICATE, steps.STALE}


class Engine:
    """One inbox at work. ``on_change`` is called when what others see may have changed; all on one loop."""

    def __init__(
        self,
        inbox: Inbox,
        ledger: Ledger,
        host: Host,
        errors: BackgroundErrors,
        *,
        generation: str,
        mend: Callable[[], Awaitable[Ledger | None]],
        now_ms: Callable[[], int],
        on_change: Callable[[], object],
    ) -> None:
        self.inbox, self.ledger = inbox, ledger
        self._errors, self._now_ms, self._on_change = errors, now_ms, on_change
        self._loop = asyncio.get_running_loop()
        self._host = host
        self._placing = Placing(host, self.happen, self._note_host_failure)
        self._happened: deque[Record] = deque()
        self._is_turning = False
        self._generation = generation
        # Checkpoints under way, by their entries' IDs, in order; and who waits for the end of one.
        self._storing: dict[tuple[str, ...], tuple[Entry, ...]] = {}
        self._flushing: dict[tuple[str, ...], asyncio.Future[str]] = {}
        self._admitting: dict[str, Inbound] = {}
        self._unplaced: set[str] = set()
        # Read, and the journal could not take them: nobody was offered them, nothing is read before they are in.
        self._arrears: dict[str, Inbound] = {}
        # Since the journal could not take one until it took something again.
        self._is_owing = False
        self._room = asyncio.Event()
        self._room.set()
        self._detached = asyncio.Event()
        self._replies: dict[str, asyncio.Future[str]] = {}
        self._given: dict[str, asyncio.Future[str]] = {}
        self._placements: dict[str, asyncio.Future[str]] = {}
        # Whose placement is being recorded, and whose could not be.
        self._placing_ids: set[str] = set()
        self._unrecorded: dict[str, Entry] = {}
        self._is_closing = self._is_hurrying = False
        self._retry, self._mend = Retry(self._try_again), mend

    # ------------------------------------------------------------------ what happens

    def happen(self, event: Record) -> None:
        """Tell the inbox, and carry out what it asks for. What happens meanwhile comes behind it."""
        self._happened.append(event)
        if self._is_turning:
            return
        self._is_turning = True
        try:
            while self._happened:
                for step in self.inbox.handle(self._happened.popleft(), self._now_ms(), self._generation):
                    self._STEPS[type(step)](self, step)
        finally:
            self._is_turning = False
        self._on_change()

    def recover(self) -> None:
        """Begin with what the journal has unfinished."""
        standings = tuple(self.ledger.unfinished())
        self._unplaced = {one.message_id for one in standings if one.kind not in entries.FINAL}
        self.happen(happenings.Recovered(standings=standings))
        reach("start.taken_up")

    async def admit(self, inbound: Inbound) -> None:
        """Take a message in; returns when there is room for the next one, not when this one is stored."""
        reach("session.arrived")
        self._arrive(inbound)
        self._measure()
        await self._room.wait()

    def _arrive(self, inbound: Inbound) -> None:
        message_id = inbound.message.id
        try:
            standing = self.ledger.find(message_id)
        except IntercomError as error:
            # Nobody can tell whether it is a repetition.
            self._note_journal_failure(str(error))
            self._owe(inbound)
            return
        if standing is None:
            self._admitting[message_id] = inbound
        told = {} if standing is None else {"standing": standing}
        self.happen(happenings.Arrived(inbound=inbound, **told))

    def _owe(self, inbound: Inbound) -> None:
        self._arrears[inbound.message.id], self._is_owing = inbound, True
        self._retry.arm()

    # ------------------------------------------------------------------ what callers wait for

    async def begin_reply(self, ask_id: str, reply_id: str) -> str:
        """``""`` once it is on record that the reply leaves; else why it must not."""
        return await self._await(
            self._replies, reply_id, happenings.ReplyBegan(ask_id=ask_id, reply_id=reply_id)
        )

    def end_reply(self, ask_id: str, reply_id: str, *, is_accepted: bool | None) -> None:
        """What became of it; None: unknown."""
        told = {} if is_accepted is None else {"is_accepted": is_accepted}
        self.happen(happenings.ReplyEnded(ask_id=ask_id, reply_id=reply_id, **told))

    async def record_reply(self, inbound: Inbound) -> str:
        """``""`` once a reply that an ask of ours got is on record; else why it is not given to the ask."""
        reach("session.reply_received")
        message_id = inbound.message.id
        try:
            standing = self.ledger.find(message_id)
        except IntercomError as error:
            return str(error)
        told = {} if standing is None else {"standing": standing}
        return await self._await(self._given, message_id, happenings.ReplyArrived(inbound=inbound, **told))

    async def record_placement(self, message_id: str) -> bool:
        """True once it is on record that the host has a message; False when it is no longer this session's to give.

        Raises JournalStopped: it could not be recorded, and may be tried again.
        """
        self._placements[message_id] = placed = self._loop.create_future()
        entry = self._unrecorded.pop(message_id, None)
        if entry is None:
            # A program that iterates has no entries of its own: the message is known by its ID there.
            self.happen(happenings.HostPlaced(placements={message_id: message_id}))
        else:
            self._store((entry,))
        if message_id not in self._placing_ids and not placed.done():
            # The inbox asked for nothing: the message is not with the host any more.
            del self._placements[message_id]
            return False
        reason = await placed
        if reason:
            raise JournalStopped(message_id, reason)
        return True

    async def flush(self) -> None:
        """Wait until every checkpoint asked for so far has ended."""
        if self._storing:
            last = next(reversed(self._storing))
            ended = self._flushing.setdefault(last, self._loop.create_future())
            # Shielded: others may wait for the same.
            await asyncio.shield(ended)

    async def _await(self, waiting: dict[str, asyncio.Future[str]], key: str, event: Record) -> str:
        future = waiting[key] = self._loop.create_future()
        try:
            self.happen(event)
            reason: str = await future
            return reason
        finally:
            if waiting.get(key) is future:
                del waiting[key]

    # ------------------------------------------------------------------ the end

    def hurry(self) -> None:
        """The connection ends: take in what was read of it, whatever the bounds."""
        self._is_hurrying = True
        self._measure()

    async def settle_arrears(self) -> None:
        """Before shutting down: store what the journal owes, or say that it never took it; nothing is tried again."""
        if self._arrears:
            await self._try_again()
            await self.flush()
        self._is_closing = True
        self._retry.stop()
        if self._arrears:
            self._errors.report(ARREARS, f"{len(self._arrears)} {_NEVER_STORED}")

    async def shut_down(self, timeout_s: float) -> bool:
        """Finish what was begun and offer nothing new; False when the host did not end its part in time."""
        self.happen(happenings.ShutdownBegan())
        return await self._drain(timeout_s)

    def invalidate(self) -> None:
        """The context is gone: nothing is stored or placed for it from here on."""
        self._is_closing = True
        self._retry.stop()
        self.happen(happenings.ContextInvalidated())
        self._placing.abandon()
        for waiting in (self._replies, self._given, self._placements):
            for future in waiting.values():
                _finish(future, "the session was replaced")

    async def _drain(self, timeout_s: float) -> bool:
        try:
            await asyncio.wait_for(self._detached.wait(), timeout_s)
        except asyncio.TimeoutError:
            self._placing.abandon()
            return False
        return True

    # ------------------------------------------------------------------ checkpoints

    def _checkpoint(self, step: steps.Checkpoint) -> None:
        self._store(step.entries)

    def _store(self, stored: tuple[Entry, ...]) -> None:
        ids = tuple(entry.entry_id for entry in stored)
        self._storing[ids] = stored
        for entry in stored:
            self._count(entry)
        try:
            self.ledger.append(stored).add_done(lambda failure: self._report_back(ids, failure))
        except IntercomError as error:
            self._report_back(ids, error)

    def _report_back(self, ids: tuple[str, ...], failure: Exception | None) -> None:
        # From the journal's writer, or from here when there is none.
        reason = None if failure is None else str(failure)
        try:
            self._loop.call_soon_threadsafe(self._settle, ids, reason)
        except RuntimeError:
            # The loop was closed under a session that nobody left: on record it is, and nobody waits for the word.
            pass

    def _settle(self, ids: tuple[str, ...], reason: str | None) -> None:
        reach("session.stored")
        stored = self._storing.pop(ids, ())
        if reason is None:
            self._errors.recover(JOURNAL)
            self._retry.reset()
            self._is_owing = bool(self._arrears)
            self.happen(happenings.Checkpointed(entry_ids=ids))
        else:
            self._note_journal_failure(reason)
            self.happen(happenings.CheckpointFailed(entry_ids=ids, reason=reason))
        for entry in stored:
            self._note_settled(entry, reason)
        _finish(self._flushing.pop(ids, None), "")
        self._measure()

    def _count(self, entry: Entry) -> None:
        """An admitted message is unplaced until an end of its text is asked to be recorded."""
        if entry.kind == entries.ADMITTED:
            self._unplaced.add(entry.message_id)
        elif entry.kind in entries.FINAL:
            self._unplaced.discard(entry.message_id)
        if entry.kind == entries.PLACED:
            self._placing_ids.add(entry.message_id)

    def _note_settled(self, entry: Entry, reason: str | None) -> None:
        self._admitting.pop(entry.message_id, None)
        if entry.kind == entries.PLACED:
            self._placing_ids.discard(entry.message_id)
            waiting = self._placements.pop(entry.message_id, None)
            if waiting is not None:
                _finish(waiting, reason or "")
                if reason is not None:
                    self._unrecorded[entry.message_id] = entry

    def _measure(self) -> None:
        """Whether more may be read from the connection."""
        is_full = len(self._admitting) >= MAX_ADMITTING or len(self._unplaced) >= MAX_UNPLACED
        has_room = self._is_hurrying or not (is_full or self._is_owing)
        self._room.set() if has_room else self._room.clear()

    # ------------------------------------------------------------------ the other steps

    def _place(self, step: steps.Place) -> None:
        self._placing.place([self._frame(one) for one in step.batch])

    def _frame(self, one: steps.Placeable) -> HostInput:
        framed = frame(one, os.urandom(_NONCE_BYTES).hex(), self._host.reply_call)
        return HostInput(text=framed.text, placed_sha256=framed.placed_sha256, **one.present())

    def _wake(self, _step: steps.Wake) -> None:
        self._placing.wake()

    def _find(self, step: steps.FindPlacement) -> None:
        self._placing.find(step.message_id)

    def _note_journal_failure(self, reason: str) -> None:
        # While it is being mended, each attempt fails in its own words.
        if not self._is_owing:
            self._errors.report(JOURNAL, reason)

    def _note_host_failure(self, reason: str) -> None:
        if not self._is_closing:
            self._errors.report(HOST, reason)

    def _send_reply(self, step: steps.SendReply) -> None:
        waiting = self._replies.get(step.reply_id)
        if waiting is None or waiting.done():
            # Whoever wanted to reply gave up meanwhile.
            self.end_reply(step.ask_id, step.reply_id, is_accepted=False)
        else:
            _finish(waiting, "")

    def _refuse_reply(self, step: steps.RefuseReply) -> None:
        _finish(self._replies.get(step.reply_id), step.reason)

    def _give_reply(self, step: steps.GiveReply) -> None:
        _finish(self._given.get(step.message_id), "")

    def _withhold_reply(self, step: steps.WithholdReply) -> None:
        _finish(self._given.get(step.message_id), step.reason or step.code)

    def _refuse(self, step: steps.Refuse) -> None:
        inbound = self._admitting.pop(step.message_id, None)
        if step.code == steps.NOT_STORED and inbound is not None:
            self._unplaced.discard(step.message_id)
            self._owe(inbound)
        self._say(step.code, step.message_id, step.reason)

    def _report(self, step: steps.Report) -> None:
        self._say(step.code, step.message_id, step.reason)

    def _detach(self, _step: steps.Detach) -> None:
        self._detached.set()

    def _say(self, code: str, message_id: str, reason: str) -> None:
        if code in _RETRIED and not self._is_closing:
            self._retry.arm()
        if code not in _QUIET:
            self._errors.report(f"message {message_id}", f"{code}: {reason}")

    async def _try_again(self) -> None:
        """Mend the journal if it stopped, admit what it owes, and offer what waits."""
        if self._arrears:
            self.ledger = await self._mend() or self.ledger
        owed, self._arrears = self._arrears, {}
        for inbound in owed.values():
            self._arrive(inbound)
        self.happen(happenings.RetryDue())
        # Where all were known already, nothing is stored that could tell.
        self._is_owing = bool(self._arrears or self._admitting)
        self._measure()

    _STEPS: ClassVar[dict[type[Record], Callable[[Engine, Any], None]]] = {
        steps.Checkpoint: _checkpoint,
        steps.Place: _place,
        steps.Wake: _wake,
        steps.FindPlacement: _find,
        steps.SendReply: _send_reply,
        steps.RefuseReply: _refuse_reply,
        steps.GiveReply: _give_reply,
        steps.WithholdReply: _withhold_reply,
        steps.Refuse: _refuse,
        steps.Report: _report,
        steps.Detach: _detach,
    }


def _finish(waiting: asyncio.Future[str] | None, reason: str) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(reason)
