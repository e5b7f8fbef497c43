"""What must be true of a journal after its owner was killed.

Owns the comparison of what was appended and settled with what the journal says when it is opened again. Does not own
the kills (``crashing``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from libintercom.session.entries import fold
from libintercom.session.journal import Journal, export
from libintercom.session.journal.folder import ASIDE
from tests.integration.journal.writing import NATIVE_ID, Life, plan
from tests.support.journaled import FOREVER

if TYPE_CHECKING:
    from libintercom.session.entries import Entry

    # An appended life and the numbers of its appends that were said to be settled.
    Lived = tuple[Life, list[int]]


def judge(folder: str, lives: list[Lived]) -> list[str]:
    """Every violation in a folder's journal after these lives; the journal is opened, read and closed again."""
    with Journal.open(NATIVE_ID, folder=folder, limits=FOREVER) as journal:
        if journal.set_aside:
            return [f"a journal that was only killed was set aside: {journal.set_aside}"]
        stored = [entry for entry in export(journal.path) if "kind" in entry]
        order = [entry["entryId"] for entry in stored]
        found = [violation for lived in lives for violation in _judge_life(lived, order)]
        if [entry["number"] for entry in stored] != sorted({entry["number"] for entry in stored}):
            found.append("numbers repeat or go backwards")
        return found + _judge_standings(journal, lives, set(order))


def _judge_life(lived: Lived, order: list[str]) -> list[str]:
    life, settled = lived
    appends = [[entry.entry_id for entry in entries] for entries in plan(life)]
    planned = [entry_id for entries in appends for entry_id in entries]
    own = set(planned)
    stored = [entry_id for entry_id in order if entry_id in own]
    found = []
    if stored != planned[: len(stored)]:
        found.append(f"life {life.number}: the order was not kept, or something in between is missing")
    bounds = {sum(map(len, appends[:count])): count for count in range(len(appends) + 1)}
    if len(stored) not in bounds:
        found.append(f"life {life.number}: {len(stored)} entries are stored, which splits an append")
    if settled and len(stored) < sum(map(len, appends[: max(settled) + 1])):
        found.append(f"life {life.number}: append {max(settled)} was settled, but {len(stored)} entries are stored")
    if settled != sorted(settled):
        found.append(f"life {life.number}: settled out of order: {settled}")
    return found


def _judge_standings(journal: Journal, lives: list[Lived], stored: set[str]) -> list[str]:
    """``find`` and ``unfinished`` say what the stored entries add up to, by a way of their own."""
    messages: dict[str, list[Entry]] = {}
    for life, _settled in lives:
        for entry in (entry for entries in plan(life) for entry in entries if entry.entry_id in stored):
            messages.setdefault(entry.message_id, []).append(entry)
    found, unfinished = [], []
    for message_id, entries in messages.items():
        expected, standing = fold(entries), journal.find(message_id)
        if expected is None or standing is None or (standing.kind, standing.fact) != (expected.kind, expected.fact):
            found.append(f"{message_id}: found {standing}, expected {expected}")
        elif expected.is_unfinished:
            unfinished.append(message_id)
            if standing.admitted != expected.admitted:
                found.append(f"{message_id}: it is unfinished, and what was admitted changed")
    if [standing.message_id for standing in journal.unfinished()] != unfinished:
        found.append("what is unfinished is not what the entries say, or not in the order of admission")
    return found


def judge_aside(folder: str, damaged: bytes) -> list[str]:
    """The damaged file is under a name of its own, as it was; the journal is a fresh one."""
    with Journal.open(NATIVE_ID, folder=folder, limits=FOREVER):
        aside = [name for name in os.listdir(folder) if ASIDE in name and name.endswith(".sqlite")]
    kept = [name for name in aside if _read(f"{folder}/{name}") == damaged]
    return [] if kept else [f"the damaged file is gone: {aside} do not hold it"]


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
