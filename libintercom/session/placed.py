"""What a host holds and was not yet seen to read. Pure.

Owns turning the host's word "consumed" into entries, once per message. Does not own questions nor turns.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from libintercom.session import entries, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from libintercom.session.desk import Desk

# A host that never says what it read must not fill the memory: of more than this the oldest are forgotten, and their
# reading, should it ever be told, is not recorded. A turn reads far fewer.
MAX_UNREAD = 10_000


class PlacedInputs:
    """Message IDs in the order of placing."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._unread: OrderedDict[str, None] = OrderedDict()

    def add(self, message_id: str) -> None:
        self._unread[message_id] = None
        if len(self._unread) > MAX_UNREAD:
            self._unread.popitem(last=False)

    def consume(self, message_ids: Iterable[str]) -> None:
        """Record that these were read; what is not known here, or was told before, is nothing new."""
        read = [message_id for message_id in dict.fromkeys(message_ids) if message_id in self._unread]
        for message_id in read:
            del self._unread[message_id]
        if read:
            told = [self._desk.entry(message_id, entries.CONSUMED) for message_id in read]
            self._desk.checkpoint(told, self._recorded, partial(self._unrecorded, read))

    def _recorded(self) -> None:
        """Nothing waits for it."""

    def _unrecorded(self, message_ids: list[str], reason: str) -> None:
        for message_id in message_ids:
            self._desk.ask(steps.Report(message_id=message_id, code=steps.UNRECORDED, reason=reason))
