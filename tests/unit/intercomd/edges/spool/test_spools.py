"""Every spool, real and fake: answers in order, forgets, and has its items again when it is started once more.

The same tests for all of them. What only the durable one does stands in ``test_durable`` and ``test_database``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from intercomd.core.effects import Forget, Store
from intercomd.core.events import Forgotten, Recovered, Stored, StoreFailed
from intercomd.core.items import Item
from intercomd.edges.spool.memory import MemorySpool
from tests.support.fakes import FakeSpool
from tests.support.spools import DurableDesk, Heard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from intercomd.ports import Spool

    Make = Callable[[], Spool]


def item(number: int, facts: bytes = b"{}") -> Item:
    return Item(f"k{number}", "input", facts, b'{"id":"s"}', b'{"id":"m\\ud800"}')


@pytest.fixture(params=["memory", "fake", "durable"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes a spool; the same one again, or another one on the same file."""
    if request.param == "durable":
        return DurableDesk(tmp_path).make
    spool = MemorySpool() if request.param == "memory" else FakeSpool()
    return lambda: spool


def test_items_are_answered_for_in_order(make: Make) -> None:
    spool, heard = make(), Heard()
    spool.start(heard)
    for number in range(20):
        spool.apply(Store(item(number)))
    heard.wait_for(20)
    assert heard.events == [Stored(f"k{number}") for number in range(20)]
    spool.close()


def test_an_empty_spool_recovers_nothing(make: Make) -> None:
    spool, heard = make(), Heard()
    spool.start(heard)
    spool.close()
    assert heard.events == []


def test_what_was_stored_is_there_again_in_its_order_and_to_the_byte(make: Make) -> None:
    spool, heard = make(), Heard()
    spool.start(heard)
    for number in (3, 1, 2):
        spool.apply(Store(item(number)))
    # Stored once more, an item keeps its place.
    spool.apply(Store(item(3, b'{"a":1}')))
    spool.apply(Forget("k1"))
    heard.wait_for(4)
    spool.close()
    again, recovered = make(), Heard()
    again.start(recovered)
    assert recovered.events == [Recovered((item(3, b'{"a":1}'), item(2)))]
    again.close()


def test_nothing_is_reported_behind_its_end(make: Make) -> None:
    spool, heard = make(), Heard()
    spool.start(heard)
    spool.close()
    assert heard.events == []


def test_forgetting_what_is_not_there_is_no_matter(make: Make) -> None:
    spool, heard = make(), Heard()
    spool.start(heard)
    spool.apply(Forget("never"))
    spool.apply(Store(item(1)))
    heard.wait_for(1)
    assert heard.events == [Stored("k1")]
    spool.close()


def test_what_is_forgotten_is_answered_where_that_is_asked_for(make: Make) -> None:
    spool, heard = make(), Heard()
    spool.start(heard)
    spool.apply(Store(item(1)))
    spool.apply(Forget("k1", is_answered=True))
    spool.apply(Forget("never", is_answered=True))
    heard.wait_for(3)
    assert heard.events == [Stored("k1"), Forgotten("k1"), Forgotten("never")]
    spool.close()


def test_the_fake_can_fail() -> None:
    spool, heard = FakeSpool(), Heard()
    spool.start(heard)
    spool.failure = "disk full"
    spool.apply(Store(item(1)))
    spool.apply(Forget("k1", is_answered=True))
    assert heard.events == [StoreFailed("k1", "disk full"), Forgotten("k1", "disk full")]
    assert spool.items == {}
