"""Invariants of reads and guarded messages: one true answer each, and nothing guarded for another context.

Owns what each of these watches remembers of the past. Does not own other messages (``message_watches``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from intercomd.core import effects, events
from libintercom.wire import requests
from libintercom.wire.record import is_absent
from tests.stateful.cast import CONSENT, INCARNATION
from tests.stateful.watch import Watch

if TYPE_CHECKING:
    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from tests.stateful.world import World


class Reads(Watch):
    """Each read has one answer while its reader is there, and an owner's word comes from that owner."""

    name = "reads"

    def __init__(self) -> None:
        # Answers owed to each connection; every read of the play has the same request id.
        self.owed: dict[int, int] = {}
        # Which connection was asked with each token, and what is being said just now.
        self.asked: dict[str, int] = {}
        self.said: Any = None

    def event(self, world: World, event: Event) -> None:
        self.said = event if isinstance(event, events.FrameReceived) else None
        if isinstance(event, events.ConnectionClosed):
            self.owed.pop(event.conn, None)
        elif isinstance(event, events.FrameReceived):
            if isinstance(event.frame, requests.Read):
                self.owed[event.conn] = self.owed.get(event.conn, 0) + 1
            elif isinstance(event.frame, requests.Unregister):
                self.owed.pop(event.conn, None)

    def effect(self, world: World, effect: Effect) -> None:
        frame: Any = effect.frame if isinstance(effect, effects.Write) else None
        if frame is None or not isinstance(effect, effects.Write):
            return
        if frame.type == "read_request":
            self.asked[frame.token] = effect.conn
        elif frame.type == "read_result":
            self.require(self.owed.get(effect.conn), f"{frame!r} to connection {effect.conn} answers nothing")
            self.owed[effect.conn] -= 1
            if frame.error.code == "receipt_not_found":
                # The only answer that an owner of this play gives.
                answered = self.said is not None and isinstance(self.said.frame, requests.ReadResponse)
                is_own = answered and self.asked.get(self.said.frame.token) == self.said.conn
                self.require(is_own, f"{frame!r} is not its owner's word")

    def rest(self, world: World) -> None:
        open_reads = len(world.router.reads)
        owed = sum(count for conn, count in self.owed.items() if world.present(conn))
        self.require(open_reads == owed, f"{open_reads} reads are open, {owed} answers are owed")

    def end(self, world: World) -> None:
        self.require(not len(world.router.reads), "a read is open although everybody left")


class Guards(Watch):
    """A guarded message arrives at the exact peer, context and consent that it names."""

    name = "guards"

    def __init__(self) -> None:
        self.consent: dict[int, object] = {}

    def event(self, world: World, event: Event) -> None:
        if not isinstance(event, events.FrameReceived):
            return
        if isinstance(event.frame, requests.Register):
            self.consent[event.conn] = CONSENT
        elif isinstance(event.frame, requests.Presence) and not is_absent(event.frame.application_guard):
            self.consent[event.conn] = event.frame.application_guard

    def effect(self, world: World, effect: Effect) -> None:
        if not isinstance(effect, effects.Deliver) or b'"guard":' not in effect.message:
            return
        guard, recipient = json.loads(effect.message)["guard"], world.present(effect.conn)
        self.require(recipient and recipient.has_all and not recipient.is_child, f"{guard} came to {recipient}")
        assert recipient
        fitting = {
            "rootSessionId": recipient.root,
            "peerId": recipient.peer_id,
            "incarnation": INCARNATION,
            "applicationGuard": self.consent.get(effect.conn),
        }
        self.require(guard == fitting, f"{guard} came to {fitting}")
