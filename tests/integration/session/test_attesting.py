"""A receipt tells what is stored: never of a checkpoint that a crash may yet take back."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from libintercom.session import faults
from tests.support.waiting import DEADLINE_S, wait_until_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.daemon import Daemon
    from tests.support.sessions import Site


class Gate:
    """Holds the journal's writer before it commits."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self._opened = threading.Event()

    def hold(self, point: str) -> None:
        if point == "journal.inserted":
            self.is_reached.set()
            self._opened.wait(DEADLINE_S)

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    faults.set_hook(None)
    made.open()


def test_a_receipt_waits_for_what_is_being_stored(place: Site, broker: Daemon, gate: Gate) -> None:
    async def run() -> None:
        async with await place.join("a", journal=False) as a, await place.join("b") as b:
            faults.set_hook(gate.hold)
            sent = await a.send("b", "hello")
            await wait_until_async(gate.is_reached.is_set, "the checkpoint")
            # A companion in the program itself cannot wait: there is no receipt yet.
            assert b._reception is not None
            assert b._reception.attest("native-b", sent.message_id) == {"error": "receipt_not_found"}
            asked = asyncio.create_task(a.receipt("b", "native-b", sent.message_id))
            # Whatever is answered now would be answered before this.
            assert len((await a.list_sessions()).rows) == 2
            assert not asked.done()
            gate.open()
            assert (await asked)["checkpointEntryId"]
            assert b._reception.attest("native-b", sent.message_id)["receipt"]["nativeHandoff"] is True

    asyncio.run(run())
