"""Journals of sessions that may or may not run: listing them, exporting one, collecting garbage.

Owns what an operator sees and starts. Does not own the rules of retention (``collecting``). Listing and exporting open
a journal for reading only: a live owner goes on, and nothing is examined or set aside.
"""

from __future__ import annotations

import os
import sqlite3
import time

from libintercom.ownership.locks import probe_lock
from libintercom.ownership.verdict import HELD
from libintercom.session.journal import collecting, store
from libintercom.session.journal import folder as folders
from libintercom.session.journal.failures import JournalBusy, JournalUnavailable, explain
from libintercom.session.journal.retention import DEFAULT_RETENTION
from libintercom.session.journal.schema import Damaged, connect, examine, migrate, read_native_id, read_pragma
from libintercom.wire.record import Record, dump_record, required
from libintercom.wire.values import BOOL, COUNT, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.session.entries import Entry
    from libintercom.session.journal.retention import Retention

# Entries read at a time: a long read would keep the owner's log from being copied.
_PAGE_ENTRIES = 256
# No bound: nobody waits for a journal that has no owner.
_ALL = 1 << 30


class Listed(Record):
    """One journal. ``holder_pid``: its live owner, 0 for none; ``note``: why it could not be read, or ``""``.

    ``unfinished`` and ``messages`` count what the index has: a live owner may be some thousand entries ahead of it.
    """

    path: str = required(STRING)
    native_id: str = required(STRING)
    holder_pid: int = required(COUNT)
    is_held: bool = required(BOOL)
    size_bytes: int = required(COUNT)
    messages: int = required(COUNT)
    unfinished: int = required(COUNT)
    newest_at_ms: int = required(COUNT)
    note: str = required(STRING)


class Collected(Record):
    """What became of one file, or would in a dry run. ``note`` says why it was left alone, or what else was done."""

    path: str = required(STRING)
    removed_messages: int = required(COUNT)
    trimmed_messages: int = required(COUNT)
    freed_bytes: int = required(COUNT)
    is_removed: bool = required(BOOL)
    note: str = required(STRING)


def list_journals(path: str) -> list[Listed]:
    """Every journal of a folder, by name; none when there is no folder. Raises JournalUnavailable for an unsafe one."""
    if not os.path.lexists(path):
        return []
    with folders.open_folder(path) as folder:
        return [_list(folder, stem) for stem in _stems(folder)]


def export(path: str) -> Iterator[dict[str, Any]]:
    """One JSON object for the journal, then one for each entry in the order of appending.

    Raises JournalUnavailable when it cannot be read.
    """
    try:
        connection = connect(path, is_reader=True)
    except sqlite3.Error as error:
        raise JournalUnavailable(path, explain(error)) from error
    try:
        yield {"journal": read_pragma(connection, "user_version"), "nativeId": read_native_id(connection)}
        after = 0
        while True:
            page = store.read_page(connection, after, _PAGE_ENTRIES)
            for number, entry in page:
                yield {"number": number, **dump_record(entry)}
            if not page:
                return
            after = page[-1][0]
    except (sqlite3.Error, Damaged) as error:
        found = explain(error) if isinstance(error, sqlite3.Error) else error.reason
        raise JournalUnavailable(path, f"it cannot be read to its end: {found}") from error
    finally:
        connection.close()


def find_entries(path: str, message_id: str) -> list[Entry]:
    """Every entry of one message, oldest first. Raises JournalUnavailable when the journal cannot be read."""
    found: list[Entry] = []
    try:
        connection = connect(path, is_reader=True)
        try:
            found = store.find_entries(connection, message_id)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise JournalUnavailable(path, explain(error)) from error
    return found


def collect_garbage(
    path: str, retention: Retention = DEFAULT_RETENTION, *, is_dry_run: bool = False, now_ms: int | None = None
) -> list[Collected]:
    """Apply the retention to every journal that nobody holds (an owner does it itself), and examine each page of it.

    A journal without messages that was not used for as long goes as a whole, and so do files once set aside; a damaged
    one is set aside. Raises JournalUnavailable for an unsafe folder.
    """
    if not os.path.lexists(path):
        return []
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    with folders.open_folder(path) as folder:
        found = [_collect(folder, stem, retention, moment, is_dry_run=is_dry_run) for stem in _stems(folder)]
        return found + _remove_aside(folder, moment - retention.keep_ms, is_dry_run=is_dry_run)


def _stems(folder: RuntimeDirectory) -> list[str]:
    names = (name for name in folder.names() if name.endswith(folders.SUFFIX) and folders.ASIDE not in name)
    return sorted(name[: -len(folders.SUFFIX)] for name in names)


def _list(folder: RuntimeDirectory, stem: str) -> Listed:
    name = stem + folders.SUFFIX
    path = f"{folder.path}/{name}"
    is_held = _is_held(folder, stem)
    counts: dict[str, Any] = {"native_id": "", "messages": 0, "unfinished": 0, "newest_at_ms": 0, "note": ""}
    try:
        folders.require_private(folder, name)
        counts.update(_count(path))
    except JournalUnavailable as refusal:
        counts["note"] = refusal.reason
    except sqlite3.Error as error:
        counts["note"] = explain(error)
    except Damaged as damage:
        counts["note"] = damage.reason
    holder_pid = folders.read_holder(folder, stem) if is_held else 0
    return Listed(path=path, is_held=is_held, holder_pid=holder_pid, size_bytes=_size_of(folder, stem), **counts)


def _count(path: str) -> dict[str, Any]:
    connection = connect(path, is_reader=True)
    try:
        messages, unfinished = connection.execute("SELECT count(*), total(unfinished) FROM messages").fetchone()
        newest = connection.execute("SELECT at_ms FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        return {
            "native_id": read_native_id(connection),
            "messages": messages,
            "unfinished": int(unfinished),
            "newest_at_ms": newest[0] if newest else 0,
        }
    finally:
        connection.close()


def _is_held(folder: RuntimeDirectory, stem: str) -> bool:
    try:
        fd = folder.open(stem + folders.LOCK_SUFFIX, os.O_RDONLY)
    except OSError:
        return False
    try:
        return probe_lock(fd) == HELD
    finally:
        os.close(fd)


def _size_of(folder: RuntimeDirectory, stem: str) -> int:
    names = (stem + folders.SUFFIX, stem + folders.SUFFIX + folders.LOG_SUFFIX)
    return sum(folder.stat(name).st_size for name in names if folder.mark(name) is not None)


def _collect(folder: RuntimeDirectory, stem: str, retention: Retention, now_ms: int, *, is_dry_run: bool) -> Collected:
    blank = Collected(
        path=f"{folder.path}/{stem}{folders.SUFFIX}",
        removed_messages=0,
        trimmed_messages=0,
        freed_bytes=0,
        is_removed=False,
        note="",
    )
    try:
        lock = folders.lock_journal(folder, stem)
    except (JournalBusy, JournalUnavailable) as refusal:
        return blank.replace(note=str(refusal))
    with lock:
        try:
            folders.require_private(folder, stem + folders.SUFFIX)
            return _collect_locked(folder, stem, retention, now_ms, blank, is_dry_run=is_dry_run)
        except Damaged as damage:
            aside = "" if is_dry_run else f"; set aside as {folders.set_aside(folder, stem)}"
            return blank.replace(note=f"damaged: {damage.reason}{aside}")
        except JournalUnavailable as refusal:
            return blank.replace(note=str(refusal))
        except sqlite3.Error as error:
            return blank.replace(note=f"not collected: {explain(error)}")


def _collect_locked(
    folder: RuntimeDirectory, stem: str, retention: Retention, now_ms: int, blank: Collected, *, is_dry_run: bool
) -> Collected:
    before = _size_of(folder, stem)
    connection = connect(blank.path)
    try:
        migrate(connection, blank.path, "")
        examine(connection, None, is_doubtful=True, is_complete=True)
        if is_dry_run:
            return blank.replace(removed_messages=collecting.count_expired(connection, retention, now_ms))
        store.fold_index(connection, store.newest_number(connection))
        removed, trimmed = collecting.collect(connection, retention, now_ms, passes=_ALL)
        if removed or trimmed:
            connection.execute("VACUUM")
        is_empty = connection.execute("SELECT count(*) FROM entries").fetchone()[0] == 0
    finally:
        connection.close()
    last_used_ms = int(folder.stat(stem + folders.SUFFIX).st_mtime * 1000)
    is_removed = is_empty and last_used_ms < now_ms - retention.keep_ms
    if is_removed:
        _remove_files(folder, stem)
    freed = max(0, before - _size_of(folder, stem))
    return blank.replace(removed_messages=removed, trimmed_messages=trimmed, freed_bytes=freed, is_removed=is_removed)


def _remove_files(folder: RuntimeDirectory, stem: str) -> None:
    """The lock last: who waits for it sees that it lost its name, and makes a new one."""
    name = stem + folders.SUFFIX
    for gone in (name + folders.LOG_SUFFIX, name + folders.SHARED_SUFFIX, name, stem + folders.LOCK_SUFFIX):
        folders.remove(folder, gone)


def _remove_aside(folder: RuntimeDirectory, before_ms: int, *, is_dry_run: bool) -> list[Collected]:
    removed = []
    for name in sorted(name for name in folder.names() if folders.ASIDE in name):
        seen = folder.stat(name)
        if seen.st_mtime * 1000 >= before_ms:
            continue
        if not is_dry_run:
            folders.remove(folder, name)
        removed.append(
            Collected(
                path=f"{folder.path}/{name}",
                removed_messages=0,
                trimmed_messages=0,
                freed_bytes=seen.st_size,
                is_removed=True,
                note="was set aside",
            )
        )
    return removed
