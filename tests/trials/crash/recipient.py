"""The session that is killed: it takes messages in, reads, replies, asks, decides; and dies where it is told to.

Owns one life from joining to its end, and what it says on its channel (one line of JSON each). Does not own what is
sent to it (``senders``), its host's history (``native``) nor any judgement.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from libintercom.errors import IntercomError
from libintercom.paths import find_places
from libintercom.profile import profile_from_environment
from libintercom.session import faults
from libintercom.session.aio import AsyncSession
from libintercom.session.entries import FINAL
from libintercom.session.errors import NotLive
from libintercom.session.host import QueueHost
from libintercom.session.journal import collecting, schema, writer
from tests.trials.crash.native import FileHost, History
from tests.trials.crash.planted import plant

if TYPE_CHECKING:
    import socket

# Far below the real bounds, so that folding, copying the log and collecting happen within one short life.
_FOLD_LIMIT, _CHECKPOINT_PAGES, _LOOK_EVERY, _LARGE_PAGES = 8, 12, 1, 16
# Between two messages of a host's batch; the trial's own point, beside those of ``faults.POINTS``.
HALF = "host.half"
# Consent that guarded messages name.
CONSENT = "consent-1"
# A turn of the host lasts so long at most; an ask waits so long for its answer; longer than nothing happens in a drain.
_TURN_S, _ASK_S, _LOOK_S = 0.004, 5.0, 0.004
# How often an open question is answered in a turn, and how often a turn ends well.
_ANSWERS, _ENDS_WELL, _DECIDES = 0.5, 0.8, 0.4


def live(order: dict[str, Any], channel: socket.socket) -> None:
    """One life. ``order``: see ``story``."""
    writer.FOLD_LIMIT, writer.CHECKPOINT_PAGES, writer._LOOK_EVERY = _FOLD_LIMIT, _CHECKPOINT_PAGES, _LOOK_EVERY
    collecting.is_large = lambda connection, _limits: schema.read_pragma(connection, "page_count") > _LARGE_PAGES
    plant(order["plant"])
    death = Death(order["point"], order["nth"], order["lingers_s"])
    faults.set_hook(death.reach)
    asyncio.run(Recipient(order, channel, death).run())


class Death:
    """Ends this process at the n-th reach of a point, maybe after lingering there while its other threads go on."""

    def __init__(self, point: str, nth: int, lingers_s: float) -> None:
        self._point, self._left, self._lingers_s = point, nth, lingers_s

    def reach(self, name: str) -> None:
        if name != self._point:
            return
        self._left -= 1
        if self._left == 0:
            if threading.current_thread() is not threading.main_thread():
                time.sleep(self._lingers_s)
            os.kill(os.getpid(), signal.SIGKILL)


class Recipient:
    """One life's session and the program around it."""

    def __init__(self, order: dict[str, Any], channel: socket.socket, death: Death) -> None:
        self._order, self._channel, self._death = order, channel, death
        self._dice = random.Random(order["seed"])
        self._history = History(order["history"], order["life"])
        self._wanted = asyncio.Event()
        self._host: FileHost | QueueHost = QueueHost()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_leaving = False

    async def run(self) -> None:
        """Join, work until the channel says how to end, end so."""
        order = self._order
        if not order["iterates"]:
            self._host = host = FileHost(self._history, order, self._dice)
            host.on_half = lambda: self._death.reach(HALF)
            host.on_wake = self._wanted.set
            host.on_placed = self._tell_placed
        self._session = session = await AsyncSession.join(
            profile_from_environment(name=order["name"], environ={}, incarnation=order["incarnation"]),
            native_id=order["native"],
            host=self._host,
            spawn=False,
            places=find_places(order["environment"]),
            on_background_error=lambda error: self._say(failure=str(error)),
        )
        if isinstance(self._host, FileHost):
            self._host.is_joined.set()
        self._say(
            joined=session.session_id, note=session.journal_note, pending=[_short(view) for view in session.pending()]
        )
        self._consent()
        self._begin(self._iterate() if order["iterates"] else self._take_turns())
        self._begin(self._decide(_DECIDES))
        if order["asks"]:
            self._begin(self._ask())
        await self._end(await asyncio.get_running_loop().run_in_executor(None, self._channel.recv, 64))

    def _tell_placed(self, entries: dict[str, str]) -> None:
        self._session.placed(entries)

    async def _end(self, how: bytes) -> None:
        if how == b"drain":
            await self._drain()
        self._is_leaving = True
        await self._session.leave()
        self._say(left=True)

    async def _drain(self) -> None:
        """Until the journal knows of nothing that waits, and every doubt was decided."""
        # Its answer comes behind everything that was delivered until now.
        await self._session.list_sessions()
        while True:
            await self._decide(1.0)
            unread = len(self._session._client._exchange.mailroom)
            waiting = [one for one in self._session._tenure.engine.ledger.unfinished() if one.kind not in FINAL]
            if not waiting and not unread and not self._is_reading():
                self._say(pending=[_short(view) for view in self._session.pending()])
                return
            self._wanted.set()
            await asyncio.sleep(_LOOK_S)

    def _is_reading(self) -> bool:
        return isinstance(self._host, FileHost) and bool(self._host.unread)

    def _consent(self) -> None:
        profile = self._session.profile
        target = {
            "rootSessionId": profile.root_session_id,
            "peerId": self._session.session_id,
            "incarnation": profile.incarnation,
        }
        self._session.set_application_guard(target, CONSENT)

    # ------------------------------------------------------------------ reading

    async def _iterate(self) -> None:
        async for arrival in self._session.inbound():
            self._history.write(arrival)
            await self._answer()

    async def _take_turns(self) -> None:
        """The host's turns: read what was placed, reply to some, end well or not."""
        host, session = self._host, self._session
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            session.turn_started()
            await asyncio.sleep(self._dice.uniform(0.0, _TURN_S))
            read, host.unread = host.unread, []
            half = self._dice.randrange(len(read) + 1)
            session.consumed(read[:half])
            await self._answer()
            session.turn_ended(self._dice.random() < _ENDS_WELL, read[half:])

    async def _answer(self) -> None:
        """Reply to some of what waits; never again to a question whose reply may have left."""
        for view in self._session.pending():
            if view["kind"] == "ask" and not view["replyId"] and self._dice.random() < _ANSWERS:
                ask_id = view["messageId"]
                with contextlib.suppress(IntercomError):
                    outcome = await self._session.reply(ask_id, f"answer to {ask_id}")
                    self._say(replied=ask_id, outcome=outcome.outcome, code=outcome.code, reply=outcome.message_id)

    async def _ask(self) -> None:
        with contextlib.suppress(IntercomError):
            answered = await self._session.ask(self._order["asks"], "question", timeout_s=_ASK_S)
            if answered.reply is not None:
                self._say(got=answered.reply.message.id)

    async def _decide(self, chance: float) -> None:
        """What nobody knows: placed again, or never."""
        for view in self._session.pending():
            if view["kind"] == "uncertain" and self._dice.random() < chance:
                message_id, places = view["messageId"], self._dice.random() < 0.5
                self._say(chose="place" if places else "discard", id=message_id)
                await (self._session.place(message_id) if places else self._session.discard(message_id))
                self._say(decided=message_id)

    # ------------------------------------------------------------------ speaking

    def _say(self, **words: Any) -> None:
        self._channel.sendall(json.dumps(words).encode() + b"\n")

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not (self._is_leaving and isinstance(failure, NotLive)):
            self._say(broke=f"{type(failure).__name__}: {failure}")


def _short(view: dict[str, Any]) -> dict[str, Any]:
    return {"kind": view["kind"], "id": view["messageId"], "reply": view.get("replyId", "")}
