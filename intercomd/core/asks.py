"""Questions awaiting an answer: who waits for whom, who owes a reply, how each ends (wire.md 9.6).

Owns the wait-for graph and the obligations. An edge exists only while somebody waits; the recipient's
obligation is a record of its own and may outlive it. Each accepted ask ends exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from libintercom.wire.values import DEFAULT_ASK_TIMEOUT_MS, js_trim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from libintercom.wire.messages import Message

# How an ask ends; the first four are told to the recipient as ``ask_retired``.
TIMEOUT = "timeout"
CANCELLED = "cancelled"
ASKER_LEFT = "asker_left"
REPLACED = "replaced"
REPLIED = "replied"
RECIPIENT_LEFT = "recipient_left"
NOT_DELIVERED = "not_delivered"

AskKey = tuple[str, str]
_MS_PER_S = 1000


@dataclass(slots=True, eq=False)
class Ask:
    """One accepted question. ``is_waiting`` is its edge; the record itself is the recipient's obligation."""

    asker_id: str
    message_id: str
    recipient_id: str
    thread_id: str | None
    timeout_s: float
    # The default timer of an older client ends the edge only: it never said how long the question stands.
    is_timed: bool
    is_waiting: bool
    # Told to the recipient; before that (staged) its retirement concerns nobody.
    is_delivered: bool = False
    # Its reply is kept when it comes late (wire.md 9.7): neither time nor its asker's leaving retires it.
    is_kept: bool = False
    # How it ended, "" while it is open.
    ended_by: str = ""

    @property
    def key(self) -> AskKey:
        return (self.asker_id, self.message_id)


def ask_of(asker_id: str, recipient_id: str, message: Message, *, accepts_asks: bool | None, has_ext: bool) -> Ask:
    """The ask that a message makes; it waits unless ``timeoutMs`` is 0 or a default ask meets a busy recipient."""
    timeout_ms = DEFAULT_ASK_TIMEOUT_MS if message.timeout_ms is None else message.timeout_ms
    is_explicit = message.delivery is not None
    return Ask(
        asker_id=asker_id,
        message_id=message.id,
        recipient_id=recipient_id,
        thread_id=None if message.thread_id is None else js_trim(message.thread_id),
        timeout_s=timeout_ms / _MS_PER_S,
        is_timed=has_ext or message.timeout_ms is not None,
        is_waiting=timeout_ms != 0 and (is_explicit or accepts_asks is not False),
    )


class Asks:
    """Every open ask, by asker and by recipient."""

    def __init__(self) -> None:
        self._by_asker: dict[str, dict[str, Ask]] = {}
        self._by_recipient: dict[str, dict[AskKey, Ask]] = {}
        self._size = 0
        # How many edges there are.
        self.waiting = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Ask]:
        return (ask for asks in self._by_asker.values() for ask in asks.values())

    def find(self, asker_id: str, message_id: str) -> Ask | None:
        """An open ask."""
        return self._by_asker.get(asker_id, {}).get(message_id)

    def of_asker(self, asker_id: str) -> list[Ask]:
        """The open asks that a session made."""
        return list(self._by_asker.get(asker_id, {}).values())

    def of_recipient(self, recipient_id: str) -> list[Ask]:
        """The open asks that a session owes a reply to."""
        return list(self._by_recipient.get(recipient_id, {}).values())

    def count_of_asker(self, asker_id: str) -> int:
        return len(self._by_asker.get(asker_id, ()))

    def count_of_recipient(self, recipient_id: str) -> int:
        return len(self._by_recipient.get(recipient_id, ()))

    def open(self, ask: Ask) -> None:
        """An ask was accepted."""
        self._by_asker.setdefault(ask.asker_id, {})[ask.message_id] = ask
        self._by_recipient.setdefault(ask.recipient_id, {})[ask.key] = ask
        self._size += 1
        self.waiting += ask.is_waiting

    def stop_waiting(self, ask: Ask) -> None:
        """Nobody waits for the reply any more; the recipient still owes it."""
        self.waiting -= ask.is_waiting
        ask.is_waiting = False

    def close(self, ask: Ask) -> None:
        """An ask ended."""
        self._size -= 1
        self.waiting -= ask.is_waiting
        for table, owner, key in (
            (self._by_asker, ask.asker_id, ask.message_id),
            (self._by_recipient, ask.recipient_id, ask.key),
        ):
            own: dict[object, Ask] = table[owner]  # type: ignore[assignment]
            del own[key]
            if not own:
                del table[owner]

    def cycle(self, asker_id: str, recipient_id: str, without: Ask | None = None) -> list[str]:
        """The chain of waiting sessions from ``recipient_id`` back to ``asker_id``; empty when none.

        It is what a new edge from the asker to the recipient would close; the edge of ``without`` is not counted.
        """
        came_from: dict[str, str] = {recipient_id: ""}
        frontier = [recipient_id]
        while frontier:
            waiter = frontier.pop()
            for ask in self._by_asker.get(waiter, {}).values():
                if not ask.is_waiting or ask is without or ask.recipient_id in came_from:
                    continue
                came_from[ask.recipient_id] = waiter
                if ask.recipient_id == asker_id:
                    return _chain(came_from, waiter)
                frontier.append(ask.recipient_id)
        return []


def _chain(came_from: dict[str, str], last: str) -> list[str]:
    chain = [last]
    while came_from[chain[-1]]:
        chain.append(came_from[chain[-1]])
    return chain[::-1]
