"""The spool's database file: making, checking, reading and writing it.

Owns the file, its folder and its schema. Does not own when something is written (``durable``). Loaded only by a broker
that has something to keep, or that finds a file of an earlier one: sqlite3 takes longer to load than a candidate lives.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from typing import TYPE_CHECKING

from intercomd.core.effects import Store
from intercomd.core.items import Item
from intercomd.edges.spool.faults import reach
from libintercom.ownership.filesystems import read_network_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from intercomd.core.effects import Forget

_SCHEMA_FOLDER = os.path.join(os.path.dirname(__file__), "schema")
# Beside the database, while SQLite has it open.
_COMPANIONS = ("", "-wal", "-shm", "-journal")
# An owner that is just leaving gives the file up within a moment; the life lock keeps two owners apart.
_BUSY_TIMEOUT_S = 2.0
# The log behind the database is cut back to this once it was written over.
_WAL_BYTES = 1024 * 1024
_PRAGMAS = (
    # An explicit commit is on the disk when it returns: what is acknowledged survives a power cut.
    "PRAGMA synchronous = FULL",
    # A damaged or planted schema must not make SQLite call functions.
    "PRAGMA trusted_schema = OFF",
    # One owner at a time, and no shared memory file.
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    f"PRAGMA journal_size_limit = {_WAL_BYTES}",
    # A body that was delivered does not stay readable in the file.
    "PRAGMA secure_delete = ON",
    "PRAGMA cell_size_check = ON",
)


class SpoolUnavailable(Exception):
    """The file cannot be used; ``reason`` says why and what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Damaged(Exception):
    """The file is no database of ours any more."""


class Database:
    """One open database. Used by one thread at a time.

    ``open`` raises SpoolUnavailable or sqlite3.Error; ``write`` sqlite3.Error, and then nothing of it was kept.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: str, on_damage: Callable[[str, str], None]) -> Database:
        """Open the file, or make it. ``on_damage`` hears where a damaged one was set aside, and why."""
        _prepare_folder(os.path.dirname(path))
        try:
            return cls._open(path)
        except Damaged as damage:
            on_damage(_set_aside(path), str(damage))
        return cls._open(path)

    @classmethod
    def _open(cls, path: str) -> Database:
        is_new = _make_private_file(path)
        connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, is_new=is_new)
        except sqlite3.DatabaseError as error:
            connection.close()
            if _is_damage(error):
                raise Damaged(str(error)) from None
            raise
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def load(self) -> tuple[Item, ...]:
        """Every item, in the order of storing."""
        rows = self._connection.execute("SELECT key, kind, facts, row, message FROM item ORDER BY seq")
        return tuple(Item(*row) for row in rows)

    def write(self, batch: Sequence[Store | Forget]) -> None:
        """All of these in one transaction, which is on the disk when this returns."""
        self._connection.execute("BEGIN IMMEDIATE")
        reach("transaction begun")
        try:
            for effect in batch:
                self._write(effect)
                reach("item written")
            reach("before commit")
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Put everything into the one file and let go of it."""
        self._connection.close()

    def _write(self, effect: Store | Forget) -> None:
        if not isinstance(effect, Store):
            self._connection.execute("DELETE FROM item WHERE key = ?", (effect.key,))
            return
        item = effect.item
        self._connection.execute(
            "INSERT INTO item (key, kind, facts, row, message) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE"
            " SET kind = excluded.kind, facts = excluded.facts, row = excluded.row, message = excluded.message",
            (item.key, item.kind, item.facts, item.row, item.message),
        )


def _prepare_folder(folder: str) -> None:
    """Make or check the private folder. A folder that others may be able to write to is no place for bodies."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        seen = os.fstat(descriptor)
        if seen.st_uid != os.getuid():
            raise SpoolUnavailable(f"{folder} belongs to uid {seen.st_uid}; remove it, or set another path (spool)")
        network_type = read_network_type(descriptor)
        if network_type:
            raise SpoolUnavailable(
                f"{folder} is on a network filesystem ({network_type}), where locks and syncing cannot be trusted; "
                "set a local path (spool)"
            )
        if stat.S_IMODE(seen.st_mode) != stat.S_IRWXU:
            os.fchmod(descriptor, stat.S_IRWXU)
    finally:
        os.close(descriptor)


def _make_private_file(path: str) -> bool:
    """See to it that the file is ours and nobody else's to read, before anything is in it; whether it is new."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        seen = os.lstat(path)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.getuid():
            reason = f"{path} is not a file of this user; remove it, or set another path (spool)"
            raise SpoolUnavailable(reason) from None
        if stat.S_IMODE(seen.st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        return seen.st_size == 0
    os.close(descriptor)
    _sync_folder(os.path.dirname(path))
    return True


def _prepare(connection: sqlite3.Connection, *, is_new: bool) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    if not is_new:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise Damaged(str(found))
    _migrate(connection)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, one numbered file after another, each in a transaction with its number."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    files = sorted(name for name in os.listdir(_SCHEMA_FOLDER) if name.endswith(".sql"))
    newest = int(files[-1].split("_", 1)[0])
    if version > newest:
        raise SpoolUnavailable(f"it was written by a newer intercomd (schema {version}, this one knows {newest})")
    for name in files:
        number = int(name.split("_", 1)[0])
        if number > version:
            with open(os.path.join(_SCHEMA_FOLDER, name), encoding="utf-8") as file:
                script = file.read()
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file itself is at fault, not the disk, the rights or another owner."""
    if isinstance(error, sqlite3.OperationalError):
        return False
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _set_aside(path: str) -> str:
    """Rename a damaged database and what belongs to it; nothing is ever overwritten. Returns the new path."""
    number = 1
    while any(os.path.lexists(f"{path}.damaged-{number}{companion}") for companion in _COMPANIONS):
        number += 1
    kept = f"{path}.damaged-{number}"
    for companion in _COMPANIONS:
        if os.path.lexists(path + companion):
            os.rename(path + companion, kept + companion)
    _sync_folder(os.path.dirname(path))
    return kept


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
