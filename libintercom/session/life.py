"""The life of a session: joined, replaced, left; what it is meanwhile, and who may call it.

Owns the order of beginning and ending, and the context's state (``states``). Does not own what a program says and
learns (``aio``), what arrives (``reception``) nor carrying out what an inbox decides (``tenure``).
"""

from __future__ import annotations

import asyncio
import os

from libintercom.aio import AsyncClient
from libintercom.identity import peer_id
from libintercom.session import states
from libintercom.session.errors import Forked, NotLive
from libintercom.session.faults import reach
from libintercom.session.reception import Reception
from libintercom.session.reconnecting import Line
from libintercom.session.tenure import Tenure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.profile import Profile
    from libintercom.session.host import Host
    from libintercom.session.options import Chosen
    from libintercom.session.states import Context, Live


class Life:
    """Base of ``AsyncSession``: for the loop that joined it, and the process."""

    def __init__(self, profile: Profile, native_id: str, chosen: Chosen) -> None:
        """For ``AsyncSession.join``."""
        self.native_id, self.host = native_id, chosen.host
        self._profile, self._chosen, self._errors = profile, chosen, chosen.errors
        self._pid = os.getpid()
        self._state: Context = states.Inactive()
        self._changing = asyncio.Lock()
        self._client: AsyncClient | None = None
        self._tenure: Tenure | None = None
        self._reception: Reception | None = None
        self._line: Line | None = None

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

    # ------------------------------------------------------------------ beginning and ending

    async def _start(self, incarnation: str) -> None:
        self._state = live = states.activate(states.clear(self._state), self.native_id, incarnation)
        try:
            self._tenure = tenure = await Tenure.begin(live, self._chosen, self._note_change)
            await self._connect(tenure)
        except BaseException:
            self._state = states.clear(states.invalidate(live))
            if self._tenure is not None:
                await self._tenure.release()
                self._tenure = None
            raise

    async def _connect(self, tenure: Tenure) -> None:
        described = _describe(self._profile, tenure.live, self.host)
        self._client = client = await AsyncClient.join(described, **self._chosen.client)
        reach("start.joined")
        self._reception = reception = Reception(client, tenure, self.host, self._errors, self._chosen.watchers)
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
        tenure.engine.hurry()
        await line.hang_up()
        reach("session.leaving")
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
            self._reception.note_change()

    # ------------------------------------------------------------------ who may call

    def check_owner(self) -> None:
        if os.getpid() != self._pid:
            raise Forked(self._pid)

    def _joined(self, during: str) -> AsyncClient:
        self.check_owner()
        if self._client is None:
            raise NotLive(during, "has left")
        return self._client

    def _working(self, during: str) -> Tenure:
        self.check_owner()
        if self._tenure is None:
            raise NotLive(during, "has left")
        return self._tenure

    def _receiving(self, during: str) -> Reception:
        self.check_owner()
        if self._reception is None:
            raise NotLive(during, "has left")
        return self._reception


def _describe(profile: Profile, live: Live, host: Host) -> Profile:
    """What is registered: identity and incarnation of this context, and what its host can do."""
    is_child = profile.parent_session_id is not None
    lineage = {} if is_child else {"root_session_id": live.session}
    return profile.replace(
        requested_id=peer_id(live.session),
        incarnation=live.incarnation,
        host=host.abilities,
        guarded_delivery=True,
        receipt_reads=True,
        serves_reads=True,
        **lineage,
    )
