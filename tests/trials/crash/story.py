"""One native session from its first life to the last: killed, started again, in the end drained.

Owns the plan of deaths and gathering the evidence: the ledger, what each life said, the journal and the host's history
after each. Does not own the acts (``senders``, ``recipient``) nor the judgement.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from libintercom.session.faults import POINTS
from libintercom.session.journal import JournalUnavailable, export
from libintercom.session.journal.folder import SUFFIX, stem_of
from tests.trials.crash.native import AT_ONCE, CANNOT_TELL, KNOWS, LATER, read_history
from tests.trials.crash.recipient import HALF
from tests.trials.crash.senders import ANN, BOB, COPYIST, Ledger

if TYPE_CHECKING:
    import random
    import socket
    from collections.abc import Mapping

    from tests.support.sessions import Site
    from tests.trials.crash.nursery import Nursery
    from tests.trials.crash.senders import Sender

# Only a damaged file leads there; that has a trial of its own (``tests.integration.journal``).
ELSEWHERE = ("journal.aside_log", "journal.aside")
DEADLY = tuple(point for point in (*POINTS, HALF) if point not in ELSEWHERE)
RANDOM = ""
_FIRST_LIFE = ("journal.created", "journal.migrated")
_AT_LEAVING = ("journal.closing", "journal.closed", "session.leaving", "session.detached")
_ONCE = (
    *(*_FIRST_LIFE, *_AT_LEAVING),
    *("journal.locked", "journal.opened", "start.taken_up", "start.joined"),
)
_SELDOM = ("journal.collecting", "journal.collected", "journal.folding", "journal.folded", "journal.checkpointed", HALF)
_WITH_ASK = ("session.reply_received",)
_ITERATING = ("session.given", "session.consumed")
_FINDING = ("start.asking", "start.told")
# A death that leaves something handed behind, for the next life to ask about.
_LEAVES_HANDED = "session.placing"
# Other threads may go on for so long at a point before the end.
_LINGERS_S = (0.0, 0.0, 0.004, 0.015)
# A life lasts so long at most when it dies at a random instant: joining takes 20 to 40 ms.
_LONGEST_S = 0.12
# Acts of each sender during one life.
_LEAST_ACTS, _MOST_ACTS = 3, 9
# A life that does not get to its point in time is killed where it is; a busy machine takes long to join.
_PATIENCE_S, _JOIN_S, _DRAIN_S = 0.15, 20.0, 30.0


@dataclass
class Lived:
    """One life as seen from outside. ``end``: the point it died at, ``random``, ``left`` or what went wrong."""

    order: dict[str, Any]
    said: list[dict[str, Any]] = field(default_factory=list)
    end: str = ""
    journal: list[dict[str, Any]] = field(default_factory=list)

    def words(self, key: str) -> list[dict[str, Any]]:
        return [said for said in self.said if key in said]


@dataclass
class Evidence:
    """All of a story. ``history``: the host's file at the end."""

    seed: int
    ledger: Ledger
    lives: list[Lived] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


class Story:
    """``points``: where its lives die, in this order (``""``: at a random instant)."""

    def __init__(
        self,
        number: int,
        site: Site,
        nursery: Nursery,
        senders: Mapping[str, Sender],
        dice: random.Random,
        planted: str = "",
    ) -> None:
        self._site, self._nursery, self._senders, self._dice = site, nursery, senders, dice
        native = f"native-{number}"
        self._journal = f"{site.places.journals}/{stem_of(native)}{SUFFIX}"
        self._shape = {
            "native": native,
            "name": f"recipient-{number}",
            "environment": site.environment,
            "history": f"{site.state}/{native}.history",
            "plant": planted,
            "steer": dice.random() < 0.6,
            "finds": CANNOT_TELL if dice.random() < 0.3 else KNOWS,
            "confirms": LATER if dice.random() < 0.3 else AT_ONCE,
        }
        self.evidence = Evidence(number, Ledger(native))

    async def run(self, points: list[str]) -> Evidence:
        # A program that iterates has points of its own, and no batches.
        self._shape["iterates"] = HALF not in points and not set(_ITERATING).isdisjoint(points)
        for point in arrange(points):
            await self._live(point)
        await self._live(RANDOM, is_last=True)
        self.evidence.history = read_history(self._shape["history"])
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._shape["history"])
        return self.evidence

    def _order(self, point: str, *, is_last: bool) -> dict[str, Any]:
        life, dice = len(self.evidence.lives), self._dice
        nth = 1 if point in _ONCE else dice.randint(1, 2 if point in _SELDOM else 5)
        return {
            **self._shape,
            "life": life,
            "incarnation": f"incarnation-{life}",
            "seed": dice.randrange(1 << 32),
            "point": point,
            "nth": 1 if point in _WITH_ASK + _FINDING else nth,
            "lingers_s": dice.choice(_LINGERS_S),
            "moods": not is_last and dice.random() < 0.5,
            "asks": dice.choice((ANN, BOB)) if point in _WITH_ASK or dice.random() < 0.3 else "",
        }

    async def _live(self, point: str, *, is_last: bool = False) -> None:
        order = self._order(point, is_last=is_last)
        lived = Lived(order)
        self.evidence.lives.append(lived)
        for sender in self._senders.values():
            sender.turn_to(self.evidence.ledger, order)
        life = _Life(*self._nursery.begin(order), lived)
        dies_in_s = None if point or is_last else self._dice.uniform(0.0, _LONGEST_S)
        acting = asyncio.get_running_loop().create_task(self._act(life))
        if is_last:
            await self._finish(life, acting)
        elif point:
            await self._die_at_point(life, acting, point)
        else:
            await life.wait_end(dies_in_s)
            life.kill()
        await life.wait_end()
        acting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await acting
        lived.end = _name_end(self._nursery.ended(), point, life)
        life.close()
        lived.journal = _read_journal(self._journal)

    async def _finish(self, life: _Life, acting: asyncio.Task[None]) -> None:
        await asyncio.wait([acting], timeout=_JOIN_S)
        life.tell(b"drain")
        if not await life.wait_end(_DRAIN_S):
            life.lived.said.append({"broke": f"it did not drain within {_DRAIN_S:g} s"})
            life.kill()

    async def _die_at_point(self, life: _Life, acting: asyncio.Task[None], point: str) -> None:
        await asyncio.wait([acting], timeout=_JOIN_S)
        if point in _AT_LEAVING:
            life.tell(b"leave")
        if not await life.wait_end(_JOIN_S if point in _AT_LEAVING else _PATIENCE_S):
            life.kill()

    async def _act(self, life: _Life) -> None:
        """What the senders do while one life lasts."""
        session_id = await life.wait_joined()
        if not session_id:
            return
        for sender in self._senders.values():
            sender.aim(session_id)
        counts = {name: self._dice.randint(_LEAST_ACTS, _MOST_ACTS) for name in (ANN, BOB)}
        acts = [self._senders[name].write(count) for name, count in counts.items()]
        await asyncio.gather(*acts, self._senders[COPYIST].copy(self._dice.randint(0, 2)))


class _Life:
    """A running life: its channel is read to the end, which comes with its death."""

    def __init__(self, pidfd: int, channel: socket.socket, lived: Lived) -> None:
        self.lived = lived
        self.was_killed = False
        # Whoever got its process ID meanwhile is not meant.
        self._pidfd = pidfd
        self._channel = channel
        loop = asyncio.get_running_loop()
        self._joined: asyncio.Future[str] = loop.create_future()
        self._reading = loop.create_task(self._read())

    async def _read(self) -> None:
        reader, writer = await asyncio.open_connection(sock=self._channel, limit=1 << 22)
        self._writer = writer
        with contextlib.suppress(ConnectionResetError):
            async for line in reader:
                self._hear(line)
        writer.close()
        if not self._joined.done():
            self._joined.set_result("")

    def _hear(self, line: bytes) -> None:
        # A kill may cut the last one short.
        if line.endswith(b"\n"):
            said = json.loads(line)
            self.lived.said.append(said)
            if "joined" in said and not self._joined.done():
                self._joined.set_result(said["joined"])

    async def wait_joined(self) -> str:
        """Its peer ID; ``""`` when it died before."""
        return await asyncio.shield(self._joined)

    async def wait_end(self, timeout_s: float | None = None) -> bool:
        done, _running = await asyncio.wait([self._reading], timeout=timeout_s)
        return bool(done)

    def tell(self, how: bytes) -> None:
        if not self._reading.done():
            self._writer.write(how)

    def kill(self) -> None:
        if not self._reading.done():
            self.was_killed = True
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        os.close(self._pidfd)


def _read_journal(path: str) -> list[dict[str, Any]]:
    """Every entry on disk; none before there is a schema."""
    try:
        return [row for row in export(path) if "kind" in row]
    except JournalUnavailable:
        return []


def arrange(points: list[str]) -> list[str]:
    """First lives first, and before a search something to be searched for."""
    arranged = sorted(points, key=lambda point: point not in _FIRST_LIFE)
    return [step for point in arranged for step in ((_LEAVES_HANDED, point) if point in _FINDING else (point,))]


def _name_end(status: int, point: str, life: _Life) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return "random" if life.was_killed or not point else point
    return "left" if status == 0 else f"status {status}"
