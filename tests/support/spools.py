"""A durable spool without a broker: its file, its reports and its log, for tests of the edge alone.

Owns what the spool is handed. Does not own what must hold of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomd.core.events import Recovered
from intercomd.edges.spool.durable import DurableSpool
from tests.support.fakes import FakeLog
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from intercomd.core.events import Event


class Heard:
    """What a spool reported, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __call__(self, events: Iterable[Event]) -> None:
        self.events += events

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.answers) >= count, f"{count} answers")

    @property
    def answers(self) -> list[Any]:
        """What was said about items that were handed over."""
        return [event for event in self.events if not isinstance(event, Recovered)]


class DurableDesk:
    """Makes durable spools on one file in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state" / "spool.sqlite"
        self.log = FakeLog()

    def make(self, refusal: str = "") -> DurableSpool:
        """A spool whose reports come on its own thread: the tests read them only behind ``wait_for``."""
        return DurableSpool(str(self.path), self.log, lambda action: action(), refusal)

    def logged(self, what: str) -> list[dict[str, Any]]:
        return [parts for _level, said, parts in self.log.records if said == what]
