"""The tests of the engine catch an engine that is wrong: each planted bug fails the one that looks for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session.engine import Engine
from tests.support.arrivals import ask, inbound
from tests.support.engine_rig import Rig, play
from tests.support.held_ledger import Full, HeldLedger

if TYPE_CHECKING:
    from libintercom.inbound import Inbound
    from libintercom.session.entries import Entry


class Hasty(Engine):
    """Tells the inbox that a checkpoint is stored before it is."""

    def _store(self, stored: tuple[Entry, ...]) -> None:
        super()._store(stored)
        self._settle(tuple(entry.entry_id for entry in stored), None)


class Careless(Engine):
    """Takes a failed checkpoint for a stored one."""

    def _settle(self, ids: tuple[str, ...], reason: str | None) -> None:
        super()._settle(ids, None)


class Talkative(Engine):
    """Lets a reply leave before that is on record."""

    async def begin_reply(self, ask_id: str, reply_id: str) -> str:
        beginning = asyncio.ensure_future(super().begin_reply(ask_id, reply_id))
        await asyncio.wait([beginning], timeout=0)
        return ""


class Forgetful(Engine):
    """Drops what the journal could not take."""

    def _owe(self, inbound: Inbound) -> None:
        """Nothing."""


async def offers_only_what_is_stored(rig: Rig) -> None:
    rig.ledger.is_holding = True
    await rig.engine.admit(inbound("m"))
    await asyncio.wait([asyncio.ensure_future(_idle(rig))], timeout=1)
    assert rig.host.batches == []


async def offers_nothing_that_failed(rig: Rig) -> None:
    rig.ledger.failure = Full()
    await rig.engine.admit(inbound("m"))
    await rig.settled()
    assert rig.host.batches == []


async def replies_only_on_record(rig: Rig) -> None:
    await rig.engine.admit(ask("q"))
    await rig.settled()
    rig.ledger.failure = Full()
    assert await rig.engine.begin_reply("q", "r")


async def owes_what_failed(rig: Rig) -> None:
    rig.ledger.failure = Full()
    await rig.engine.admit(inbound("m"))
    await rig.settled()
    rig.ledger.failure = None
    await rig.engine.settle_arrears()
    assert rig.ledger.find("m") is not None


async def _idle(rig: Rig) -> None:
    while not rig.engine._placing.is_idle:
        await asyncio.wait([asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(None, int))])


STORIES: list[tuple[Any, Any]] = [
    (offers_only_what_is_stored, Hasty),
    (offers_nothing_that_failed, Careless),
    (replies_only_on_record, Talkative),
    (owes_what_failed, Forgetful),
]


@pytest.mark.parametrize(("story", "_kind"), STORIES)
def test_the_engine_keeps_it(story: Any, _kind: Any) -> None:
    play(story, ledger=HeldLedger())


@pytest.mark.parametrize(("story", "kind"), STORIES)
def test_a_planted_bug_is_caught(story: Any, kind: type[Engine]) -> None:
    with pytest.raises(AssertionError):
        play(story, ledger=HeldLedger(), kind=kind)
