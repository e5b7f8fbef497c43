"""What writing to sockets showed in one turn, as events in the order in which the core must hear them.

Owns collecting it. Does not own writing (``output``) nor when it is reported (``listener``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.events import ConnectionsLost, DeliveriesHeld, DeliveriesTaken

if TYPE_CHECKING:
    from intercomd.core.events import Event


class Seen:
    """What writing showed: tokens taken, tokens held after a first try, peers lost, and the rest as events."""

    __slots__ = ("held", "lost", "rest", "taken")

    def __init__(self, taken: list[int] | None = None) -> None:
        self.taken: list[int] = [] if taken is None else taken
        self.held: list[int] = []
        self.lost: list[int] = []
        self.rest: list[Event] = []

    def events(self) -> list[Event]:
        """All of it in the order in which the core must hear it: what was delivered before whose socket ended."""
        observed: list[Event] = [DeliveriesTaken(tuple(self.taken))] if self.taken else []
        if self.held:
            observed.append(DeliveriesHeld(tuple(self.held)))
        if len(self.lost) > 1:
            observed.append(ConnectionsLost(tuple(self.lost)))
        return observed + self.rest
