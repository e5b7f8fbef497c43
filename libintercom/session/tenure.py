"""One native session in one incarnation at work: its memory, its inbox, its host, from recovery to detaching.

Owns the order of its beginning and of its end. A session that is replaced gets a new one. Does not own the connection
(``aio``) nor any decision.
"""

from __future__ import annotations

import os

from libintercom.identity import make_uuid
from libintercom.member import now_ms
from libintercom.session import errands, happenings
from libintercom.session.engine import Engine
from libintercom.session.faults import reach
from libintercom.session.feed import Feed
from libintercom.session.host import QueueHost
from libintercom.session.inbox import Inbox
from libintercom.session.opening import close_ledger, open_ledger, reopen_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from libintercom.session.background import BackgroundErrors
    from libintercom.session.host import Host
    from libintercom.session.opening import Ledger, Opened
    from libintercom.session.options import Chosen
    from libintercom.session.states import Live

# How long what was begun may take to end: a host's call is given up sooner (``placing``), the disk needs a moment.
SHUTDOWN_TIMEOUT_S = 10.0
BADGE, SHUTDOWN = "badge", "shutdown"
_HOST_BUSY = f"the host did not end what it began in {SHUTDOWN_TIMEOUT_S:g} s; the next start asks it what it has"


class Tenure:
    """``key``: of this holder's errands, ``""`` where there is no journal whose pending questions one could ask for."""

    def __init__(
        self, live: Live, opened: Opened, host: Host, errors: BackgroundErrors, on_change: Callable[[], object]
    ) -> None:
        self.live, self.note = live, opened.note
        self.key = errands.make_key() if opened.folder else ""
        self.inbox = Inbox(live, host.abilities, make_uuid)
        self.engine = Engine(
            self.inbox,
            opened.ledger,
            host,
            errors,
            generation=live.incarnation,
            mend=self._mend,
            now_ms=now_ms,
            on_change=on_change,
        )
        self.feed = (
            Feed(host, self.engine.happen, self.engine.record_placement) if isinstance(host, QueueHost) else None
        )
        if isinstance(host, QueueHost):
            host.open()
        self._host, self._errors, self._opened, self._pid = host, errors, opened, os.getpid()

    @classmethod
    async def begin(cls, live: Live, chosen: Chosen, on_change: Callable[[], object]) -> Tenure:
        """Open the memory and take up what an earlier run left."""
        opened = await open_ledger(live.session, chosen.journal, chosen.journal_folder)
        tenure = cls(live, opened, chosen.host, chosen.errors, on_change)
        try:
            tenure.engine.recover()
        except BaseException:
            await tenure.release()
            raise
        return tenure

    def put_up_badge(self, peer_id: str) -> None:
        """Say who holds the journal, and under which peer ID it can be asked."""
        if not self.key:
            return
        try:
            errands.write_badge(self._badge_path(), peer_id, self.key)
        except OSError as error:
            self._errors.report(BADGE, f"other programs of this session cannot ask it: {error}")
        else:
            self._errors.recover(BADGE)

    async def end(self) -> None:
        """Finish what was admitted, then let go of everything; what the program did not take is offered again."""
        await self.engine.settle_arrears()
        if isinstance(self._host, QueueHost):
            if self.feed is not None:
                await self.feed.stop()
            left = self._host.withdraw()
            if left:
                self.engine.happen(happenings.HostRefused(message_ids=left, reason="this session leaves"))
        if not await self.engine.shut_down(SHUTDOWN_TIMEOUT_S):
            self._errors.report(SHUTDOWN, _HOST_BUSY)
        reach("session.detached")
        await self.release()

    async def release(self) -> None:
        """Let go of the journal and take the badge down."""
        if self.key:
            try:
                os.unlink(self._badge_path())
            except OSError:
                # Gone, or not to be had: the next holder replaces it.
                pass
        await close_ledger(self._opened.ledger, self._pid)

    async def _mend(self) -> Ledger | None:
        """The journal, opened again; None where that does not help, or does not work yet."""
        reopened = await reopen_ledger(self._opened, self.live.session)
        if reopened is None:
            return None
        self._opened = reopened
        return reopened.ledger

    def _badge_path(self) -> str:
        return errands.badge_path(self._opened.folder, self.live.session)
