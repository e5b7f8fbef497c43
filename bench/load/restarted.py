"""Some sessions of a circle, each with its journal, that talk while their broker is killed and started again.

Usage: ``python restarted.py FIRST COUNT TOTAL MISSED``: sessions FIRST to FIRST + COUNT - 1 of TOTAL; each sends to the
next. MISSED is what they do when they miss their broker: ``start`` one, or ``wait`` for somebody else to do so.
Says ``joined``, then does what a line on its stdin says:

    begin    send on and on
    stop     send no more; answers {message ID: outcome}
    end      take what still comes, leave; answers {"received": [message ID, ...], "waiting": [those left on record]}
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from libintercom.profile import Profile
from libintercom.session.aio import AsyncSession
from libintercom.session.reconnecting import RECONNECT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from libintercom.session.background import BackgroundError

# Between an answer and the next message of a session: in all some hundred messages a second, fewer than one pair of
# sessions may exchange (600 a minute) in one run.
_PAUSE_S = 0.05
# Nothing came for so long, behind the last send of everybody: a message is in its socket when it is acknowledged.
_QUIET_S = 2.0
# What a message says; as long as those of the other figures.
_TEXT = "x" * 512


class Member:
    """One session of the circle, what it sent and how that ended, and what it received."""

    def __init__(self, session: AsyncSession, following: str) -> None:
        self.session = session
        self.sent: dict[str, str] = {}
        self.received: list[str] = []
        self._following = following

    async def send(self, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            outcome = await self.session.send(self._following, _TEXT)
            self.sent[outcome.message_id] = outcome.outcome
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stopped.wait(), _PAUSE_S)

    async def receive(self, ending: asyncio.Event) -> None:
        """Until nothing came for a while behind the end."""
        while not ending.is_set():
            async for arrival in self.session.inbound(_QUIET_S):
                self.received.append(arrival.message.id)


async def main(first: int, count: int, total: int, *, may_start: bool) -> None:
    members = [await _join(number, total, may_start=may_start) for number in range(first, first + count)]
    stopped, ending = asyncio.Event(), asyncio.Event()
    receiving = _begin(members, lambda one: one.receive(ending))
    await _say_and_hear("joined")
    sending = _begin(members, lambda one: one.send(stopped))
    await _hear()
    stopped.set()
    await asyncio.gather(*sending)
    await _say_and_hear({key: outcome for one in members for key, outcome in one.sent.items()})
    ending.set()
    await asyncio.gather(*receiving)
    waiting = [message_id for one in members for message_id in one.session.waiting()]
    await asyncio.gather(*(one.session.leave() for one in members))
    received = [message_id for one in members for message_id in one.received]
    print(json.dumps({"received": received, "waiting": waiting}), flush=True)


def _begin(members: list[Member], work: Callable[[Member], Coroutine[Any, Any, None]]) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(work(one)) for one in members]


async def _join(number: int, total: int, *, may_start: bool) -> Member:
    name = f"circle-{number}"
    profile = Profile(cwd="/", model="bench", name=name)
    session = await AsyncSession.join(profile, native_id=name, spawn=may_start, on_background_error=_note)
    if session.journal_note:
        raise SystemExit(f"restarted: {session.journal_note}")
    return Member(session, f"circle-{(number + 1) % total}")


def _note(error: BackgroundError) -> None:
    """That nobody listens is what is measured; anything else belongs on stderr."""
    if error.operation != RECONNECT:
        print(error, file=sys.stderr, flush=True)


async def _say_and_hear(said: object) -> None:
    print(said if isinstance(said, str) else json.dumps(said), flush=True)
    await _hear()


async def _hear() -> None:
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4]), may_start=sys.argv[4] == "start"))
