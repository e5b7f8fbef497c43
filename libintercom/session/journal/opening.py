"""Opening the file of a journal: folder, lock, examination, and a fresh file in place of a damaged one.

Owns the order of these steps and turning their failures into the journal's. Does not own the open journal
(``journal``).
"""

from __future__ import annotations

import os
import sqlite3

from libintercom.paths import find_places
from libintercom.session.faults import reach
from libintercom.session.journal import folder as folders
from libintercom.session.journal.failures import JournalUnavailable, explain, is_damage
from libintercom.session.journal.schema import Damaged, connect, examine, migrate, read_pragma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.locks import FileLock
    from libintercom.session.journal.retention import Retention

_REMEDY = "Free some space, or look at the folder's rights; the session works without a journal until then."


def open_database(
    native_id: str, path: str | None, limits: Retention
) -> tuple[tuple[sqlite3.Connection, RuntimeDirectory, FileLock, str], str | None]:
    """The connection, the folder, the lock and the file's stem; and where a damaged file went, if there was one.

    Raises what ``Journal.open`` raises.
    """
    folder = folders.open_folder(find_places().journals if path is None else path)
    stem = folders.stem_of(native_id)
    try:
        lock = folders.lock_journal(folder, stem)
    except BaseException:
        folder.close()
        raise
    try:
        connection, aside = _open_sound(folder, stem, native_id)
        most_pages = limits.max_bytes // read_pragma(connection, "page_size")
        connection.execute(f"PRAGMA max_page_count = {max(1, most_pages)}")
    except BaseException:
        lock.release()
        folder.close()
        raise
    return (connection, folder, lock, stem), aside


def _open_sound(folder: RuntimeDirectory, stem: str, native_id: str) -> tuple[sqlite3.Connection, str | None]:
    try:
        try:
            return _open_file(folder, stem, native_id), None
        except Damaged:
            aside = folders.set_aside(folder, stem)
        return _open_file(folder, stem, native_id), aside
    except (OSError, sqlite3.Error) as error:
        found = explain(error) if isinstance(error, sqlite3.Error) else f"{error.strerror}"
        raise JournalUnavailable(f"{folder.path}/{stem}{folders.SUFFIX}", found, _REMEDY) from error
    except Damaged as damage:
        # A fresh file that is damaged at once: what is below it does not keep what is written.
        path = f"{folder.path}/{stem}{folders.SUFFIX}"
        raise JournalUnavailable(path, f"a new file does not hold what was written: {damage.reason}") from damage


def _open_file(folder: RuntimeDirectory, stem: str, native_id: str) -> sqlite3.Connection:
    name = stem + folders.SUFFIX
    for suffix in ("", folders.LOG_SUFFIX, folders.SHARED_SUFFIX):
        folders.require_private(folder, name + suffix)
    # Readers leave an empty log behind; one with something in it means an ending that was not clean.
    has_log = _size_of(folder, name + folders.LOG_SUFFIX) > 0
    if has_log and _size_of(folder, name) == 0:
        raise Damaged("there is a log without its database")
    is_doubtful = has_log or folder.mark(stem + folders.SUSPECT_SUFFIX) is not None
    if folders.create_private(folder, name):
        reach("journal.created")
    folder.require_current()
    return _connect_sound(folder, stem, native_id, is_doubtful=is_doubtful)


def _connect_sound(folder: RuntimeDirectory, stem: str, native_id: str, *, is_doubtful: bool) -> sqlite3.Connection:
    path = f"{folder.path}/{stem}{folders.SUFFIX}"
    is_suspect = folder.mark(stem + folders.SUSPECT_SUFFIX) is not None
    connection = None
    try:
        connection = connect(path)
        migrate(connection, path, native_id)
        reach("journal.migrated")
        examine(connection, native_id, is_doubtful=is_doubtful, is_complete=is_suspect)
        # The log's and the shared memory's names, and the schema, are on disk before the first entry is.
        os.fsync(folder.fd)
    except sqlite3.DatabaseError as error:
        _close(connection)
        if is_damage(error):
            raise Damaged(explain(error)) from error
        raise
    except BaseException:
        _close(connection)
        raise
    if is_suspect:
        folders.remove(folder, stem + folders.SUSPECT_SUFFIX)
    return connection


def _size_of(folder: RuntimeDirectory, name: str) -> int:
    return folder.stat(name).st_size if folder.mark(name) is not None else 0


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        connection.close()
