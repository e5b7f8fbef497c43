"""The program that is killed: appends numbered entries to a journal and says which are settled.

Owns what is written and where it dies. Does not own any judgement (``judging``). Runs in a forked child of the trial,
which ends by SIGKILL or by ``os._exit``, so nothing of it reaches the trial but the pipe and the files.
"""

from __future__ import annotations

import os
import random
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from libintercom.session import faults
from libintercom.session.entries import Entry
from libintercom.session.journal import Journal, collecting, schema, store, writer
from tests.support.journaled import FOREVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NATIVE_ID = "the session of the trial"
# Far below the real bounds, so that folding, copying the log and collecting happen within one short life.
_FOLD_LIMIT, _CHECKPOINT_PAGES, _LOOK_EVERY = 8, 12, 1
# Pages from which on a journal counts as large, and texts of finished messages go; its hard limit stays far away.
_LARGE_PAGES = 16
# A quarter of a page and more than one: rows that share pages and rows with overflow pages.
_TEXT_SIZES = (0, 1_000, 6_000)
_LIFE = ("queued", "handed", "placed", "consumed")


@dataclass(frozen=True)
class Life:
    """One run: its number within its folder, its seed, how many appends, and where it dies (``""``: nowhere)."""

    number: int
    seed: int
    appends: int
    point: str = ""
    reach: int = 1
    plant: str = ""


def plan(life: Life) -> list[list[Entry]]:
    """What a life appends, in order; the same in the child and in the judge."""
    dice = random.Random(life.seed)
    return [list(_entries(life, number, dice)) for number in range(life.appends)]


def _entries(life: Life, number: int, dice: random.Random) -> Iterator[Entry]:
    """An admission and, in the same append, what became of an earlier message of this life."""
    yield _entry(life, number, "admitted", dice)
    if number and dice.random() < 0.8:
        earlier = dice.randrange(number)
        for kind in _LIFE[: dice.randrange(1, 5)]:
            yield _entry(life, earlier, kind, dice)


def _entry(life: Life, message: int, kind: str, dice: random.Random) -> Entry:
    message_id = f"m-{life.number}-{message}"
    content = {"text": "x" * dice.choice(_TEXT_SIZES)}
    said = {"id": message_id, "content": content, "expectsReply": message % 7 == 0}
    body = {"from": {"id": "ann"}, "message": said} if kind == "admitted" else {}
    entry_id = f"e-{life.number}-{dice.randrange(1 << 62):x}"
    return Entry(entry_id=entry_id, message_id=message_id, kind=kind, at_ms=1_796_000_000_000, body=body)


def live(life: Life, folder: str, out: int) -> None:
    """Open, append everything and close; one byte-sized write for each settled append, whatever happens after."""
    _shrink_bounds()
    _plant(life.plant)
    _die_at(life.point, life.reach)
    journal = Journal.open(NATIVE_ID, folder=folder, limits=FOREVER)
    dice = random.Random(life.seed + 1)
    for number, entries in enumerate(plan(life)):
        pending = journal.append(entries)
        pending.add_done(lambda failure, number=number: _tell(out, number, failure))
        if dice.random() < 0.5:
            pending.wait(30)
    journal.close()


def _tell(out: int, number: int, failure: object) -> None:
    os.write(out, f"{number} {failure or 'settled'}\n".encode())


def _shrink_bounds() -> None:
    writer.FOLD_LIMIT, writer.CHECKPOINT_PAGES, writer._LOOK_EVERY = _FOLD_LIMIT, _CHECKPOINT_PAGES, _LOOK_EVERY
    collecting.is_large = lambda connection, _limits: schema.read_pragma(connection, "page_count") > _LARGE_PAGES


def _die_at(point: str, reach: int) -> None:
    seen = 0

    def hook(name: str) -> None:
        nonlocal seen
        seen += name == point
        if name == point and seen == reach:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.set_hook(hook if point else None)


def _plant(name: str) -> None:
    """A fault that the judge must see."""
    if name:
        _PLANTS[name]()


def _settle_before_commit() -> None:
    write = writer.Writer._write

    def write_late(self: writer.Writer, rows: Sequence[store.EntryRow]) -> None:
        for job in self._current:
            job.pending.settle()
        write(self, list(rows))

    writer.Writer._write = write_late


def _commit_each_row() -> None:
    insert = store.insert_entries

    def insert_singly(connection, rows) -> None:
        for row in rows:
            insert(connection, [row])
            connection.execute("COMMIT")
            faults.reach("journal.inserted")
            connection.execute("BEGIN")

    store.insert_entries = insert_singly


def _forget_the_tail() -> None:
    """The index claims to have what it has not."""
    store._FOLD = store._FOLD.replace("GROUP BY", "AND number % 5 > 0 GROUP BY")


_PLANTS = {
    "settle-before-commit": _settle_before_commit,
    "commit-each-row": _commit_each_row,
    "forget-the-tail": _forget_the_tail,
}
