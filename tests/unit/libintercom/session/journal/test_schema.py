"""Connections and versions: the settings in force, migrations one by one, what a reader cannot do."""

from __future__ import annotations

import sqlite3

import pytest

from libintercom.session.journal import Journal, JournalUnavailable, schema

SETTINGS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "trusted_schema": 0,
    "foreign_keys": 1,
    "cell_size_check": 1,
    "wal_autocheckpoint": 0,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_in_force(journal: Journal, name: str) -> None:
    assert journal._connection.execute(f"PRAGMA {name}").fetchone()[0] == SETTINGS[name]


def test_a_reader_writes_nothing(journal: Journal) -> None:
    reader = schema.connect(journal.path, is_reader=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM entries")
    reader.close()


def test_an_older_database_is_brought_to_the_newest_version_step_by_step(place: str) -> None:
    path = f"{place}/old.sqlite"
    sqlite3.connect(path).close()
    with open(path, "wb"):
        pass
    one, two = "CREATE TABLE facts (name, value);", "ALTER TABLE facts ADD COLUMN third;"
    connection = schema.connect(path)
    schema.migrate(connection, path, "ann", [one])
    assert schema.read_pragma(connection, "user_version") == 1
    schema.migrate(connection, path, "ann", [one, two])
    schema.migrate(connection, path, "ann", [one, two])
    assert schema.read_pragma(connection, "user_version") == 2
    assert connection.execute("SELECT third FROM facts").fetchall() == [(None,)]
    connection.close()


def test_a_step_that_fails_leaves_the_version_before_it(place: str) -> None:
    path = f"{place}/old.sqlite"
    with open(path, "wb"):
        pass
    connection = schema.connect(path)
    one, wrong = "CREATE TABLE facts (name, value);", "CREATE TABLE more (a); CREATE TABLE more (b);"
    schema.migrate(connection, path, "ann", [one])
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, path, "ann", [one, wrong])
    connection.close()
    again = schema.connect(path)
    assert schema.read_pragma(again, "user_version") == 1
    assert [row[0] for row in again.execute("SELECT name FROM sqlite_master")] == ["facts"]
    again.close()


def test_every_script_is_numbered_without_a_gap(place: str) -> None:
    assert schema.read_scripts()
    with open(f"{place}/0002_x.sql", "w", encoding="utf-8"):
        pass
    with pytest.raises(JournalUnavailable, match="0001_"):
        schema.read_scripts(place)


@pytest.mark.parametrize("native_id", ["ann", "", "a'; DROP TABLE facts; --", "\ud800\x00é"])
def test_any_native_id_is_kept_exactly(folder: str, native_id: str) -> None:
    with Journal.open(native_id, folder=folder) as opened:
        assert schema.read_native_id(opened._connection) == native_id


def test_a_path_with_every_special_character_is_opened(place: str) -> None:
    with Journal.open("ann", folder=f"{place}/a%20b?c#d é") as opened:
        assert opened.find("m1") is None
