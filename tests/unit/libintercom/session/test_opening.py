"""What a session remembers in: its journal, or memory with a word about why; and opening it again."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session.entries import Entry
from libintercom.session.errors import Forked
from libintercom.session.journal import Journal
from libintercom.session.opening import NOT_WANTED, close_ledger, open_ledger, reopen_ledger
from libintercom.session.volatile import VolatileJournal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


def entry(message_id: str) -> Entry:
    body = {"from": {}, "message": {"id": message_id}}
    return Entry(entry_id=message_id, message_id=message_id, kind="admitted", at_ms=0, body=body)


def play(story: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(story(), 20))


def test_the_journal_of_a_native_id_is_opened_and_closed(tmp_path: Path) -> None:
    async def story() -> None:
        opened = await open_ledger("native", True, str(tmp_path / "j"))
        assert (opened.note, opened.folder, opened.is_own) == ("", str(tmp_path / "j"), True)
        opened.ledger.append([entry("m")])
        await close_ledger(opened.ledger, os.getpid())
        again = await open_ledger("native", True, str(tmp_path / "j"))
        assert again.ledger.find("m") is not None
        await close_ledger(again.ledger, os.getpid())

    play(story)


def test_none_is_none_and_says_so() -> None:
    opened = play(lambda: open_ledger("native", False, None))
    assert isinstance(opened.ledger, VolatileJournal)
    assert (opened.note, opened.folder) == (NOT_WANTED, "")


def test_one_that_another_holds_is_not_waited_for(tmp_path: Path) -> None:
    with Journal.open("native", folder=str(tmp_path / "j")):
        opened = play(lambda: open_ledger("native", True, str(tmp_path / "j")))
    assert isinstance(opened.ledger, VolatileJournal)
    assert f"in use by process {os.getpid()}" in opened.note
    assert "This session runs without a journal" in opened.note


def test_where_there_can_be_none_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    opened = play(lambda: open_ledger("native", True, str(tmp_path / "file" / "j")))
    assert isinstance(opened.ledger, VolatileJournal)
    assert "no journal at" in opened.note
    assert "lost when it ends" in opened.note


def test_one_that_the_caller_opened_is_taken_as_it_is(tmp_path: Path) -> None:
    with Journal.open("native", folder=str(tmp_path / "j")) as journal:
        opened = play(lambda: open_ledger("another", journal, None))
        assert (opened.ledger, opened.is_own, opened.folder) == (journal, False, str(tmp_path / "j"))
        assert play(lambda: reopen_ledger(opened, "another")) is None
        assert journal.find("m") is None


def test_a_damaged_one_was_set_aside(tmp_path: Path) -> None:
    with Journal.open("native", folder=str(tmp_path / "j")) as journal:
        path = journal.path
    with open(path, "r+b") as damaged:
        damaged.write(b"no database at all")

    async def story() -> str:
        opened = await open_ledger("native", True, str(tmp_path / "j"))
        await close_ledger(opened.ledger, os.getpid())
        return opened.note

    assert "was damaged and set aside as" in play(story)


def test_one_that_stopped_is_opened_again_with_what_it_held(tmp_path: Path) -> None:
    async def story() -> None:
        opened = await open_ledger("native", True, str(tmp_path / "j"))
        opened.ledger.append([entry("m")])
        again = await reopen_ledger(opened, "native")
        assert again is not None
        assert again.ledger is not opened.ledger
        assert again.ledger.find("m") is not None
        # Somebody else was quicker: what it said when it stopped is still so.
        again.ledger.close()
        with Journal.open("native", folder=str(tmp_path / "j")):
            assert await reopen_ledger(again, "native") is None

    play(story)


def test_a_forked_program_closes_nothing() -> None:
    with pytest.raises(Forked):
        play(lambda: close_ledger(VolatileJournal(), os.getpid() + 1))
