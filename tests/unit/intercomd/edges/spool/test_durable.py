"""The durable spool's own promises: private, checked, set aside when damaged, and never silent about a failure."""

from __future__ import annotations

import os
import sqlite3
import stat
from typing import TYPE_CHECKING

import pytest

from intercomd.core.effects import Forget, Store
from intercomd.core.events import Recovered, Stored, StoreFailed
from intercomd.core.items import Item
from intercomd.edges.spool import database, faults
from intercomd.edges.spool.durable import DurableSpool
from tests.support.spools import DurableDesk, Heard
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def item(number: int) -> Item:
    return Item(f"k{number}", "letter", b"{}")


def store(desk: DurableDesk, *numbers: int) -> None:
    """What an earlier broker left."""
    spool, heard = desk.make(), Heard()
    spool.start(heard)
    for number in numbers:
        spool.apply(Store(item(number)))
    heard.wait_for(len(numbers))
    spool.close()
    assert heard.events[-1] == Stored(f"k{numbers[-1]}")


def answer(desk: DurableDesk, number: int = 9) -> object:
    """What a spool says to one more item."""
    spool, heard = desk.make(), Heard()
    spool.start(heard)
    spool.apply(Store(item(number)))
    heard.wait_for(1)
    spool.close()
    return heard.events[-1]


@pytest.fixture
def desk(tmp_path: Path) -> DurableDesk:
    return DurableDesk(tmp_path)


def test_no_file_is_made_before_something_is_kept(desk: DurableDesk) -> None:
    spool = desk.make()
    spool.start(Heard())
    spool.close()
    assert not desk.path.parent.exists()


def test_file_and_folder_are_private(desk: DurableDesk) -> None:
    old = os.umask(0)
    try:
        store(desk, 1)
    finally:
        os.umask(old)
    assert stat.S_IMODE(desk.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o600


def test_an_open_folder_or_file_is_closed_to_others(desk: DurableDesk) -> None:
    store(desk, 1)
    desk.path.parent.chmod(0o755)
    desk.path.chmod(0o644)
    assert answer(desk) == Stored("k9")
    assert stat.S_IMODE(desk.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"this is no database at all, and long enough to be read as one" * 20, b"SQLite"])
def test_a_damaged_file_is_set_aside_and_said_so(desk: DurableDesk, damage: bytes) -> None:
    store(desk, 1)
    desk.path.write_bytes(damage)
    assert answer(desk) == Stored("k9")
    (said,) = desk.logged("spool damaged, set aside")
    assert said["kept"] == f"{desk.path}.damaged-1"
    with open(said["kept"], "rb") as kept:
        assert kept.read() == damage
    # The next one is not put in its place.
    desk.path.write_bytes(damage)
    assert answer(desk) == Stored("k9")
    assert os.path.exists(f"{desk.path}.damaged-2")


def test_a_page_that_was_overwritten_is_found_at_opening(desk: DurableDesk) -> None:
    store(desk, *range(200))
    with open(desk.path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    assert answer(desk, 900) == Stored("k900")
    assert desk.logged("spool damaged, set aside")


def test_a_newer_schema_is_left_alone(desk: DurableDesk) -> None:
    store(desk, 1)
    with sqlite3.connect(desk.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused = answer(desk)
    assert isinstance(refused, StoreFailed)
    assert "newer intercomd (schema 99" in refused.reason
    assert desk.logged("spool not opened")
    with sqlite3.connect(desk.path) as connection:
        assert connection.execute("SELECT key FROM item").fetchall() == [("k1",)]
    connection.close()


def test_a_network_filesystem_is_refused(desk: DurableDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "read_network_type", lambda _descriptor: "nfs")
    refused = answer(desk)
    assert isinstance(refused, StoreFailed)
    assert "network filesystem (nfs)" in refused.reason
    assert not desk.path.exists()


def test_a_file_that_another_process_holds_is_not_taken(desk: DurableDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_TIMEOUT_S", 0.01)
    store(desk, 1)
    first, heard = desk.make(), Heard()
    first.start(heard)
    refused = answer(desk)
    first.close()
    assert isinstance(refused, StoreFailed)
    assert "locked" in refused.reason
    assert heard.events == [Recovered((item(1),))]


def test_a_link_is_not_followed(desk: DurableDesk, tmp_path: Path) -> None:
    desk.path.parent.mkdir()
    desk.path.symlink_to(tmp_path / "elsewhere")
    refused = answer(desk)
    assert isinstance(refused, StoreFailed)
    assert "not a file of this user" in refused.reason
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_is_told_and_what_is_to_be_forgotten_is_not_forgotten(desk: DurableDesk) -> None:
    """SQLite's own bound on pages stands for the disk: it fails the same way, with SQLITE_FULL."""
    store(desk, 1, 2)
    spool, heard = desk.make(), Heard()
    spool.start(heard)
    held = spool._database
    assert held is not None
    (pages,) = held._connection.execute("PRAGMA page_count").fetchone()
    held._connection.execute(f"PRAGMA max_page_count = {pages}")
    spool.apply(Forget("k1"))
    spool.apply(Store(Item("big", "input", b"{}", message=b"x" * 100_000)))
    heard.wait_for(1)
    assert heard.events[-1] == StoreFailed("big", "database or disk is full")
    held._connection.execute("PRAGMA max_page_count = 100000")
    spool.apply(Store(item(3)))
    heard.wait_for(2)
    spool.close()
    again = Heard()
    desk.make().start(again)
    assert [one.key for one in again.events[0].items] == ["k2", "k3"]
    assert len(desk.logged("not stored")) == 1


def test_a_failure_is_logged_once_until_it_changes(desk: DurableDesk) -> None:
    spool, heard = desk.make("no home"), Heard()
    spool.start(heard)
    for number in range(3):
        spool.apply(Store(item(number)))
        heard.wait_for(number + 1)
    spool.close()
    assert heard.events == [StoreFailed(f"k{number}", "no home") for number in range(3)]
    assert [parts["reason"] for parts in desk.logged("not stored")] == ["no home"]


def test_what_one_turn_asks_for_is_one_transaction(desk: DurableDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill leaves a decision whole or undone: a message that was dropped has its letter, or is still there."""
    begun: list[str] = []
    monkeypatch.setattr(faults, "hook", lambda point: begun.append(point) if point == "transaction begun" else None)
    turns: list[Callable[[], object]] = []
    spool, heard = DurableSpool(str(desk.path), desk.log, turns.append), Heard()
    spool.start(heard)
    for turn in range(2):
        for number in range(20):
            spool.apply(Store(item(100 * turn + number)))
        # The loop comes round.
        turns.pop(0)()
        wait_until(lambda: turns, "the report")
        turns.pop(0)()
    spool.close()
    assert len(heard.answers) == 40
    assert len(begun) == 2


def test_what_was_asked_for_before_the_end_is_kept(desk: DurableDesk) -> None:
    spool = desk.make()
    spool.start(Heard())
    for number in range(50):
        spool.apply(Store(item(number)))
    spool.close()
    again = Heard()
    desk.make().start(again)
    assert len(again.events[0].items) == 50


def test_bodies_do_not_stay_behind(desk: DurableDesk) -> None:
    spool, heard = desk.make(), Heard()
    spool.start(heard)
    spool.apply(Store(Item("k1", "input", b"{}", message=b"a secret body")))
    heard.wait_for(1)
    spool.apply(Forget("k1"))
    spool.close()
    assert b"a secret body" not in desk.path.read_bytes()
    assert os.listdir(desk.path.parent) == ["spool.sqlite"]


def test_every_fault_point_is_reached(desk: DurableDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []
    monkeypatch.setattr(faults, "hook", reached.append)
    store(desk, 1)
    assert list(dict.fromkeys(reached)) == list(faults.POINTS)
