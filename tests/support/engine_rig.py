"""An engine with the real inbox, a ledger that waits for the test, and a host that does what it is told.

Owns putting them together and waiting until nothing is under way. Does not own what is expected of them.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from libintercom.session.background import BackgroundErrors
from libintercom.session.engine import Engine
from libintercom.session.inbox import Inbox
from libintercom.session.states import Live
from tests.support.fake_host import FakeHost
from tests.support.held_ledger import HeldLedger
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LIVE = Live(session="native", incarnation="i")


class Rig:
    """An engine (of ``kind``), its ledger and host, and what failed in the background."""

    def __init__(self, ledger: HeldLedger | None = None, host: Any = None, kind: type[Engine] = Engine) -> None:
        self.ledger = HeldLedger() if ledger is None else ledger
        self.host = FakeHost() if host is None else host
        self.failures: list[str] = []
        self.changes = self.mends = 0
        ids = (f"entry-{number}" for number in itertools.count())
        errors = BackgroundErrors(lambda error: self.failures.append(error.reason))
        self.engine = kind(
            Inbox(LIVE, self.host.abilities, lambda: next(ids)),
            self.ledger,
            self.host,
            errors,
            generation=LIVE.incarnation,
            mend=self.mend,
            now_ms=lambda: 1_000,
            on_change=self.note_change,
        )
        self.engine.recover()

    async def mend(self) -> None:
        self.mends += 1

    def note_change(self) -> None:
        self.changes += 1

    async def settled(self) -> None:
        """Wait until every checkpoint and host call so far has ended."""
        await wait_until_async(
            lambda: not self.engine._storing and self.engine._placing.is_idle, "everything under way to end"
        )

    @property
    def pending(self) -> list[str]:
        return [view.message_id for view in self.engine.inbox.tracker.views()]


def play(story: Callable[[Rig], Awaitable[None]], **parts: Any) -> Rig:
    async def run() -> Rig:
        rig = Rig(**parts)
        await asyncio.wait_for(story(rig), 10)
        return rig

    return asyncio.run(run())
