"""What others see of a session while it runs: how many questions wait, whether it takes more, its consent.

Owns keeping these true at the broker, merged to one presence for all that changed in a turn of the loop. Does not own
what a program publishes by itself (name, status, model).
"""

from __future__ import annotations

import asyncio

from libintercom.errors import Disconnected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.aio import AsyncClient
    from libintercom.session.host import Host
    from libintercom.session.inbox import Inbox


class Presenting:
    """What is looked at whenever something may have changed (``note``).

    ``accepts_asks``: what the program decided, above what its host says; None leaves it to the host.
    ``application_guard``: what a companion consented to, or None.
    """

    def __init__(self, client: AsyncClient, inbox: Inbox, host: Host) -> None:
        self._client, self._inbox, self._host = client, inbox, host
        self.accepts_asks: bool | None = None
        self.application_guard: str | None = None
        self._active_at_ms = 0
        self._published: dict[str, Any] = {}
        self._publishing: asyncio.Task[None] | None = None

    def note_activity(self, at_ms: int) -> None:
        """A message came or left. The broker moves its own row; ours is said with the next presence."""
        self._active_at_ms = at_ms

    def note(self) -> None:
        """Something may have changed."""
        if self._publishing is None:
            self._publishing = asyncio.get_running_loop().create_task(self._publish())

    async def settle(self) -> None:
        """Wait until what was noted is said."""
        if self._publishing is not None:
            await asyncio.wait([self._publishing])

    async def _publish(self) -> None:
        self._publishing = None
        members = self._members()
        if members == self._published:
            return
        active = {"last_intercom_activity": self._active_at_ms} if self._active_at_ms else {}
        try:
            self._published = members
            await self._client.presence(**members, **active)
        except Disconnected:
            # Kept by the client: the next registration says it.
            pass

    def _members(self) -> dict[str, Any]:
        accepts = self._host.can_accept_asks() if self.accepts_asks is None else self.accepts_asks
        told: dict[str, Any] = {"pending_asks": len(self._inbox.tracker), "accepts_asks": accepts}
        if self._client.has_guard:
            told["application_guard"] = self.application_guard
        return told
