"""The messages that an inbox has in hand, in the order in which they were admitted. Pure.

Owns one message's place in memory, its state there, and the questions asked over all of them. Does not own when
something is offered (``handovers``) nor what the journal says.
"""

from __future__ import annotations

from libintercom.session.hashes import text_sha256
from libintercom.session.steps import Placeable
from libintercom.wire.messages import DELIVERIES
from libintercom.wire.values import js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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

    __slots__ = (
        "delivery",
        "inbound",
        "is_admitted",
        "is_consumed",
        "is_locked",
        "order",
        "received_at_ms",
        "sha256",
        "state",
    )

    def __init__(self, inbound: Inbound, received_at_ms: int, state: str) -> None:
        self.inbound, self.received_at_ms, self.state = inbound, received_at_ms, state
        message = inbound.message
        # Without a word, a steer (seeds, "Send, ask, and reply").
        self.delivery = PASSIVE if message.is_passive else message.delivery or STEER
        self.order = 0
        # A long text is hashed once.
        self.sha256 = text_sha256(message.content.text)
        self.is_locked = False
        # Its first checkpoint is durable; one that goes out at once is handed over by the same.
        self.is_admitted = False
        # The host may tell that it was read before it tells where it put it.
        self.is_consumed = False

    @property
    def message_id(self) -> str:
        return self.inbound.message.id

    @property
    def thread(self) -> tuple[str, str] | None:
        """Whose updates of which thread it replaces; ``None``: it replaces nothing."""
        message = self.inbound.message
        return (self.inbound.row.id, js_trim(message.thread_id or "")) if message.is_replace else None

    @property
    def admission(self) -> dict[str, Any]:
        """The body of its first entry, but for what only the inbox knows."""
        raw = self.inbound.raw
        received = {"receivedAt": self.received_at_ms, "textSha256": self.sha256}
        return {"from": raw["from"], "message": raw["message"], **received}

    def placeable(self, *, is_ask_open: bool) -> Placeable:
        return Placeable(
            message_id=self.message_id,
            inbound=self.inbound,
            delivery=self.delivery,
            is_ask_open=is_ask_open,
            received_at_ms=self.received_at_ms,
            text_sha256=self.sha256,
        )


class Backlog:
    """Items by message ID, and by state and delivery: what every message asks costs the same however many wait."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._places: dict[tuple[str, str], dict[str, Item]] = {}
        self._threads: dict[tuple[str, str], dict[str, Item]] = {}
        self._added = 0

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._items

    def __iter__(self) -> Iterator[Item]:
        return iter(list(self._items.values()))

    def add(self, item: Item) -> None:
        """Take in a message behind all others."""
        self._added += 1
        item.order = self._added
        self._items[item.message_id] = item
        self._place_of(item)[item.message_id] = item
        if item.thread is not None:
            self._threads.setdefault(item.thread, {})[item.message_id] = item

    def holds(self, item: Item) -> bool:
        return self._items.get(item.message_id) is item

    def move(self, item: Item, state: str) -> None:
        """Change an item's state; one that was let go of changes for nobody."""
        if self.holds(item):
            del self._place_of(item)[item.message_id]
        item.state = state
        if self.holds(item):
            self._place_of(item)[item.message_id] = item

    def drop(self, item: Item) -> None:
        """Let go of this very item: a message that was not stored may have come again since."""
        if self.holds(item):
            del self._items[item.message_id], self._place_of(item)[item.message_id]
            thread = self._threads.get(item.thread, {}) if item.thread else {}
            thread.pop(item.message_id, None)
            if item.thread and not thread:
                del self._threads[item.thread]

    def find(self, message_id: str) -> Item | None:
        return self._items.get(message_id)

    def in_states(self, *states: str, deliveries: Sequence[str] = DELIVERIES) -> list[Item]:
        """Items in admission order."""
        places = [self._places.get((state, delivery), {}) for state in states for delivery in deliveries]
        return sorted((item for place in places for item in place.values()), key=lambda item: item.order)

    def has_any(self, *states: str, deliveries: Sequence[str] = DELIVERIES) -> bool:
        return any(self._places.get((state, delivery)) for state in states for delivery in deliveries)

    def has_in_flight(self) -> bool:
        return self.has_any(*IN_FLIGHT)

    def staged_of(self, thread: tuple[str, str] | None) -> list[Item]:
        """What a newer update of the thread replaces: still with us, and not replaced or discarded already."""
        items = list(self._threads.get(thread, {}).values()) if thread else []
        return [item for item in items if item.state in (ADMITTING, STAGED) and not item.is_locked]

    def _place_of(self, item: Item) -> dict[str, Item]:
        return self._places.setdefault((item.state, item.delivery), {})
