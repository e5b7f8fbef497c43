"""Opening a journal's database: the settings of a connection, the schema's versions, and whether a file is sound.

Owns PRAGMAs, migrations and the examination of a file. Does not own what is asked of the tables (``store``) nor what
happens to a damaged file (``folder``, ``journal``).

How much is examined at open. Always: the header, whose journal it is, that the schema answers, and the newest entries.
After an ending that was not clean (the log is still there): every page of a file of at most 8 MiB; reading a larger one
from a cold disk would delay a session by half a second for each 100 MiB. After a suspicion (a journal met damage while
it worked): every page, whatever the size. SQLite's log makes crashes harmless; what this looks for is disks and other
programs. Collecting garbage reads every page.
"""

from __future__ import annotations

import json
import os
import sqlite3

from libintercom.session.journal.failures import JournalUnavailable, explain, is_damage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# "icjn": written into the header, so that file(1) and we can tell a journal from another database.
APPLICATION_ID = 0x69636A6E
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql")
# Some 40 ms from a cold disk; a session may wait 150 ms for its journal.
EXAMINED_BYTES = 8 * 1024 * 1024
# Entries at the end of the file that are read and parsed at every open: what a cut or overwritten tail would hit.
_NEWEST = 64
# Only ourselves and offline readers can be there; a reader's copying takes less.
_BUSY_MS = 5_000
# Pages, in KiB: what a session keeps in memory for each of its two connections.
_CACHE_KIB = 1_024


class Damaged(Exception):
    """A file that is no sound journal; ``reason`` says what was found. Callers set it aside."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def connect(path: str, *, is_reader: bool = False) -> sqlite3.Connection:
    """A connection with our settings. A reader can write nothing, and leaves no trace beside SQLite's own files."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{quoted}?mode={'ro' if is_reader else 'rw'}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        for name, value in _settings(is_reader=is_reader):
            connection.execute(f"PRAGMA {name} = {value}")
    except BaseException:
        connection.close()
        raise
    return connection


def _settings(*, is_reader: bool) -> Iterator[tuple[str, object]]:
    yield "trusted_schema", "OFF"
    yield "busy_timeout", _BUSY_MS
    yield "cache_size", -_CACHE_KIB
    if is_reader:
        yield "query_only", "ON"
        return
    yield "cell_size_check", "ON"
    yield "foreign_keys", "ON"
    yield "journal_mode", "WAL"
    yield "synchronous", "FULL"
    # macOS: fsync(2) alone leaves it in the drive's own memory. Elsewhere it changes nothing.
    yield "fullfsync", "ON"
    yield "checkpoint_fullfsync", "ON"
    # The writer copies the log itself, after everybody who waited was told.
    yield "wal_autocheckpoint", 0


def migrate(connection: sqlite3.Connection, path: str, native_id: str, scripts: list[str] | None = None) -> None:
    """Bring an empty or older database to the newest schema, one version in one transaction.

    Raises:
        JournalUnavailable: a newer program wrote it. It is left as it is.
        Damaged: it is the database of something else, or of another native session.

    """
    scripts = read_scripts() if scripts is None else scripts
    version = read_pragma(connection, "user_version")
    if version > len(scripts):
        reason = f"it has schema {version}, and this program knows schemas up to {len(scripts)}"
        raise JournalUnavailable(path, reason, "Use the newer program that wrote it.")
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise Damaged("it holds tables of something else")
    for number in range(version + 1, len(scripts) + 1):
        first = _first_words(native_id) if number == 1 else ""
        connection.executescript(f"BEGIN IMMEDIATE;{scripts[number - 1]};{first}PRAGMA user_version = {number};COMMIT;")


def _first_words(native_id: str) -> str:
    """What a new journal says about itself. Hexadecimal, because a native id may hold anything."""
    whose = native_id.encode("utf-8", "surrogatepass").hex()
    words = f"INSERT INTO facts VALUES ('native_id', '{whose}');"  # noqa: S608 - hexadecimal digits
    return f"{words}PRAGMA application_id = {APPLICATION_ID};"


def read_scripts(folder: str = _FOLDER) -> list[str]:
    """The text of each numbered file, version 1 first."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".sql"))
    scripts = []
    for number, name in enumerate(names, start=1):
        if not name.startswith(f"{number:04d}_"):
            raise JournalUnavailable(folder, f"schema file {name} stands where {number:04d}_… belongs")
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            scripts.append(file.read())
    return scripts


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def read_native_id(connection: sqlite3.Connection) -> str:
    """Whose journal it is. Raises Damaged when it does not say."""
    row = connection.execute("SELECT value FROM facts WHERE name = 'native_id'").fetchone()
    try:
        return bytes.fromhex(row[0]).decode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise Damaged("it does not say whose journal it is") from error


def examine(
    connection: sqlite3.Connection, native_id: str | None, *, is_doubtful: bool, is_complete: bool = False
) -> None:
    """Raise Damaged unless the file is a sound journal (of ``native_id``, when given).

    ``is_doubtful``: every page, if a session can wait for it; ``is_complete``: every page, whatever the size.
    """
    try:
        if read_pragma(connection, "application_id") != APPLICATION_ID:
            raise Damaged("it is not marked as a journal")
        if native_id not in (None, read_native_id(connection)):
            raise Damaged("it is the journal of another native session")
        if is_complete or (is_doubtful and _size_of(connection) <= EXAMINED_BYTES):
            _check_pages(connection)
        _check_newest(connection)
    except sqlite3.DatabaseError as error:
        if is_damage(error) or "no such" in str(error):
            raise Damaged(explain(error)) from error
        raise


def _size_of(connection: sqlite3.Connection) -> int:
    return read_pragma(connection, "page_count") * read_pragma(connection, "page_size")


def _check_pages(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise Damaged(str(found))


def _check_newest(connection: sqlite3.Connection) -> None:
    folded = connection.execute("SELECT value FROM facts WHERE name = 'folded'").fetchone()
    newest = connection.execute("SELECT max(number) FROM entries").fetchone()[0] or 0
    if folded is None or not isinstance(folded[0], int) or folded[0] < 0:
        raise Damaged("it does not say how far its index goes")
    if connection.execute("SELECT coalesce(max(last), 0) FROM messages").fetchone()[0] > newest:
        raise Damaged("its newest entries are missing")
    for (body,) in connection.execute("SELECT body FROM entries ORDER BY number DESC LIMIT ?", (_NEWEST,)):
        try:
            json.loads(body)
        except (TypeError, ValueError) as error:
            raise Damaged("one of its newest entries is no JSON") from error
