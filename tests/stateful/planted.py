"""Bugs planted in the core, each of which must break one invariant where the explorer sees it.

Owns the plants. Each changes one method of a part of the core while it is in place. Does not own finding them
(``test_planted``).
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from intercomd.core import effects, guards
from intercomd.core.counters import Counters
from intercomd.core.deadlines import Deadlines
from intercomd.core.dedupe import Dedupe
from intercomd.core.deliveries import ANSWERED_KEPT, ANSWERED_PARKED, Deliveries, acknowledgement
from intercomd.core.inputs import Inputs
from intercomd.core.kept import Kept
from intercomd.core.membership import Membership
from intercomd.core.obligations import Obligations
from intercomd.core.parking import Parking
from intercomd.core.quotas import Quotas
from intercomd.core.reads import Reads
from intercomd.core.roster import Roster
from intercomd.core.router import Router
from intercomd.core.stage import Stage
from intercomd.core.storing import Storing
from libintercom.wire.answers import DeliveryFailed, SessionLeft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Plant:
    """A bug: in ``owner``, ``method`` is replaced by what ``change`` makes of the original."""

    name: str
    invariant: str
    scenario: str
    owner: Any
    method: str
    change: Callable[[Callable[..., Any]], Callable[..., Any]]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with ExitStack() as stack:
            original = getattr(self.owner, self.method)
            stack.enter_context(patch.object(self.owner, self.method, self.change(original)))
            yield


def _nothing(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_arguments, **_named: None


def _always(answer: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda _original: lambda *_arguments, **_named: answer


def _on_effects(change: Callable[[Router, list[Any]], list[Any]]) -> Callable[..., Any]:
    """Change what ``Router.handle`` asks for."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, event, now: change(self, original(self, event, now))

    return wrap


def _retire_twice(original: Callable[..., Any]) -> Callable[..., Any]:
    def end(self: Obligations, ask: Any, reason: str) -> None:
        original(self, ask, reason)
        self.ended[reason] += 1

    return end


def _acknowledge_at_once(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: Deliveries, delivery: Any, sender_row: bytes, message: bytes) -> None:
        original(self, delivery, sender_row, message)
        self.taken(delivery.token)

    return start


def _show_all(original: Callable[..., Any]) -> Callable[..., Any]:
    def circles_for(self: Roster, viewer: Any) -> list[Any]:
        own = original(self, viewer)
        return [*own, *(children for children in self._children.values() if children not in own)]

    return circles_for


def _tell_all(original: Callable[..., Any]) -> Callable[..., Any]:
    def leave(self: Membership, connection: Any) -> None:
        session = connection.session
        original(self, connection)
        for other in list(self._state.roster.sessions.values()) if session else ():
            self._state.turn.write(other.conn, SessionLeft(session_id=session.peer_id))

    return leave


def _hint_at_hidden(router: Router, asked: list[Any]) -> list[Any]:
    """A refusal that differs when the target is there and hidden."""
    is_there = "child-of-b" in router.state.roster.sessions
    for effect in asked:
        frame = effect.frame if isinstance(effect, effects.Write) else None
        if is_there and isinstance(frame, DeliveryFailed) and frame.code == "not_found":
            effect.frame = frame.replace(reason="Session not found here")
    return asked


def _drop_refusals(_router: Router, asked: list[Any]) -> list[Any]:
    return [effect for effect in asked if not isinstance(getattr(effect, "frame", None), DeliveryFailed)]


def _overtake(router: Router, asked: list[Any]) -> list[Any]:
    """The first delivery of a connection is written again behind a later one."""
    first: dict[int, Any] = vars(router).setdefault("planted_first", {})
    again = []
    for effect in asked:
        if isinstance(effect, effects.Deliver):
            if effect.conn in first:
                before = first[effect.conn]
                again.append(effects.Deliver(effect.conn, -effect.token, before.sender, before.message))
            first.setdefault(effect.conn, effect)
    return asked + again


def _keep_gauge(original: Callable[..., Any]) -> Callable[..., Any]:
    def move(self: Counters, gauge: str, place: str) -> None:
        original(self, gauge, place)
        if place == "delivered":
            self.held[gauge] += 1

    return move


def _except_for(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Leave out one kind of key."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, key, *rest: None if key[0] == kind else original(self, key, *rest)

    return wrap


def _believe_unstored(original: Callable[..., Any]) -> Callable[..., Any]:
    def admit(self: Inputs, *arguments: Any) -> Any:
        waiting = original(self, *arguments)
        for conn, session in self._take_askers(waiting):
            self._state.turn.write(conn, acknowledgement(session, waiting.message_id, ANSWERED_PARKED))
        return waiting

    return admit


def _forget_lost(original: Callable[..., Any]) -> Callable[..., Any]:
    def lost(self: Inputs, token: int) -> None:
        self._state.storing.forget(self._by_token[token][1].key)
        original(self, token)

    return lost


def _park_as_main(original: Callable[..., Any]) -> Callable[..., Any]:
    """A child that is away is listed among the mains."""

    def leave(self: Parking, session: Any) -> None:
        original(self, session)
        listed = self._state.roster.parked.get(session.peer_id)
        if listed is not None:
            self._state.roster.mains.add(listed)

    return leave


def _lift_barrier(original: Callable[..., Any]) -> Callable[..., Any]:
    def drain(self: Inputs, child: Any) -> None:
        original(self, child)
        if child.live is not None:
            child.live.is_spooled = False

    return drain


def _believe_unkept(original: Callable[..., Any]) -> Callable[..., Any]:
    """A reply is told to be kept as soon as it comes."""

    def take(self: Kept, kept: Any, sender: Any, message: Any, raw: bytes) -> Any:
        refusal = original(self, kept, sender, message, raw)
        if refusal is None and kept.reply is not None and not kept.reply.is_stored:
            for conn, session in self._take_askers(kept.reply):
                self._state.turn.write(conn, acknowledgement(session, message.id, ANSWERED_KEPT))
        return refusal

    return take


def _believe_anybody(original: Callable[..., Any]) -> Callable[..., Any]:
    def respond(self: Reads, connection: Any, frame: Any) -> None:
        opened = next((opened for opened in self if opened.token == frame.token), None)
        asked = connection if opened is None else self._state.roster.connections[opened.owner.conn]
        original(self, asked, frame)

    return respond


MAIN_WATCHES = "a main and another's child"
PLANTS = (
    Plant("an ask outlives its asker", "one end", "asks", Obligations, "leave", _nothing),
    Plant("an ask ends twice", "one end", "asks", Obligations, "end", _retire_twice),
    Plant("a reply ends nothing", "one end", "asks", Obligations, "answered_by", _nothing),
    Plant("a refusal is swallowed", "one answer", "asks", Router, "handle", _on_effects(_drop_refusals)),
    Plant("what is held is not answered", "one answer", "kernel", Deliveries, "held", _nothing),
    Plant("acknowledged before it was taken", "taken first", "kernel", Deliveries, "start", _acknowledge_at_once),
    Plant("everybody's children are listed", "visibility", "everything", Roster, "circles_for", _show_all),
    Plant("a leaving is told to all", "visibility", "membership", Membership, "leave", _tell_all),
    Plant("a leaving is told to nobody", "left once", "membership", Roster, "hearers_of", _always(())),
    Plant("a hidden target has its own text", "twin", MAIN_WATCHES, Router, "handle", _on_effects(_hint_at_hidden)),
    Plant("what was accepted is forgotten", "order", "asks", Dedupe, "find", _nothing),
    Plant("a message comes again behind another", "order", "kernel", Router, "handle", _on_effects(_overtake)),
    Plant("a recipient's queue has no end", "quotas", "kernel", Quotas, "recipient_excess", _nothing),
    Plant("a pair may talk without end", "quotas", "budgets", Quotas, "pair_excess", _nothing),
    Plant("a session may send without end", "quotas", "budgets", Quotas, "charge_send", _nothing),
    Plant("the stage has no end", "quotas", "stage", Stage, "has_room_for", _always(answer=True)),
    Plant("input is promised before it is stored", "survival", "parking", Inputs, "admit", _believe_unstored),
    Plant("what arrived stays in the spool", "survival", "parking", Storing, "forget", _nothing),
    Plant("what was not taken is forgotten", "survival", "draining", Inputs, "lost", _forget_lost),
    Plant("a reply is promised before it is stored", "survival", "kept", Kept, "take", _believe_unkept),
    Plant("what comes new overtakes what waits", "order", "draining", Inputs, "drain", _lift_barrier),
    Plant("lost input waits no more", "balance", "draining", Inputs, "lost", _nothing),
    Plant("a parking has no end", "deadlines", "parking", Parking, "expire", _nothing),
    Plant("a kept ask has no end", "deadlines", "kept", Kept, "expire", _nothing),
    Plant("another group sees a parked child", "visibility", "parking", Parking, "leave", _park_as_main),
    Plant("a gauge is not lowered", "balance", "kernel", Counters, "move", _keep_gauge),
    Plant("a deadline outlives its ask", "deadlines", "asks", Deadlines, "clear", _except_for("ask")),
    Plant("a read outlives its ends", "reads", "reads and guards", Reads, "leave", _nothing),
    Plant("anybody may answer a read", "reads", "reads and guards", Reads, "respond", _believe_anybody),
    Plant("a late owner is waited for", "deadlines", "reads and guards", Deadlines, "set", _except_for("read")),
    Plant("a stale guard is no matter", "guards", "reads and guards", guards, "find_fault", _nothing),
    Plant("a staged message has no deadline", "deadlines", "stage", Deadlines, "set", _except_for("stage")),
    Plant("a stalled socket has no deadline", "deadlines", "kernel", Deadlines, "set", _except_for("stall")),
)
