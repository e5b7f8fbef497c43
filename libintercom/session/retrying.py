"""Trying again later: what a host refused, or a journal could not take.

Owns the pauses. Does not own what is tried (``engine``).
"""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

# The first pause; each next one is twice as long, up to the longest: a full disk is mended by people.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


class Retry:
    """One attempt at a time; ``attempt`` is begun when the pause is over."""

    def __init__(self, attempt: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._attempt = attempt
        self._pause_s = FIRST_PAUSE_S
        self._timer: asyncio.TimerHandle | None = None
        self._trying: asyncio.Task[None] | None = None
        self._is_stopped = self._is_wanted = False

    def arm(self) -> None:
        """Try again after a pause, unless that is under way already."""
        if self._trying is not None:
            self._is_wanted = True
        elif self._timer is None and not self._is_stopped:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._begin)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def reset(self) -> None:
        """Something worked: the next pause is the first one."""
        self._pause_s = FIRST_PAUSE_S

    def stop(self) -> None:
        """Try no more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._trying is not None:
            self._trying.cancel()

    def _begin(self) -> None:
        self._timer, self._is_wanted = None, False
        self._trying = asyncio.get_running_loop().create_task(self._try())

    async def _try(self) -> None:
        try:
            await self._attempt()
        finally:
            self._trying = None
            if self._is_wanted:
                self.arm()
