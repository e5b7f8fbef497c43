"""Every spool, real and fake, answers a letter with how it ended, and under the letter's id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from intercomd.core.effects import StoreLetter
from intercomd.core.events import LetterStored, StoreFailed
from intercomd.edges.spool.memory import MemorySpool
from libintercom.wire.messages import DeadLetter
from tests.support.fakes import FakeSpool

if TYPE_CHECKING:
    from intercomd.ports import Spool


def letter(number: int) -> StoreLetter:
    made = DeadLetter(
        id=f"d{number}", sender_id="s", recipient_id="r", message_id="m", reason="recipient_left", at_ms=number
    )
    return StoreLetter(made)


@pytest.mark.parametrize("spool", [MemorySpool(), FakeSpool()], ids=["memory", "fake"])
def test_a_letter_is_stored_under_its_id(spool: Spool) -> None:
    assert [spool.store(letter(number)) for number in range(3)] == [LetterStored(f"d{number}") for number in range(3)]


def test_the_fake_can_fail() -> None:
    spool = FakeSpool()
    spool.failure = "disk full"
    assert spool.store(letter(1)) == StoreFailed("d1", "disk full")
    assert spool.stored == []
