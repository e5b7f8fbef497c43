"""Faults that the judgement must see, each put into the recipient's own process.

Owns the faults by name. Does not own seeing them (``judgement``, ``test_crash``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libintercom.session import admissions, answers, entries, happenings, receipts, serving
from libintercom.session.engine import Engine
from libintercom.session.journal import Journal, writer
from libintercom.session.placing import Placing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from libintercom.session.journal.store import EntryRow


def plant(name: str) -> None:
    """Put a fault into this process; nothing for ``""``."""
    if name:
        PLANTS[name]()


def _acknowledge_before_commit() -> None:
    write = writer.Writer._write

    def write_late(self: writer.Writer, rows: list[EntryRow]) -> None:
        for job in self._current:
            job.pending.settle()
        write(self, rows)

    writer.Writer._write = write_late


def _offer_before_checkpoint() -> None:
    def store(self: Any, stored: Sequence[Any]) -> None:
        ids = tuple(entry.entry_id for entry in stored)
        self._storing[ids] = stored
        for entry in stored:
            self._count(entry)
        self.ledger.append(stored)
        self._loop.call_soon(self._settle, ids, None)

    Engine._store = store


def _place_again_without_asking() -> None:
    def add(self: Any, message_id: str) -> None:
        self._tell(happenings.PlacementAbsent(message_id=message_id))

    Placing.find = lambda self, message_id: self._loop_soon(add, message_id)
    Placing._loop_soon = lambda self, call, message_id: _soon(call, self, message_id)


def _soon(call: Callable[..., None], *arguments: Any) -> None:
    import asyncio

    asyncio.get_running_loop().call_soon(call, *arguments)


def _claim_placement() -> None:
    make = receipts.make_receipt

    def claim(rows: Any, **asked: Any) -> Any:
        made = make(rows, **asked)
        return made.replace(placement_entry_id="claimed") if hasattr(made, "queued") else made

    serving.make_receipt = claim


def _attest_before_commit() -> None:
    def appended_rows(self: Journal, message_id: str) -> list[Any]:
        stored = {number: entry for number, entry, _size in self._view.chain(self._place(message_id)[1])}
        stored.update(self._look_up(message_id).waiting)
        return [stored[number] for number in sorted(stored)]

    Journal.receipt_rows = appended_rows
    Engine.flush = _no_flush


async def _no_flush(_self: Engine) -> None:
    """Wait for nothing."""


def _forget_what_was_admitted() -> None:
    admissions.Admissions._known_as = lambda *_asked: ""
    entries.FOLLOWERS.update({kind: (*after, entries.ADMITTED) for kind, after in entries.FOLLOWERS.items()})


def _revive_answered() -> None:
    entries.Standing.is_open_ask = property(lambda self: self.is_ask)
    unfinished = Journal.unfinished
    Journal.unfinished = lambda self: _with_all(self, unfinished)


def _with_all(journal: Journal, unfinished: Callable[[Journal], Iterator[Any]]) -> Iterator[Any]:
    """Everything that was ever admitted, in order."""
    known = {row[0] for row in journal._connection.execute("SELECT DISTINCT message_id FROM entries")}
    standings = {standing.message_id: standing for standing in unfinished(journal)}
    standings.update({message_id: standing for message_id in known if (standing := journal.find(message_id))})
    yield from sorted(standings.values(), key=lambda standing: standing.order)


def _revive_ended() -> None:
    unfinished = Journal.unfinished
    Journal.unfinished = lambda self: _with_all(self, unfinished)
    entries.Standing.is_unfinished = property(lambda self: self.admitted is not None)
    for kind in (entries.DISCARDED, entries.REPLACED, entries.REPLY_RECEIVED):
        admissions._TAKEN_UP[kind] = admissions.STAGED


def _lose_one() -> None:
    unfinished = Journal.unfinished
    Journal.unfinished = lambda self: list(unfinished(self))[1:]


def _turn_round() -> None:
    unfinished = Journal.unfinished
    Journal.unfinished = lambda self: list(unfinished(self))[::-1]


def _always_doubt() -> None:
    Placing._judge_finding = lambda _self, message_id, _task: happenings.PlacementUnknown(
        message_id=message_id, reason="planted"
    )


def _reply_again() -> None:
    """A reply that may have left is forgotten."""

    def reopen(self: Any, standing: Any, inbound: Any, received_at_ms: int) -> None:
        self.open(inbound, received_at_ms)

    answers.Answers.reopen = reopen


# Name -> what it does, and a word of the violation that must be found.
PLANTS: dict[str, Callable[[], None]] = {
    "acknowledge before commit": _acknowledge_before_commit,
    "offer before checkpoint": _offer_before_checkpoint,
    "place again without asking": _place_again_without_asking,
    "claim placement": _claim_placement,
    "attest before commit": _attest_before_commit,
    "forget what was admitted": _forget_what_was_admitted,
    "revive answered": _revive_answered,
    "revive ended": _revive_ended,
    "lose one": _lose_one,
    "turn round": _turn_round,
    "always doubt": _always_doubt,
    "reply again": _reply_again,
}
SEEN_AS = {
    "acknowledge before commit": "is stored",
    "offer before checkpoint": "is stored",
    "place again without asking": "was placed",
    "claim placement": "claims the placement",
    "attest before commit": "claims",
    "forget what was admitted": "was admitted 2 times",
    "revive answered": "waits later",
    "revive ended": "and placed in life",
    "lose one": "was admitted and ended as",
    "turn round": "was placed behind",
    "always doubt": "its host can tell",
    "reply again": "answers",
}
