"""The messages that an inbox has in hand, in the order in which they were admitted. Pure.

Owns one message's place in memory and the questions asked over all of them. Does not own when something is offered
(``handovers``) nor what the journal says.
"""

from __future__ import annotations

from collections import OrderedDict

from libintercom.session.hashes import text_sha256
from libintercom.session.steps import Placeable
from libintercom.wire.values import js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from libintercom.inbound import Inbound

# Its first checkpoint is under way.
ADMITTING = "admitting"
# On record as ours, with us.
STAGED = "staged"
# The checkpoint that says it goes to the host is under way.
HANDING = "handing"
# With the host, which has not answered yet.
HANDED = "handed"
# The host was asked where it is.
SEEKING = "seeking"
# The host does not hold it; the checkpoint that says so is under way.
RETURNING = "returning"
# Nobody knows; a person decides.
UNCERTAIN = "uncertain"

# Between the decision to hand it over and the end of that.
IN_FLIGHT = (HANDING, HANDED, SEEKING, RETURNING)
STEER, PASSIVE = "steer", "passive"


class Item:
    """One message. ``is_locked``: a checkpoint that ends it is under way, so it is not offered."""

    __slots__ = ("inbound", "is_consumed", "is_locked", "received_at_ms", "state")

    def __init__(self, inbound: Inbound, received_at_ms: int, state: str) -> None:
        self.inbound, self.received_at_ms, self.state = inbound, received_at_ms, state
        self.is_locked = False
        # The host may tell that it was read before it tells where it put it.
        self.is_consumed = False

    @property
    def message_id(self) -> str:
        return self.inbound.message.id

    @property
    def delivery(self) -> str:
        """What the sender asked for; without a word, a steer (seeds, "Send, ask, and reply")."""
        message = self.inbound.message
        return PASSIVE if message.is_passive else message.delivery or STEER

    @property
    def thread(self) -> tuple[str, str] | None:
        """Whose updates of which thread it replaces; ``None``: it replaces nothing."""
        message = self.inbound.message
        return (self.inbound.row.id, js_trim(message.thread_id or "")) if message.is_replace else None

    @property
    def admission(self) -> dict[str, Any]:
        """The body of its first entry, but for what only the inbox knows."""
        raw = self.inbound.raw
        sha256 = text_sha256(self.inbound.message.content.text)
        return {"from": raw["from"], "message": raw["message"], "receivedAt": self.received_at_ms, "textSha256": sha256}

    def placeable(self, *, is_ask_open: bool) -> Placeable:
        return Placeable(
            message_id=self.message_id,
            inbound=self.inbound,
            delivery=self.delivery,
            is_ask_open=is_ask_open,
            received_at_ms=self.received_at_ms,
            text_sha256=text_sha256(self.inbound.message.content.text),
        )


class Backlog:
    """Items in admission order, by message ID."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, Item] = OrderedDict()

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._items

    def __iter__(self) -> Iterator[Item]:
        return iter(list(self._items.values()))

    def holds(self, item: Item) -> bool:
        return self._items.get(item.message_id) is item

    def add(self, item: Item) -> None:
        self._items[item.message_id] = item

    def drop(self, item: Item) -> None:
        """Let go of this very item: a message that was not stored may have come again since."""
        if self.holds(item):
            del self._items[item.message_id]

    def find(self, message_id: str) -> Item | None:
        return self._items.get(message_id)

    def in_states(self, *states: str) -> list[Item]:
        return [item for item in self if item.state in states]

    def has_in_flight(self) -> bool:
        return any(item.state in IN_FLIGHT for item in self._items.values())

    def staged_of(self, thread: tuple[str, str] | None) -> list[Item]:
        """What a newer update of the thread replaces: still with us, and not replaced or discarded already."""
        if thread is None:
            return []
        staged = self.in_states(ADMITTING, STAGED)
        return [item for item in staged if item.thread == thread and not item.is_locked]
