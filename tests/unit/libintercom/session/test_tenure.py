"""The beginning and the end of one native session's turn: what is let go of whatever happens, and what is chosen."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.paths import find_places
from libintercom.session.errands import read_badge
from libintercom.session.host import QueueHost
from libintercom.session.journal import Journal
from libintercom.session.options import Chosen
from libintercom.session.states import Live
from libintercom.session.tenure import Tenure
from tests.support.arrivals import inbound
from tests.support.held_ledger import Full

if TYPE_CHECKING:
    from pathlib import Path

LIVE = Live(session="native", incarnation="i")


@pytest.fixture
def places(tmp_path: Path) -> Any:
    return find_places({"XDG_STATE_HOME": str(tmp_path), "PI_CODING_AGENT_DIR": str(tmp_path / "agent")})


def begin(places: Any, **options: Any) -> Any:
    return Tenure.begin(LIVE, Chosen({"places": places, **options}), lambda: None)


def test_it_ends_with_everything_on_record_and_the_journal_free(places: Any) -> None:
    async def run() -> None:
        tenure = await begin(places)
        tenure.put_up_badge("pi-1")
        badge = read_badge(places.journals, "native")
        assert badge is not None
        assert (badge.pid, badge.peer_id, badge.key) == (os.getpid(), "pi-1", tenure.key)
        for number in range(3):
            await tenure.engine.admit(inbound(f"m{number}"))
        await tenure.end()

    asyncio.run(run())
    assert read_badge(places.journals, "native") is None
    with Journal.open("native", folder=places.journals) as journal:
        # Admitted, not taken by the program: with us again.
        assert [(one.message_id, one.kind) for one in journal.unfinished()] == [(f"m{n}", "queued") for n in range(3)]


def test_a_recovery_that_fails_frees_the_journal(places: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_journal: Any) -> Any:
        raise Full

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "unfinished", fail)
        with pytest.raises(Full):
            asyncio.run(begin(places))
    with Journal.open("native", folder=places.journals) as journal:
        assert list(journal.unfinished()) == []


def test_without_a_journal_there_is_no_badge(places: Any) -> None:
    async def run() -> None:
        tenure = await begin(places, journal=False)
        tenure.put_up_badge("pi-1")
        assert (tenure.key, "no journal was asked for" in tenure.note) == ("", True)
        await tenure.end()

    asyncio.run(run())
    assert read_badge(places.journals, "native") is None


def test_what_is_chosen_is_kept_and_what_does_not_exist_is_refused(places: Any) -> None:
    host = QueueHost()
    chosen = Chosen({"host": host, "places": places, "spawn": False})
    assert chosen.host is host
    assert chosen.client == {"spawn": False, "places": places, "timeouts": None}
    assert chosen.journal_folder == places.journals
    assert isinstance(Chosen({}).host, QueueHost)
    wrong: Any = {"hosts": host}
    with pytest.raises(TypeError, match="no such option: hosts"):
        Chosen(wrong)
