"""What an open journal keeps in memory: bounded, and never without what is not stored yet."""

from __future__ import annotations

from libintercom.session.entries import extend
from libintercom.session.journal import store
from libintercom.session.journal.memory import Known, Memory
from tests.support.journaled import admitted


def add(memory: Memory, number: int, size_bytes: int = 10):
    entry = admitted(f"m{number}")
    known = Known(extend(None, entry, order=number), number)
    known.waiting.append((number, entry))
    memory.add(entry.message_id, known, size_bytes)
    return store.make_row(entry, number, 0, number, is_unfinished=True, body="{}")


def test_what_is_not_stored_is_never_forgotten() -> None:
    memory = Memory(0, limit=3)
    rows = [add(memory, number) for number in range(1, 11)]
    assert len(memory.recent) == 10
    assert memory.unfinished(4) == [(number, f"m{number}") for number in range(5, 11)]
    memory.settle(rows[:4])
    assert list(memory.recent) == [f"m{number}" for number in range(5, 11)]
    memory.settle(rows[4:])
    assert list(memory.recent) == ["m8", "m9", "m10"]
    assert memory.stored == 10


def test_long_texts_are_forgotten_sooner() -> None:
    memory = Memory(0, limit=100, limit_bytes=1_000)
    memory.settle([add(memory, number, 400) for number in range(1, 6)])
    assert list(memory.recent) == ["m4", "m5"]


def test_one_message_is_kept_however_long() -> None:
    memory = Memory(0, limit_bytes=10)
    memory.settle([add(memory, 1, 5_000)])
    assert list(memory.recent) == ["m1"]


def test_the_tail_holds_what_the_index_does_not() -> None:
    memory = Memory(0)
    memory.settle([add(memory, number) for number in range(1, 6)])
    assert memory.tail["m5"] == (5, 5, 1)
    memory.folded(3)
    assert sorted(memory.tail) == ["m4", "m5"]


def test_forgetting_leaves_what_is_stored() -> None:
    memory = Memory(0)
    memory.settle([add(memory, 1)])
    add(memory, 2)
    memory.forget()
    assert memory.unfinished(0) == [(1, "m1")]
