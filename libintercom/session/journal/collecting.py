"""Retention: removing finished messages that are old, and the texts of finished ones when a journal is large.

Owns what may go and in which order, on an open connection and in short transactions. Does not own which journals
there are (``offline``) nor when an open one is looked at (``writer``).

Never touched: unfinished messages, entries that the index does not have yet, facts younger than the retention. What
goes first is what was touched longest ago.
"""

from __future__ import annotations

import json

from libintercom.session.faults import reach
from libintercom.session.journal.schema import read_pragma

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from libintercom.session.journal.retention import Retention

# Messages in one transaction: some milliseconds, during which appends wait.
_CHUNK = 256
# Transactions of one pass over an open journal; the next pass goes on.
_PASSES = 16

# Each message's chain, followed from its newest entry back.
_DELETE_CHAIN = """
DELETE FROM entries WHERE number IN (
    WITH RECURSIVE chain (number) AS (
        SELECT ? UNION ALL
        SELECT previous FROM entries JOIN chain ON entries.number = chain.number WHERE previous > 0
    )
    SELECT number FROM chain
)
"""
# Of the finished messages that were touched longest ago: later ones are younger, unless a clock was set back; then
# they wait for their turn. So a pass that finds nothing looks at no more than one chunk.
_EXPIRED = """
SELECT message_id, last FROM (
    SELECT message_id, last, at_ms FROM messages WHERE unfinished = 0 ORDER BY last LIMIT ?
) WHERE at_ms < ?
"""
# A message that is finished after the mark passed it has a newer last entry by then.
_LONG = """
SELECT entries.number, body, messages.last FROM messages JOIN entries ON entries.number = messages.first
WHERE messages.unfinished = 0 AND messages.last > coalesce((SELECT value FROM facts WHERE name = 'trimmed'), 0)
ORDER BY messages.last LIMIT ?
"""
_MARK = "INSERT INTO facts VALUES ('trimmed', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


def collect(
    connection: sqlite3.Connection, limits: Retention, now_ms: int, *, passes: int = _PASSES
) -> tuple[int, int]:
    """How many messages were removed, and of how many more the text. Raises sqlite3.Error.

    The index must be up to date: what it does not have is not looked at.
    """
    removed = trimmed = 0
    for _pass in range(passes):
        gone = _remove_expired(connection, now_ms - limits.keep_ms)
        short = _trim_oldest(connection) if not gone and is_large(connection, limits) else 0
        if not gone and not short:
            break
        removed, trimmed = removed + gone, trimmed + short
    return removed, trimmed


def count_expired(connection: sqlite3.Connection, limits: Retention, now_ms: int) -> int:
    """How many messages ``collect`` would remove by age."""
    found = connection.execute(
        "SELECT count(*) FROM messages WHERE unfinished = 0 AND at_ms < ?", (now_ms - limits.keep_ms,)
    ).fetchone()
    return int(found[0])


def is_large(connection: sqlite3.Connection, limits: Retention) -> bool:
    """Whether the pages in use take more than three quarters of the limit."""
    used = read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")
    return 4 * used * read_pragma(connection, "page_size") > 3 * limits.max_bytes


def _remove_expired(connection: sqlite3.Connection, before_ms: int) -> int:
    expired = connection.execute(_EXPIRED, (_CHUNK, before_ms)).fetchall()
    if expired:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM messages WHERE message_id = ?", [(row[0],) for row in expired])
        connection.executemany(_DELETE_CHAIN, [(row[1],) for row in expired])
        _end(connection)
    return len(expired)


def _trim_oldest(connection: sqlite3.Connection) -> int:
    found = connection.execute(_LONG, (_CHUNK,)).fetchall()
    if found:
        connection.execute("BEGIN IMMEDIATE")
        shorter = [(_trim(body), number) for number, body, _last in found]
        connection.executemany("UPDATE entries SET body = ? WHERE number = ?", shorter)
        connection.execute(_MARK, (found[-1][2],))
        _end(connection)
    return len(found)


def _end(connection: sqlite3.Connection) -> None:
    reach("journal.collecting")
    connection.execute("COMMIT")
    reach("journal.collected")


def _trim(body: str) -> str:
    """A body without what the message said, and ``trimmed``: sender, times, hash and everything else stays."""
    held = json.loads(body)
    message = held.get("message")
    if isinstance(message, dict) and isinstance(message.get("content"), dict):
        held["message"] = {**message, "content": {"text": ""}}
    return json.dumps({"trimmed": True, **held}, separators=(",", ":"))
