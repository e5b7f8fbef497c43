"""The host of an agent that nobody can push to: it reads when it calls ``pending``.

In the words of sessions.md section 2 it is ``promptOnly``. Owns the messages of one call: what the session handed over
for it, and the texts of long ones that are read page by page. Does not own what is shown of them (``showing``) nor what
waits (the session's journal does).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from libintercom.session.host import CannotTell, HostFailed, Placement
from libintercom.texts import TOOL_REPLY_CALL
from libintercom.wire.messages import Host as Abilities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from libintercom.session.host import Finding, HostInput, Response


class Shelf:
    """Nothing is placed when it is handed over: a message is once the result that shows it was written."""

    def __init__(self) -> None:
        self._batch: list[HostInput] = []
        self._arrival = asyncio.Event()
        # A message's frame is made anew each time it is handed over; its pages must be of one text.
        self._paged: dict[str, HostInput] = {}

    # ------------------------------------------------------------------ the session's side

    @property
    def abilities(self) -> Abilities:
        return Abilities(steer=False, wake=False, turn_end=False, prompt_only=True)

    @property
    def reply_call(self) -> str:
        return TOOL_REPLY_CALL

    def can_accept_asks(self) -> bool:
        """A question is looked at with the agent's next call; an asker may wait for that."""
        return True

    def place(self, batch: Sequence[HostInput]) -> Placement:
        """Take in what a call will show; none of it is placed yet."""
        self._batch.extend(self._paged.get(one.message_id, one) for one in batch)
        self._arrival.set()
        return Placement(entries={})

    def find_placement(self, _message_id: str) -> Finding:
        """Handed over and never heard of: the server ended between the two, with a result under way."""
        return CannotTell(reason="the server ended while it showed this message")

    def wake(self) -> None:
        """Nobody can: every result says that messages wait."""

    async def last_response(self, _entry: str | None, _offset: int, _limit: int) -> Response:
        raise HostFailed("the responses of an agent behind MCP are not known to its tool server")

    # ------------------------------------------------------------------ a call's side

    async def collect(self, timeout_s: float) -> list[HostInput]:
        """What the session hands over for this call; what came so far when that takes longer than ``timeout_s``."""
        if not self._batch:
            try:
                await asyncio.wait_for(self._arrival.wait(), timeout_s)
            except TimeoutError:
                pass
        self._arrival.clear()
        batch, self._batch = self._batch, []
        return batch

    def keep(self, message: HostInput) -> None:
        """This one is read page by page."""
        self._paged[message.message_id] = message

    def drop(self, message_ids: Iterable[str]) -> None:
        """These were shown to their end."""
        for message_id in message_ids:
            self._paged.pop(message_id, None)
