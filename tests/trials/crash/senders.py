"""Who writes to the session that is killed: real clients of a real broker, and the ledger of everything they sent.

Owns what is sent, what the broker said of it, and what came back. Does not own kills (``story``) nor any judgement.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from libintercom.aio import AsyncClient
from libintercom.errors import IntercomError, ReadFailed
from libintercom.identity import make_uuid
from libintercom.inbound import Inbound
from libintercom.profile import profile_from_environment
from tests.trials.crash.recipient import CONSENT

if TYPE_CHECKING:
    import random

    from libintercom.paths import Places

# Short, a usual one, and one that takes pages of its own.
_SIZES = (0, 0, 300, 3_000)
_THREADS = ("thread-1", "thread-2")
# Between two messages of one sender, and before an answer to the session's own question.
_PAUSE_S, _THINK_S = 0.002, 0.01
_NOT_FOUND = "receipt_not_found"
ANN, BOB, COPYIST = "ann", "bob", "copyist"


@dataclass
class Sent:
    """One message that left: ``order`` counts all of one story; ``of_life``: while which life."""

    id: str
    sender: str
    order: int
    of_life: int
    text: str
    form: str
    delivery: str
    incarnation: str
    outcome: str = ""


@dataclass
class Ledger:
    """What the outside knows of one story.

    ``receipts``: (life, message ID, receipt or None when there was none); ``answers``: (ask ID, reply ID) as received.
    """

    native: str
    sent: list[Sent] = field(default_factory=list)
    receipts: list[tuple[int, str, dict[str, Any] | None]] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)

    def note(self, sender: str, life: int, text: str, form: str, delivery: str, incarnation: str = "") -> Sent:
        sent = Sent(make_uuid(), sender, len(self.sent), life, text, form, delivery, incarnation)
        self.sent.append(sent)
        return sent


class Sender:
    """One client that stays while lives come and go."""

    def __init__(self, name: str, client: AsyncClient, dice: random.Random) -> None:
        self.name, self._client, self._dice = name, client, dice
        self._ledger = Ledger("")
        self._order: dict[str, Any] = {}
        self._to = ""
        self._listening = asyncio.get_running_loop().create_task(self._listen())
        self._replies: set[asyncio.Task[None]] = set()

    @classmethod
    async def join(cls, name: str, places: Places, dice: random.Random) -> Sender:
        profile = profile_from_environment(name=name, environ={}, receipt_reads=True, guarded_delivery=True)
        return cls(name, await AsyncClient.join(profile, spawn=False, places=places), dice)

    async def leave(self) -> None:
        await self._client.disconnect()
        await self._listening

    def turn_to(self, ledger: Ledger, order: dict[str, Any]) -> None:
        """What happens from now on belongs to this life."""
        self._ledger, self._order = ledger, order

    def aim(self, session_id: str) -> None:
        """Whom it writes to."""
        self._to = session_id

    async def write(self, count: int) -> None:
        """So many acts, one after the other."""
        for _act in range(count):
            chosen = self._dice.choices(self._ACTS, self._WEIGHTS)[0]
            with contextlib.suppress(IntercomError):
                await chosen(self)
            if self._dice.random() < 0.5:
                await asyncio.sleep(self._dice.uniform(0.0, _PAUSE_S))

    # ------------------------------------------------------------------ acts

    async def _send(self, form: str, delivery: str, incarnation: str = "", **options: Any) -> None:
        text = f"{form} {'x' * self._dice.choice(_SIZES)}"
        sent = self._ledger.note(self.name, self._order["life"], text, form, delivery, incarnation)
        await self._post(sent, options)

    async def _post(self, sent: Sent, options: Any) -> None:
        outcome = await self._client.send(
            self._to, sent.text, message_id=sent.id, **({"delivery": sent.delivery} if sent.delivery else {}), **options
        )
        sent.outcome = outcome.outcome

    async def _queue(self) -> None:
        await self._send("plain", "queue")

    async def _steer(self) -> None:
        await self._send("plain", "steer")

    async def _passive(self) -> None:
        await self._send("plain", "passive")

    async def _question(self) -> None:
        await self._send("ask", self._dice.choice(("steer", "queue")), expects_reply=True)

    async def _replace(self) -> None:
        await self._send("replace", "queue", queue_mode="replace", thread_id=self._dice.choice(_THREADS))

    async def _guarded(self) -> None:
        guard = {
            "rootSessionId": self._ledger.native,
            "peerId": self._to,
            "incarnation": self._order["incarnation"],
            "applicationGuard": CONSENT,
        }
        await self._send("guarded", "queue", self._order["incarnation"], guard=guard)

    async def _read_receipt(self) -> None:
        if not self._ledger.sent:
            return
        # Recent ones: what is being checkpointed now is where a receipt could lie.
        about = self._dice.choice(self._ledger.sent[-6:]).id
        life, ledger = self._order["life"], self._ledger
        try:
            receipt = await self._client.receipt(self._to, ledger.native, about)
        except ReadFailed as failure:
            if failure.code == _NOT_FOUND:
                ledger.receipts.append((life, about, None))
        else:
            ledger.receipts.append((life, about, receipt))

    _ACTS = (_queue, _steer, _passive, _question, _replace, _guarded, _read_receipt)
    _WEIGHTS = (6, 5, 2, 4, 4, 1, 3)

    async def copy(self, count: int) -> None:
        """Earlier messages once more, from somebody whose memory of them the broker does not share."""
        for _copy in range(count):
            if self._ledger.sent:
                original = self._dice.choice(self._ledger.sent)
                copied = Sent(original.id, self.name, -1, self._order["life"], "a copy", "copy", "queue", "")
                with contextlib.suppress(IntercomError):
                    await self._post(copied, {})

    # ------------------------------------------------------------------ what comes

    async def _listen(self) -> None:
        async for event in self._client.events():
            if not isinstance(event, Inbound):
                continue
            if event.message.is_ask:
                task = asyncio.get_running_loop().create_task(self._reply(event))
                self._replies.add(task)
                task.add_done_callback(self._replies.discard)
            elif event.message.reply_to:
                self._ledger.answers.append((event.message.reply_to, event.message.id))

    async def _reply(self, question: Inbound) -> None:
        ledger = self._ledger
        await asyncio.sleep(self._dice.uniform(0.0, _THINK_S))
        sent = ledger.note(self.name, self._order["life"], f"reply to {question.message.id}", "reply", "", "")
        with contextlib.suppress(IntercomError):
            outcome = await self._client.reply(question, sent.text, message_id=sent.id)
            sent.outcome = outcome.outcome
