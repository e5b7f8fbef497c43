"""A host that does what a test tells it, and remembers what was asked of it.

Owns no rule of the contract: ``tests/unit/libintercom/session/test_host.py`` holds it to the same one as ``QueueHost``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libintercom.session.host import Absent, EmptyHistory, Placement
from libintercom.wire.messages import Host as Abilities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from libintercom.session.host import HostInput


class FakeHost:
    """Places what it gets at once under ``e-ID``, unless ``on_place`` says otherwise."""

    reply_call = ""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.wakes = 0
        self.accepts_asks = True
        self.finding: Any = Absent()
        self.response: Any = EmptyHistory()
        self.on_place: Callable[[Sequence[HostInput]], Any] = lambda batch: Placement(
            entries={one.message_id: f"e-{one.message_id}" for one in batch}
        )

    @property
    def abilities(self) -> Abilities:
        return Abilities(steer=True, wake=True, turn_end=True, prompt_only=False)

    def can_accept_asks(self) -> bool:
        return self.accepts_asks

    def place(self, batch: Sequence[HostInput]) -> Any:
        self.batches.append([one.message_id for one in batch])
        return self.on_place(batch)

    def find_placement(self, message_id: str) -> Any:
        return self.finding(message_id) if callable(self.finding) else self.finding

    def wake(self) -> None:
        self.wakes += 1

    def last_response(self, entry: str | None, offset: int, limit: int) -> Any:
        return self.response(entry, offset, limit) if callable(self.response) else self.response
