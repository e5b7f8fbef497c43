"""What others see of a session while it runs: how many questions wait, whether it takes more, when it last spoke.

Owns keeping these three true at the broker, merged to one presence for all that changed in a turn of the loop. Does not
own what a program publishes by itself (name, status, model).
"""

from __future__ import annotations

import asyncio

from libintercom.errors import Disconnected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from libintercom.aio import AsyncClient


class Presenting:
    """``count_asks`` and ``takes_asks`` are looked at whenever something may have changed (``note``).

    ``accepts_asks``: what the program decided, above what its host says; None leaves it to the host.
    """

    def __init__(self, client: AsyncClient, count_asks: Callable[[], int], takes_asks: Callable[[], bool]) -> None:
        self._client, self._count_asks, self._takes_asks = client, count_asks, takes_asks
        self.accepts_asks: bool | None = None
        self._active_at_ms = 0
        self._publishing: asyncio.Task[None] | None = None

    def members(self) -> dict[str, Any]:
        """The members of a presence, or of a registration, as they are now."""
        accepts = self._takes_asks() if self.accepts_asks is None else self.accepts_asks
        told: dict[str, Any] = {"pending_asks": self._count_asks(), "accepts_asks": accepts}
        if self._active_at_ms:
            told["last_intercom_activity"] = self._active_at_ms
        return told

    def note_activity(self, at_ms: int) -> None:
        """A message came or left. The broker moves its own row; ours is said with the next presence."""
        self._active_at_ms = at_ms

    def note(self) -> None:
        """Something may have changed."""
        if self._publishing is None:
            self._publishing = asyncio.get_running_loop().create_task(self._publish())

    async def _publish(self) -> None:
        self._publishing = None
        profile, members = self._client.profile, self.members()
        if (profile.pending_asks, profile.accepts_asks) == (members["pending_asks"], members["accepts_asks"]):
            return
        try:
            await self._client.presence(**members)
        except Disconnected:
            # Kept by the client: the next registration says it.
            pass
