"""What a call of the tool does, on the session behind it.

Owns the way from a call to its result. Does not own reading the call (``calls``), the sentences
(``libintercom.texts`` and its neighbours) nor the protocol (``server``).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from intercom_adapters.mcp import showing
from intercom_adapters.mcp.calls import MESSAGES, BadCall, Call, read_call
from intercom_adapters.mcp.results import Result, outcome_facts, unsent_facts
from intercom_adapters.mcp.tool import ASK, LAST, LIST, PENDING, PROJECT, REPLY, SEND, STATUS
from libintercom import list_texts, read_texts, texts
from libintercom.errors import IntercomError, ReadFailed
from libintercom.identity import make_uuid
from libintercom.roster import Filters, build_roster
from libintercom.targets import find_row
from libintercom.wire.record import dump_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from intercom_adapters.mcp.shelf import Shelf
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Answered, Outcome
    from libintercom.roster import Roster
    from libintercom.session.aio import AsyncSession
    from libintercom.wire.messages import Host

    Tell = Callable[[Outcome], object]

# The seeds' words for a question that a busy session has and that nobody waits for.
_PEER_BUSY = {"replied": False, "reason": "peer_busy", "reasonCode": "recipient_not_accepting_asks"}
_OTHER_DEVICES = (
    "sessions of other devices cannot be listed or reached by this version. Leave device out to list the sessions of "
    "this device."
)


class Actions:
    """The tool's actions for one session. ``ask_timeout_s`` is how long an ask waits for its reply."""

    def __init__(self, session: AsyncSession, shelf: Shelf, ask_timeout_s: float) -> None:
        self._session, self._shelf, self._ask_timeout_s = session, shelf, ask_timeout_s
        # Two calls at once share out what waits; the second looks when what the first shows was written.
        self._looking = asyncio.Lock()
        self._showing: tuple[str, ...] = ()
        self._is_written = asyncio.Event()
        self._verbs: dict[str, Callable[[Call], Awaitable[Result]]] = {
            LIST: self._list,
            STATUS: self._status,
            SEND: self._send,
            PENDING: self._pending,
            REPLY: self._reply,
            LAST: self._last,
        }

    @property
    def ask_timeout_s(self) -> float:
        return self._ask_timeout_s

    async def run(self, arguments: Mapping[str, Any], on_asked: Tell) -> Result:
        """Carry out a call. ``on_asked`` hears at once how the question of an ask fared.

        Whatever is expected to go wrong is a result with ``is_error``; a cancelled ask retires its question.
        """
        action = ""
        try:
            call = read_call(arguments)
            action = call.action
            result = await (self._ask(call, on_asked) if action == ASK else self._verbs[action](call))
        except BadCall as mistake:
            result = _failed(mistake.action, "invalid_call", mistake.reason)
        except IntercomError as failure:
            result = _failed(action, "failed", str(failure))
        return result.ended(len([one for one in self._session.waiting() if one not in result.shown]))

    def written(self, shown: tuple[str, ...]) -> None:
        """The result that shows these left this program whole: they are placed."""
        self._session.placed({message_id: f"{_ENTRY}{make_uuid()}" for message_id in shown})
        if shown == self._showing:
            self._showing = ()
            self._is_written.set()
        # What the agent does next is its own; a bare reply means the only question, never one that is guessed.
        self._session.turn_ended(ok=True)

    # ------------------------------------------------------------------ who is there

    async def _list(self, call: Call) -> Result:
        if call.device:
            return _failed(LIST, "unsupported", f'Not listed: device "{call.device}": {_OTHER_DEVICES}')
        project_id = self._session.profile.project_id if call.scope == PROJECT else None
        roster = await self._roster(Filters(call.to, project_id, with_children=call.children))
        return Result(list_texts.list_text(roster, _now_ms(), list_texts.TOOL_CHILDREN_CALL))

    async def _status(self, _call: Call) -> Result:
        roster = await self._roster(Filters())
        text = list_texts.status_text(
            roster,
            _now_ms(),
            session_id=self._session.session_id,
            broker=self._session.broker,
            project_id=self._session.profile.project_id,
            pending=len(self._session.waiting()),
            children_call=list_texts.TOOL_CHILDREN_CALL,
        )
        note = self._session.journal_note
        return Result(f"{text}\n\nNo journal: {note}" if note else text)

    async def _roster(self, filters: Filters) -> Roster:
        listing = await self._session.list_sessions()
        return build_roster(listing, self._session.profile, self._session.session_id, filters)

    # ------------------------------------------------------------------ messages

    async def _send(self, call: Call) -> Result:
        if call.message is None and not call.options.get("attachments"):
            raise BadCall(SEND, "send needs message, or attachments.")
        if call.reply_to and self._is_pending(call.reply_to):
            return await self._reply(call)
        options: SendOptions = {"reply_to": call.reply_to or None, **call.options}  # type: ignore[typeddict-item]
        outcome = await self._session.send(call.to, call.message, **options)
        if not outcome.is_accepted:
            text = texts.failed_send_text(call.to, outcome) + _roster_hint(outcome)
            return Result(text, outcome_facts(outcome), is_error=True)
        host = await self._host_of(call.to)
        return Result(texts.sent_text(call.to, outcome, options, host), outcome_facts(outcome))

    async def _ask(self, call: Call, on_asked: Tell) -> Result:
        answered = await self._session.ask(
            call.to, call.message or "", timeout_s=self._ask_timeout_s, on_outcome=on_asked, **call.options
        )
        facts = outcome_facts(answered.outcome)
        if answered.reply is not None:
            reply = answered.reply
            facts.update(replied=True, reply={"id": reply.message.id, "from": reply.row.name or reply.row.id})
            return Result(texts.reply_text(call.to, reply), facts)
        text = texts.failed_ask_text(call.to, answered, self._ask_timeout_s) + _roster_hint(answered.outcome)
        return Result(text, {**facts, **_end_facts(answered)}, is_error=answered.ended_by != "peer_busy")

    async def _reply(self, call: Call) -> Result:
        asker = self._asker_of(call)
        outcome = await self._session.reply(call.reply_to or None, call.message or "", call.to, **_attached(call))
        if not outcome.is_accepted:
            return Result(texts.failed_reply_text(outcome), outcome_facts(outcome), is_error=True)
        return Result(texts.replied_text(asker, outcome), outcome_facts(outcome))

    def _asker_of(self, call: Call) -> str:
        """What to call whom a reply goes to."""
        asks = [view for view in self._session.pending() if view["kind"] == "ask"]
        named = [view for view in asks if not call.reply_to or view["messageId"] == call.reply_to]
        target = [view for view in named if view["isTarget"]] or named
        return call.to or (str(target[0]["sender"]) if len(target) == 1 else "the asker")

    def _is_pending(self, message_id: str) -> bool:
        return any(view["messageId"] == message_id for view in self._session.pending())

    async def _host_of(self, to: str) -> Host | None:
        """What the recipient's host can, as its row says; None when nobody can tell."""
        try:
            row = find_row((await self._session.list_sessions()).rows, to)
        except IntercomError:
            return None
        return None if row is None else row.host

    # ------------------------------------------------------------------ reading

    async def _pending(self, call: Call) -> Result:
        async with self._looking:
            shown = await self._show(call)
        if shown.error is not None:
            text = read_texts.failed_read_text(call.entry_id or "", shown.error.code, shown.error.reason)
            return _failed(PENDING, shown.error.code, text)
        blocks = [shown.text] if shown.text else []
        views = [view for view in self._session.pending() if view["messageId"] not in shown.completed]
        for title, kind in _BLOCKS:
            # A question that was not shown yet is among the messages that wait.
            kept = [view for view in views if view["kind"] == kind and view.get("isShown", True)]
            if kept:
                blocks.append(read_texts.views_text(title, kept, _now_ms()))
        return Result("\n\n".join(blocks) or _NOTHING, shown=shown.completed)

    async def _show(self, call: Call) -> showing.Showing:
        """What this call shows of the messages that wait; those that it does not show to their end wait on."""
        await self._end_showing()
        if any(view["messageId"] == call.entry_id for view in self._session.pending() if view["kind"] == _UNCERTAIN):
            # Asked for by its ID: now it is shown again, be it for the second time.
            await self._session.place(call.entry_id or "")
        if not self._session.waiting():
            return showing.show([]) if call.entry_id is None else showing.no_such()
        # What an earlier call did not show is handed over again once that it was taken back is on record.
        await self._session.settle()
        self._session.turn_started()
        batch = await self._shelf.collect(_COLLECT_S)
        if not batch:
            return showing.Showing(_STUCK)
        shown = showing.show(batch) if call.entry_id is None else showing.show_page(batch, call.entry_id, call.offset)
        for message in batch:
            if message.message_id in shown.begun:
                self._shelf.keep(message)
        self._shelf.drop(shown.completed)
        left = [one.message_id for one in batch if one.message_id not in shown.completed]
        if left:
            self._session.returned(left, "there was no room to show it")
        self._showing = shown.completed
        if not shown.completed:
            self._session.turn_ended(ok=True)
        return shown

    async def _end_showing(self) -> None:
        """Wait until what an earlier call shows was written; an abandoned call's result never is."""
        if not self._showing:
            return
        try:
            await asyncio.wait_for(self._is_written.wait(), _COLLECT_S)
        except TimeoutError:
            self._session.returned(self._showing, "its showing was abandoned")
            self._session.turn_ended(ok=True)
            self._showing = ()
        self._is_written.clear()

    async def _last(self, call: Call) -> Result:
        try:
            page = await self._session.last(call.to, call.entry_id, call.offset)
        except ReadFailed as refused:
            text = read_texts.failed_read_text(call.to, refused.code, refused.reason)
            is_empty = refused.code == "empty_history"
            return Result(text, {"code": refused.code}, is_error=not is_empty)
        facts = {name: value for name, value in dump_record(page).items() if name != "text"}
        return Result(read_texts.page_text(call.to, page, read_texts.TOOL_LAST_CALL), facts)


_UNCERTAIN = "uncertain"
_SEE_AGAIN_CALL = 'intercom({ action: "pending", entryId: "…" })'
# The blocks of ``pending`` behind the messages: title and the kind of the views in it.
_BLOCKS = (
    ("Questions that wait for your reply", "ask"),
    (f"Perhaps shown before the server was ended; to see one again: {_SEE_AGAIN_CALL}", _UNCERTAIN),
)
_NOTHING = "No message and no question waits."
_STUCK = "What waits could not be handed over in time. Call pending again."
# What a placement's entry ID begins with: this server has no history of its own that could name one.
_ENTRY = "mcp-"
# Handing over takes one commit of the journal; a disk that stands still is not waited for.
_COLLECT_S = 5.0


def _failed(action: str, code: str, text: str) -> Result:
    """A call that came to nothing; one about a message says that nothing was sent."""
    facts = unsent_facts(code, text) if action in MESSAGES else {"code": code}
    return Result(text, facts, is_error=True)


def _attached(call: Call) -> dict[str, Any]:
    return {name: value for name, value in call.options.items() if name == "attachments"}


def _end_facts(answered: Answered) -> dict[str, Any]:
    if answered.ended_by == "peer_busy":
        return {"endedBy": answered.ended_by, **_PEER_BUSY}
    return {"endedBy": answered.ended_by, "replied": False} if answered.ended_by else {"replied": False}


def _roster_hint(outcome: Outcome) -> str:
    """What to do about a target that means nobody, or too many."""
    return f" See who is there: {_LIST_CALL}" if outcome.code in _TARGET_CODES else ""


_LIST_CALL = 'intercom({ action: "list" })'
_TARGET_CODES = ("not_found", "ambiguous", "too_short")


def _now_ms() -> int:
    return int(time.time() * 1000)
