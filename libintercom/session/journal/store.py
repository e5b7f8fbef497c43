"""What is asked of a journal's tables: append rows, follow a message's chain, fold the index, read what is open.

Owns the statements. Does not own connections (``schema``), threads (``writer``) nor what is kept in memory
(``memory``).
"""

from __future__ import annotations

import json

from libintercom.session.entries import Entry
from libintercom.session.faults import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    # A row of "entries", in the order of its columns.
    EntryRow = tuple[int, int, int, int, int, str, str, str, str]

_COLUMNS = 9
# Rows in one statement. The interpreter gives up its lock for each statement, and a busy program may keep it for 5 ms
# before it is had back: row by row, a batch would wait for it as often as it has rows. 99 rows are the most that the
# oldest SQLite takes (999 parameters).
_CHUNKS = (64, 16, 4, 1)
_PLACES = "(" + ", ".join("?" * _COLUMNS) + ")"
_HEAD = "INSERT INTO entries VALUES "
_INSERTS = {size: _HEAD + ", ".join([_PLACES] * size) for size in _CHUNKS}
# dumps() of the module looks its options up at every call.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

# The newest entry of each message: with max(), SQLite takes the other columns from the same row (its documentation,
# "Bare columns in an aggregate query"). Sorted by the key, so each page of the index is written once.
_FOLD = """
INSERT INTO messages (message_id, first, last, at_ms, unfinished)
SELECT message_id, first, max(number), at_ms, unfinished FROM entries
WHERE number > (SELECT value FROM facts WHERE name = 'folded') GROUP BY message_id
ON CONFLICT (message_id) DO UPDATE SET last = excluded.last, at_ms = excluded.at_ms, unfinished = excluded.unfinished
"""
_TAIL = """
SELECT message_id, first, max(number), unfinished FROM entries
WHERE number > (SELECT value FROM facts WHERE name = 'folded') GROUP BY message_id
"""
_UNFINISHED = "SELECT first, message_id FROM messages WHERE unfinished = 1 AND first > ? ORDER BY first LIMIT ?"
_PAGE = "SELECT number, at_ms, entry_id, message_id, kind, body FROM entries WHERE number > ? ORDER BY number LIMIT ?"
_ENTRY = "SELECT previous, at_ms, entry_id, message_id, kind, body FROM entries WHERE number = ?"


def make_row(entry: Entry, number: int, previous: int, first: int, *, is_unfinished: bool, body: str) -> EntryRow:
    unfinished = 1 if is_unfinished else 0
    return (number, previous, first, unfinished, entry.at_ms, entry.entry_id, entry.message_id, entry.kind, body)


def encode_body(entry: Entry) -> str:
    return _encode(entry.body)


def insert_entries(connection: sqlite3.Connection, rows: Sequence[EntryRow]) -> None:
    """Append rows, in the open transaction."""
    start = 0
    for size in _CHUNKS:
        while len(rows) - start >= size:
            values: list[Any] = []
            for row in rows[start : start + size]:
                values += row
            connection.execute(_INSERTS[size], values)
            start += size


def fold_index(connection: sqlite3.Connection, up_to: int) -> None:
    """Bring the index up to date, in a transaction of its own. ``up_to``: the newest number that is stored."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(_FOLD)
    connection.execute("UPDATE facts SET value = ? WHERE name = 'folded'", (up_to,))
    reach("journal.folding")
    connection.execute("COMMIT")
    reach("journal.folded")


def newest_number(connection: sqlite3.Connection) -> int:
    """The last number ever given: what was removed does not give its number back."""
    folded = connection.execute("SELECT value FROM facts WHERE name = 'folded'").fetchone()[0]
    newest = connection.execute("SELECT max(number) FROM entries").fetchone()[0]
    return max(int(folded), newest or 0)


def read_tail(connection: sqlite3.Connection) -> list[tuple[str, int, int, int]]:
    """Message id, first, last, unfinished: of every message that has entries beyond the index."""
    return connection.execute(_TAIL).fetchall()


def find_message(connection: sqlite3.Connection, message_id: str) -> tuple[int, int] | None:
    """First and last entry of a message of the index."""
    found: tuple[int, int] | None = connection.execute(
        "SELECT first, last FROM messages WHERE message_id = ?", (message_id,)
    ).fetchone()
    return found


def read_unfinished(connection: sqlite3.Connection, after: int, count: int) -> list[tuple[int, str]]:
    """First entry and message id of the next that the index has as unfinished, in the order of admission."""
    return connection.execute(_UNFINISHED, (after, count)).fetchall()


def read_chain(connection: sqlite3.Connection, last: int) -> list[tuple[int, Entry, int]]:
    """The entries of one message from its newest back, returned oldest first: number, entry, length of its body."""
    chain: list[tuple[int, Entry, int]] = []
    number = last
    while number:
        row = connection.execute(_ENTRY, (number,)).fetchone()
        if row is None:  # removed by retention
            break
        chain.append((number, _entry(*row[1:]), len(row[-1])))
        number = row[0]
    return chain[::-1]


def read_page(connection: sqlite3.Connection, after: int, count: int) -> list[tuple[int, Entry]]:
    """The next entries in the order of appending, with their numbers."""
    rows = connection.execute(_PAGE, (after, count)).fetchall()
    return [(row[0], _entry(*row[1:])) for row in rows]


def _entry(at_ms: int, entry_id: str, message_id: str, kind: str, body: str) -> Entry:
    return Entry(entry_id=entry_id, message_id=message_id, kind=kind, at_ms=at_ms, body=json.loads(body))
