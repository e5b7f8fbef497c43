"""The statements: any number of rows in one go, the index against the entries, chains with a gap."""

from __future__ import annotations

import random
import sqlite3
from typing import TYPE_CHECKING

import pytest

from libintercom.session.journal import schema, store
from tests.support.journaled import admitted, noted

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(made, ":memory:", "ann")
    yield made
    made.close()


def rows_of(count: int, dice: random.Random) -> list[store.EntryRow]:
    """Entries of a few messages, each chained to the one before of its message."""
    last: dict[str, tuple[int, int]] = {}
    rows = []
    for number in range(1, count + 1):
        name = f"m{dice.randrange(1 + count // 3)}"
        previous, first = last.get(name, (0, number))
        entry = noted(name, "queued") if previous else admitted(name)
        unfinished = dice.random() < 0.5
        body = store.encode_body(entry)
        rows.append(store.make_row(entry, number, previous, first, is_unfinished=unfinished, body=body))
        last[name] = (number, first)
    return rows


@pytest.mark.parametrize("count", [1, 3, 4, 63, 64, 65, 150])
def test_any_number_of_rows_is_stored_in_order(connection: sqlite3.Connection, count: int, seed: int) -> None:
    rows = rows_of(count, random.Random(seed))
    store.insert_entries(connection, rows)
    assert connection.execute("SELECT * FROM entries ORDER BY number").fetchall() == rows
    assert [number for number, _entry in store.read_page(connection, 0, 1_000)] == list(range(1, count + 1))


def test_the_index_says_what_the_entries_say_however_often_it_is_folded(
    connection: sqlite3.Connection, seed: int
) -> None:
    dice, rows = random.Random(seed), rows_of(300, random.Random(seed))
    stored = 0
    while stored < len(rows):
        step = dice.randrange(1, 60)
        store.insert_entries(connection, rows[stored : stored + step])
        stored = min(len(rows), stored + step)
        if dice.random() < 0.7:
            store.fold_index(connection, stored)
    store.fold_index(connection, stored)
    assert store.read_tail(connection) == []
    expected = {row[6]: (row[2], row[0]) for row in rows}
    assert {name: store.find_message(connection, name) for name in expected} == expected
    open_ones = sorted({row[2]: row[6] for row in rows if row[0] == expected[row[6]][1] and row[3]}.items())
    assert store.read_unfinished(connection, 0, 1_000) == open_ones
    assert store.newest_number(connection) == 300


def test_the_tail_is_what_the_index_lacks(connection: sqlite3.Connection, seed: int) -> None:
    rows = rows_of(60, random.Random(seed))
    store.insert_entries(connection, rows[:30])
    store.fold_index(connection, 30)
    store.insert_entries(connection, rows[30:])
    newest = {row[6]: (row[6], row[2], row[0], row[3]) for row in rows[30:]}
    assert {row[0]: row for row in store.read_tail(connection)} == newest


def test_a_chain_ends_where_retention_cut_it(connection: sqlite3.Connection) -> None:
    first, second, third = admitted("m"), noted("m", "queued"), noted("m", "handed")
    entries = [(first, 1, 0), (second, 2, 1), (third, 3, 2)]
    store.insert_entries(
        connection,
        [store.make_row(e, n, p, 1, is_unfinished=True, body=store.encode_body(e)) for e, n, p in entries],
    )
    assert [entry for _number, entry, _size in store.read_chain(connection, 3)] == [first, second, third]
    connection.execute("DELETE FROM entries WHERE number = 1")
    assert [number for number, _entry, _size in store.read_chain(connection, 3)] == [2, 3]
    assert store.read_chain(connection, 0) == []


def test_the_schema_refuses_rows_that_point_forward(connection: sqlite3.Connection) -> None:
    row = store.make_row(admitted("m"), 5, 5, 1, is_unfinished=True, body="{}")
    with pytest.raises(sqlite3.IntegrityError):
        store.insert_entries(connection, [row])


QUESTIONS = {
    "one message": (store.find_message, ("m1",)),
    "a chain": (store.read_chain, (3,)),
    "what is unfinished": (store.read_unfinished, (0, 10)),
    "a page of entries": (store.read_page, (0, 10)),
    "the newest number": (store.newest_number, ()),
    "the tail": (store.read_tail, ()),
}


def plans(connection: sqlite3.Connection, question: str) -> list[str]:
    """How SQLite answers a question's statements."""
    asked: list[str] = []
    ask, given = QUESTIONS[question]
    connection.set_trace_callback(asked.append)
    ask(connection, *given)
    connection.set_trace_callback(None)
    return [row[3] for statement in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_reads_a_whole_table(connection: sqlite3.Connection, question: str) -> None:
    found = plans(connection, question)
    assert found
    # Reading an index or a table in its own order is bounded by the LIMIT or by what lies beyond the index.
    assert [plan for plan in found if plan.startswith("SCAN")] == []


def test_a_question_that_reads_a_whole_table_is_seen(connection: sqlite3.Connection) -> None:
    connection.execute("DROP INDEX messages_unfinished")
    assert any(plan.startswith("SCAN") for plan in plans(connection, "what is unfinished"))
