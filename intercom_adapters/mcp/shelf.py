"""Messages for an agent that nobody can push to: they wait here until it looks (sessions.md section 2, ``promptOnly``).

Owns what waits unshown and in what order, and what may have been shown without anybody having written it down. Does
not own the text of a showing (``showing``) nor the journal behind the session.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from libintercom.session.host import Absent, CannotTell, EmptyHistory, Placement
from libintercom.wire.messages import Host as Abilities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from libintercom.session.host import Finding, Placeable, Response

# A mark file holds the IDs of one showing; what is longer was not written by us.
_MOST_MARK_BYTES = 1024 * 1024


class Marks:
    """The IDs of the messages that are being shown, on disk until their placement is: "" for the path keeps none.

    Between a result that was written and a placement that was not, only this file knows that the agent may have the
    message.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.earlier = frozenset(self._read())

    def write(self, message_ids: Iterable[str]) -> None:
        """Remember these before they are shown, for as long as the disk holds.

        Raises:
            OSError: it cannot be written; then nothing may be shown.

        """
        if not self._path:
            return
        kept = sorted({*message_ids, *self.earlier})
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        draft = f"{self._path}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, json.dumps(kept).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, self._path)

    def clear(self) -> None:
        """Every showing is written down; those of an earlier start that are not stay marked."""
        if self._path and self.earlier:
            self.write(())
        elif self._path and os.path.exists(self._path):
            os.unlink(self._path)

    def forget(self, message_id: str) -> None:
        """An earlier start's message is settled."""
        self.earlier -= {message_id}

    def _read(self) -> list[str]:
        try:
            with open(self._path, "rb") as file:
                kept = json.loads(file.read(_MOST_MARK_BYTES))
        except (OSError, ValueError):
            return []
        return [one for one in kept if isinstance(one, str)] if isinstance(kept, list) else []


class Shelf:
    """The host of such an agent. Nothing is placed when it comes in; a showing places it."""

    def __init__(self, marks: Marks) -> None:
        self.abilities = Abilities(steer=False, wake=False, turn_end=False, prompt_only=True)
        self._marks = marks
        self._waiting: dict[str, Placeable] = {}
        # Shown in a result that is not written yet.
        self._in_hand: set[str] = set()

    # ------------------------------------------------------------------ the session's side

    def can_accept_asks(self) -> bool:
        """A question is looked at with the agent's next call: an asker may wait for that."""
        return True

    def place(self, batch: Sequence[Placeable]) -> Placement:
        """Take messages in; none of them is placed yet."""
        self._waiting.update((one.message_id, one) for one in batch)
        return Placement(entries={})

    def find_placement(self, message_id: str) -> Finding:
        """What an earlier start showed is only known for what it had begun to show."""
        if message_id in self._marks.earlier:
            return CannotTell(reason="it was being shown when the server ended")
        return Absent()

    def wake(self) -> None:
        """Nobody can: the next result of any call says that messages wait."""

    def last_response(self, _entry: str | None, _offset: int, _limit: int) -> Response:
        """An agent's responses never pass through its tool server."""
        return EmptyHistory()

    # ------------------------------------------------------------------ the tool's side

    def __len__(self) -> int:
        return len(self.unshown())

    def unshown(self) -> list[Placeable]:
        """What waits and is in no result that is on its way, oldest first."""
        return [one for message_id, one in self._waiting.items() if message_id not in self._in_hand]

    def discard(self, message_id: str) -> None:
        """It is not to be shown any more."""
        self._waiting.pop(message_id, None)

    def take(self, message_ids: Sequence[str]) -> None:
        """These are about to be shown. Raises OSError as ``Marks.write``; then nothing was taken."""
        self._marks.write({*self._in_hand, *message_ids})
        self._in_hand.update(message_ids)

    def put_back(self, message_ids: Iterable[str]) -> None:
        """The result that showed these was never written."""
        self._in_hand.difference_update(message_ids)
        self._remark()

    def settle(self, message_ids: Iterable[str]) -> None:
        """The placement of these is written down."""
        for message_id in message_ids:
            self._waiting.pop(message_id, None)
            self._in_hand.discard(message_id)
        self._remark()

    def _remark(self) -> None:
        if self._in_hand:
            self._marks.write(self._in_hand)
        else:
            self._marks.clear()
