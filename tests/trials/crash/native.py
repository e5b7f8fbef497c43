"""A host with a history of its own: one append-only file, which outlives every life of the session.

Owns the file and the host's moods: it confirms at once or behind its back, refuses, breaks off, or cannot tell. Does
not own where a life ends (``recipient``).
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

from libintercom.identity import make_uuid
from libintercom.session.host import Absent, CannotTell, EmptyHistory, HostFailed, HostRefused, Placed, Placement
from libintercom.wire.messages import Host as Abilities

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from libintercom.session.host import HostInput

# How a host knows what it was given: from its file, or not at all.
KNOWS, CANNOT_TELL = "knows", "cannot tell"
# When it says that it has a batch: with its answer, or some time later.
AT_ONCE, LATER = "at once", "later"
# How often a moody host refuses, and how often its call breaks off before or behind the writing.
_REFUSES, _BREAKS_BEFORE, _BREAKS_BEHIND = 0.05, 0.09, 0.13
_LATER_S = 0.004


class History:
    """The file: one line of JSON for each input. A kill can end a write between two pages: half a line is none."""

    def __init__(self, path: str, life: int) -> None:
        self._life = life
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.ftruncate(self._descriptor, sum(map(len, _whole_lines(path))))
        self._entries = {line["id"]: line["entry"] for line in read_history(path)}

    def write(self, one: Any) -> str:
        """Take a message in; the entry's ID."""
        entry = make_uuid()
        text = one.inbound.message.content.text if hasattr(one, "inbound") else one.message.content.text
        message_id = one.message_id if hasattr(one, "message_id") else one.message.id
        line = {"id": message_id, "entry": entry, "text": text, "life": self._life}
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")
        self._entries[message_id] = entry
        return entry

    def find(self, message_id: str) -> str | None:
        return self._entries.get(message_id)


def read_history(path: str) -> list[dict[str, Any]]:
    """Every whole line, oldest first; none when there is no file yet."""
    return [json.loads(line) for line in _whole_lines(path)]


def _whole_lines(path: str) -> list[bytes]:
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return [line for line in file if line.endswith(b"\n")]


class FileHost:
    """``on_half``: called between the first and the second message of a batch; ``on_wake``: when a turn may begin.

    ``on_placed`` gets what is said later.
    """

    reply_call = ""

    def __init__(self, history: History, order: dict[str, Any], dice: random.Random) -> None:
        self._history, self._order, self._dice = history, order, dice
        self.abilities = Abilities(steer=order["steer"], wake=True, turn_end=True, prompt_only=False)
        self.on_half: Callable[[], object] = lambda: None
        self.on_wake: Callable[[], object] = lambda: None
        self.on_placed: Callable[[dict[str, str]], object] = lambda _entries: None
        self.unread: list[str] = []
        self.is_joined = asyncio.Event()
        self._late: asyncio.Task[None] | None = None

    def can_accept_asks(self) -> bool:
        return True

    def place(self, batch: Sequence[HostInput]) -> Placement:
        mood = self._dice.random() if self._order["moods"] else 1.0
        if mood < _REFUSES:
            raise HostRefused("not in the mood")
        if mood < _BREAKS_BEFORE:
            raise HostFailed("broke off before it wrote")
        if self._order["confirms"] == LATER:
            self._late = asyncio.get_running_loop().create_task(self._place_later(batch))
            return Placement(entries={})
        entries = self._write(batch)
        if mood < _BREAKS_BEHIND:
            raise HostFailed("broke off behind the writing")
        return Placement(entries=entries)

    async def _place_later(self, batch: Sequence[HostInput]) -> None:
        await asyncio.sleep(self._dice.uniform(0.0, _LATER_S))
        for one in batch:
            entries = self._write([one])
            # A batch of an earlier run may come before this one's joining has returned.
            await self.is_joined.wait()
            self.on_placed(entries)

    def _write(self, batch: Sequence[HostInput]) -> dict[str, str]:
        entries = {}
        for number, one in enumerate(batch):
            if number == 1:
                self.on_half()
            entries[one.message_id] = self._history.write(one)
            self.unread.append(one.message_id)
        return entries

    def find_placement(self, message_id: str) -> Placed | Absent | CannotTell:
        if self._order["finds"] == CANNOT_TELL:
            return CannotTell(reason="its history is not searched")
        entry = self._history.find(message_id)
        return Absent() if entry is None else Placed(entry_id=entry)

    def wake(self) -> None:
        self.on_wake()

    def last_response(self, entry: str | None, offset: int, limit: int) -> EmptyHistory:
        return EmptyHistory()
