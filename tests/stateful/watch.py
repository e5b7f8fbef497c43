"""What an invariant is: something that looks at everything and cries when it does not hold.

Owns the shape of a watch. Does not own any invariant (``message_watches``, ``session_watches``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from intercomd.core import effects
    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from tests.stateful.world import World

# A row and a message both begin with the id.
ID = re.compile(rb'"id":"([^"]+)"')
# What answers a send.
ACKS = ("delivered", "delivery_queued", "delivery_failed")


class Violation(AssertionError):
    """An invariant does not hold; ``invariant`` is its watch's name."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant, self.what = invariant, what

    def __reduce__(self) -> tuple[Any, ...]:
        return Violation, (self.invariant, self.what)


class Watch:
    """One invariant."""

    name = ""

    def event(self, world: World, event: Event) -> None:
        """Something is about to be decided."""

    def effect(self, world: World, effect: Effect) -> None:
        """Something is about to be carried out."""

    def rest(self, world: World) -> None:
        """Nothing more happens by itself."""

    def end(self, world: World) -> None:
        """Everybody has left and all deadlines have fired."""

    def survive(self) -> Watch:
        """The broker was killed and another one began: what of this watch looks at that."""
        return type(self)()

    def require(self, holds: object, what: str) -> None:
        if not holds:
            raise Violation(self.name, what)


def named(delivery: effects.Deliver) -> tuple[str, str]:
    """Sender and id of the message in a delivery."""
    sender, message = ID.search(delivery.sender), ID.search(delivery.message)
    assert sender
    assert message
    return sender[1].decode(), message[1].decode()
