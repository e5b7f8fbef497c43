"""What arrives on a session's connection, and where each goes: the inbox, a reader, an errand, whoever watches.

Owns the recipient's check of guards before the first checkpoint, the application guard, presence, and telling the bus.
Does not own the connection (``reconnecting``) nor what follows from a message (``inbox``).
"""

from __future__ import annotations

import asyncio

from libintercom.errors import IntercomError
from libintercom.inbound import AskEnded, Inbound, PeerLeft, ReadAsked
from libintercom.member import now_ms
from libintercom.session import serving
from libintercom.session.bus import VERSION, Attachment, StaleTarget
from libintercom.session.errands import find_errand
from libintercom.session.guards import OwnContext, find_fault
from libintercom.session.presenting import Presenting
from libintercom.session.running import run_errand
from libintercom.session.states import Live
from libintercom.wire.reads import LAST, ReadError
from libintercom.wire.record import dump_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any

    from libintercom.aio import AsyncClient
    from libintercom.session.background import BackgroundErrors
    from libintercom.session.host import Host
    from libintercom.session.options import Watchers
    from libintercom.session.tenure import Tenure
    from libintercom.wire.record import Record

# What ``AskEnded`` says of questions that the client's own list, which nobody reads here, had no room for.
_EVICTED = "evicted"


class Reception:
    """The events of one tenure. Its callbacks are those of ``reconnecting.Line``."""

    def __init__(
        self, client: AsyncClient, tenure: Tenure, host: Host, errors: BackgroundErrors, watchers: Watchers
    ) -> None:
        self._client, self._tenure, self._host, self._errors = client, tenure, host, errors
        self._watchers = watchers
        self._guard: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._presenting = Presenting(client, tenure.inbox, host)
        self._attachment = None if watchers.bus is None else Attachment(watchers.bus, self)

    # ------------------------------------------------------------------ what the line tells

    async def take(self, event: Record) -> None:
        """One event of the connection, in order; returns when the next one may come."""
        if isinstance(event, Inbound):
            await self._take_message(event)
        elif isinstance(event, ReadAsked):
            self._begin(self._serve(event))
        else:
            self._take_notice(event)

    async def rejoin(self) -> None:
        """Registered, for the first time or again."""
        self._tenure.put_up_badge(self._client.session_id)
        self._presenting.note()
        self._tell_state()

    def lose(self, _reason: str) -> None:
        """The connection ended."""
        self._tell_state()

    # ------------------------------------------------------------------ what the session tells

    def note_change(self) -> None:
        """What others see may have changed."""
        self._presenting.note()

    def note_activity(self) -> None:
        """A message leaves."""
        self._presenting.note_activity(now_ms())

    def decide_asks(self, accepts: bool | None) -> None:
        """The program's word on whether it takes questions; None leaves it to the host."""
        self._presenting.accepts_asks = accepts
        self._presenting.note()

    async def finish(self) -> None:
        """Wait for the readers and errands that are being answered."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=serving.READ_TIMEOUT_S)

    def detach(self) -> None:
        """The context is over: companions are told, and answered no more."""
        self._guard = None
        self._tell_state()
        if self._attachment is not None:
            self._attachment.detach()

    # ------------------------------------------------------------------ what the bus asks

    def snapshot(self) -> dict[str, Any]:
        """The context as companions see it (seeds, "Conditional native context targeting"); null is unavailable."""
        profile, live = self._client.profile, self._live()
        told = {
            "version": VERSION,
            "rootSessionId": None if live is None else profile.root_session_id,
            "peerId": (self._client.session_id or None) if live else None,
            "incarnation": None if live is None else live.incarnation,
            "connected": self._client.is_connected,
            "guardedDelivery": 1 if live and self._client.has_guard else None,
        }
        parent = {} if profile.parent_session_id is None else {"parentSessionId": profile.parent_session_id}
        return {**told, **parent, **({} if self._guard is None else {"applicationGuard": self._guard})}

    def set_application_guard(self, target: Mapping[str, Any], revision: str | None) -> None:
        """Consent, or its end, for exactly this context. Raises StaleTarget for any other."""
        own = self.snapshot()
        named = ("rootSessionId", "peerId", "incarnation")
        if self._live() is None or any(own[name] is None or target.get(name) != own[name] for name in named):
            raise StaleTarget
        self._guard = revision
        self._presenting.application_guard = revision
        self._presenting.note()
        self._tell_state()

    def attest(self, root_session_id: str, message_id: str) -> dict[str, Any]:
        """The receipt of a message, or why there is none, for a companion in this program."""
        answer = self._attest(root_session_id, message_id)
        return {"error": answer.code} if isinstance(answer, ReadError) else {"receipt": dump_record(answer)}

    # ------------------------------------------------------------------ messages

    async def _take_message(self, inbound: Inbound) -> None:
        errand = find_errand(inbound.message, self._tenure.key)
        if errand is not None:
            self._begin(run_errand(self._client, self._tenure, inbound, errand))
            return
        self._presenting.note_activity(now_ms())
        # Consent may have been withdrawn after the broker's look: this is the last moment before a checkpoint.
        fault = find_fault(inbound.message, self._describe_own())
        if fault is not None:
            self._errors.report(f"guarded message {inbound.message.id}", f"{fault.code}: {fault.reason}")
            return
        await self._tenure.engine.admit(inbound)

    def _describe_own(self) -> OwnContext:
        profile, live = self._client.profile, self._live()
        guard = {} if self._guard is None else {"application_guard": self._guard}
        return OwnContext(
            root_session_id=profile.root_session_id or "",
            peer_id=self._client.session_id,
            incarnation="" if live is None else live.incarnation,
            is_main=profile.parent_session_id is None,
            is_live=live is not None,
            is_negotiated=self._client.has_guard,
            **guard,
        )

    def _live(self) -> Live | None:
        found = self._tenure.inbox.context
        return found if isinstance(found, Live) else None

    # ------------------------------------------------------------------ everything else

    def _take_notice(self, event: Record) -> None:
        if isinstance(event, AskEnded) and event.reason == _EVICTED:
            return
        # A broker with our extensions says which questions ended with their askers; some outlive them.
        if isinstance(event, AskEnded) or (isinstance(event, PeerLeft) and not self._client.has_ext):
            self._tenure.engine.happen(event)
        if self._watchers.on_notice is not None:
            self._watchers.on_notice(event)

    async def _serve(self, asked: ReadAsked) -> None:
        if asked.kind == LAST:
            answer = await serving.read_last(self._host, asked)
        else:
            # What came before the question counts, once it is stored.
            await self._tenure.engine.flush()
            answer = self._attest(asked.root_session_id or "", asked.message_id or "")
        await self._client.answer_read(asked.token, answer)

    def _attest(self, root_session_id: str, message_id: str) -> serving.ReadAnswer:
        live = self._live()
        return serving.attest(
            None if live is None else self._tenure.engine.ledger,
            root=self._client.profile.root_session_id or "",
            session=self._tenure.live.session,
            root_session_id=root_session_id,
            message_id=message_id,
        )

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_done)

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, IntercomError):
            self._errors.report("answering", f"{type(failure).__name__}: {failure}")

    def _tell_state(self) -> None:
        # From the loop itself: what an observer raises must not end the reading of the connection.
        if self._attachment is not None:
            asyncio.get_running_loop().call_soon(self._attachment.tell_state)
