"""Messages for an inbox, an inbox whose every ID is known beforehand, and a short way to tell it things.

Owns building what tests of ``libintercom.session`` hand in. Does not own what they expect.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from libintercom.inbound import Inbound
from libintercom.session import happenings, steps
from libintercom.session.entries import Entry, Standing, extend
from libintercom.session.inbox import Inbox
from libintercom.session.states import Live
from libintercom.session.steps import Checkpoint
from libintercom.wire.messages import Host, Message, Row
from libintercom.wire.record import parse_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from libintercom.wire.record import Record

SESSION = "native-1"
GENERATION = "g1"
NOW_MS = 1_700_000_000_000
FULL = Host(steer=True, wake=True, turn_end=True)


def inbound(message_id: str, text: str = "hi", *, sender: str = "pi-ann00001", **members: Any) -> Inbound:
    """A message as it came: ``members`` are those of the wire."""
    row = {"id": sender, "name": "ann", "cwd": "/work", "model": "model-a"}
    message = {"id": message_id, "timestamp": NOW_MS, "content": {"text": text}, **members}
    raw = {"from": row, "message": message}
    return Inbound(row=parse_record(Row, row), message=parse_record(Message, message), raw=raw)


def fold_all(
    entries: Iterable[Entry], before: dict[str, Standing] | None = None, begin: int = 0
) -> dict[str, Standing]:
    """What a journal knows, by message ID: ``before`` (of ``begin`` entries), and then these entries."""
    standings = dict(before or {})
    for order, entry in enumerate(entries, start=begin):
        standings[entry.message_id] = extend(standings.get(entry.message_id), entry, order=order)
    return standings


class InboxRig:
    """An inbox with a journal in memory. ``steps`` are what it asked for since the last look."""

    def __init__(self, abilities: Host = FULL, *, is_recovered: bool = True) -> None:
        self._numbers = itertools.count(1)
        self.entries: list[Entry] = []
        self.inbox = Inbox(Live(session=SESSION, incarnation=GENERATION), abilities, self._new_id)
        if is_recovered:
            self.tell(happenings.Recovered(standings=()))

    def _new_id(self) -> str:
        return f"e{next(self._numbers)}"

    def tell(self, happened: Record, generation: str = GENERATION) -> list[Record]:
        """One happening, nothing stored."""
        return self.inbox.handle(happened, NOW_MS, generation)

    def does(self, happened: Record) -> list[Record]:
        """One happening, and everything stored that follows from it; what else was asked for."""
        asked: list[Record] = []
        waiting = self.tell(happened)
        while waiting:
            step = waiting.pop(0)
            if isinstance(step, Checkpoint):
                self.entries += step.entries
                waiting += self.tell(happenings.Checkpointed(entry_ids=step.entry_ids))
            else:
                asked.append(step)
        return asked

    def arrives(self, message_id: str, text: str = "hi", **members: Any) -> list[Record]:
        """A message comes and is stored."""
        return self.does(happenings.Arrived(inbound=inbound(message_id, text, **members)))

    def kinds(self, message_id: str) -> list[str]:
        """What is on record of one message."""
        return [entry.kind for entry in self.entries if entry.message_id == message_id]


def names(asked: list[Any]) -> list[str]:
    return [type(step).__name__ for step in asked]


def batches(asked: list[Any]) -> list[list[str]]:
    return [[one.message_id for one in step.batch] for step in asked if isinstance(step, steps.Place)]


def took(*message_ids: str) -> happenings.HostPlaced:
    return happenings.HostPlaced(placements={message_id: f"h-{message_id}" for message_id in message_ids})


def reopened(rig: InboxRig, abilities: Host = FULL) -> tuple[InboxRig, list[Any]]:
    """A new start with what is on record; what it asks for at once."""
    again = InboxRig(abilities, is_recovered=False)
    again._numbers = itertools.count(1_000)
    again.entries = list(rig.entries)
    unfinished = [one for one in fold_all(rig.entries).values() if one.is_unfinished]
    return again, again.does(happenings.Recovered(standings=tuple(sorted(unfinished, key=lambda one: one.order))))


def ended_turn(*consumed: str, is_ok: bool = True) -> happenings.TurnEnded:
    return happenings.TurnEnded(is_ok=is_ok, consumed_ids=consumed)
