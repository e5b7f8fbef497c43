"""Invariants of sessions and their questions: who sees whom, one end for each ask, deadlines, who is told of leaving.

Owns what each of these watches remembers of the past. Does not own messages (``message_watches``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from intercomd.core import effects, events
from libintercom.wire import requests
from tests.stateful.cast import BY_ID, PARTS
from tests.stateful.watch import ID, Watch, named

if TYPE_CHECKING:
    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from tests.stateful.cast import Part
    from tests.stateful.world import World

_QUOTED = re.compile('"[^"]*"')
_REPLY_TO = re.compile(rb'"replyTo":"([^"]+)"')


class Visibility(Watch):
    """Nobody receives anything of a session that it may not see."""

    name = "visibility"

    def effect(self, world: World, effect: Effect) -> None:
        if isinstance(effect, effects.Deliver):
            self._require_visible(world, effect.conn, [named(effect)[0]], "a message")
        elif isinstance(effect, effects.WriteRows):
            self._check_rows(world, effect)
        elif isinstance(effect, effects.Write):
            self._require_visible(world, effect.conn, _mentioned(effect.frame), repr(effect.frame))

    def _check_rows(self, world: World, effect: effects.WriteRows) -> None:
        viewer = world.present(effect.conn)
        shown = [found[1].decode() for row in effect.rows if (found := ID.search(row))]
        self._require_visible(world, effect.conn, shown, "a list")
        parked = {BY_ID[peer_id].key for peer_id in world.router.state.roster.parked}
        visible = {key for key in world.registered | parked if viewer and viewer.may_see(PARTS[key])}
        listed = {BY_ID[peer_id].key for peer_id in shown}
        self.require(listed == visible, f"{viewer} sees {sorted(listed)}, may see {sorted(visible)}")

    def _require_visible(self, world: World, conn: int, ids: list[str], what: str) -> None:
        viewer = world.part_of(conn)
        hidden = [peer_id for peer_id in ids if peer_id in BY_ID and viewer and not viewer.may_see(BY_ID[peer_id])]
        self.require(not hidden, f"{viewer and viewer.key} received {what} about {hidden}")


def _mentioned(frame: Any) -> list[str]:
    """Every peer id that a frame names."""
    ids = [getattr(frame, name, None) for name in ("session_id", "asker_id", "recipient_id", "child_id", "peer_id")]
    offered = [*(getattr(frame, "candidates", None) or ()), *(getattr(frame, "nearest", None) or ())]
    ids += [candidate.id for candidate in offered]
    # What stands in quotes is what the sender itself said.
    reason = _QUOTED.sub("", getattr(frame, "reason", None) or "")
    return [peer_id for peer_id in ids if peer_id] + [part.peer_id for part in PARTS.values() if part.peer_id in reason]


class OneEnd(Watch):
    """Each accepted ask ends exactly once, and nobody is told of an end twice or after a reply."""

    name = "one end"

    def __init__(self) -> None:
        # Who owes the reply to each open question.
        self.open: dict[tuple[str, str], str] = {}
        self.ended: set[tuple[str, str]] = set()
        self.told: set[tuple[str, str]] = set()
        self.replied: set[tuple[str, str]] = set()

    def event(self, world: World, event: Event) -> None:
        if isinstance(event, events.FrameReceived) and isinstance(event.frame, requests.Send):
            part = world.part_of(event.conn)
            assert part
            # An ask that was refused may come again under its id.
            self.ended.discard((part.peer_id, event.frame.message.id))

    def effect(self, world: World, effect: Effect) -> None:
        if isinstance(effect, effects.Write) and effect.frame.type == "ask_retired":
            key = (effect.frame.asker_id, effect.frame.message_id)  # type: ignore[attr-defined]
            self.require(key not in self.told, f"{key} was retired twice")
            self.require(key not in self.replied, f"{key} was retired after its reply")
            self.told.add(key)
        elif isinstance(effect, effects.Deliver):
            asker, found = world.part_of(effect.conn), _REPLY_TO.search(effect.message)
            key = (asker.peer_id, found[1].decode()) if asker and found else ("", "")
            if self.open.get(key) == named(effect)[0]:
                self.replied.add(key)

    def rest(self, world: World) -> None:
        now_open = {ask.key: ask.recipient_id for ask in world.router.state.asks}
        gone, come = self.open.keys() - now_open.keys(), now_open.keys() - self.open.keys()
        self.require(not come & self.ended, f"{come & self.ended} was open again")
        self.ended |= gone
        self.open = now_open
        opened, ended = world.router.obligations.opened, world.router.obligations.ended
        self.require(opened == len(now_open) + sum(ended.values()), f"{opened} asks, {len(now_open)} open, {ended}")

    def end(self, world: World) -> None:
        self.require(not list(world.router.state.asks), "an ask is open although everybody left")


# Judged by rules of their own: idle exit, what is owed late, and accepting again.
_OTHERWISE = ("idle", "late", "accept", "drain")


class Deadlines(Watch):
    """There is a deadline exactly when something waits for time."""

    name = "deadlines"

    def __init__(self) -> None:
        self.is_stopping = False

    def event(self, world: World, event: Event) -> None:
        self.is_stopping = self.is_stopping or isinstance(event, events.StopRequested)

    def rest(self, world: World) -> None:
        due, expected = world.router.state.deadlines.keys(), self._expected(world)
        known = {key for key in due if key[0] not in _OTHERWISE}
        self.require(known == expected, f"waiting {sorted(map(str, expected))}, set {sorted(map(str, known))}")
        waits = bool(expected) or any(key[0] in _OTHERWISE for key in due)
        has_deadline = world.router.next_deadline() is not None
        self.require(has_deadline == waits, f"a deadline: {has_deadline}, something waits: {waits}")
        self._check_idle(world)
        self._check_accepting(world)

    def _expected(self, world: World) -> set[tuple[Any, ...]]:
        state = world.router.state
        expected: set[tuple[Any, ...]] = {("ask", *ask.key) for ask in state.asks if ask.is_waiting}
        expected |= {("stage", *key) for key in state.stage.all_keys()}
        expected |= {("parked", peer_id) for peer_id in state.roster.parked}
        expected |= {("kept", *question) for question in world.router.kept.questions()}
        expected |= {opened.key for opened in world.router.reads}
        for key, conn in world.conns.items():
            if key not in world.registered:
                expected.add(("register", conn))
            if state.roster.connections[conn].partial_bytes:
                expected.add(("frame", conn))
            if world.listener.sockets[conn].waiting_bytes:
                expected.add(("stall", conn))
        if self.is_stopping:
            expected.add(("stop",))
        return expected

    def _check_idle(self, world: World) -> None:
        is_needed = world.registered or world.stored_ids("input")
        if is_needed or self.is_stopping or world.has_stop_waiting:
            is_set = ("idle",) in world.router.state.deadlines
            self.require(not is_set, "an idle exit is due although the broker is needed or a stop is under way")

    def _check_accepting(self, world: World) -> None:
        unregistered = len(world.conns.keys() - world.registered)
        will_accept = ("accept",) in world.router.state.deadlines
        if world.listener.is_accepting:
            self.require(not will_accept, "accepting is to begin again although it never ended")
        else:
            is_full = unregistered >= world.router.state.limits.max_unregistered
            self.require(will_accept or is_full, "nothing is accepted, and nothing will change that")


class LeftOnce(Watch):
    """Who could see a session hears of its leaving once; with extensions, only who exchanged a message with it."""

    name = "left once"

    def __init__(self) -> None:
        self.leaving: list[tuple[str, set[str]]] = []
        self.told: list[tuple[str, str]] = []
        # Nothing reaches them: they need not be told.
        self.lost: set[str] = set()
        # Children that were listed as parked when nothing happened any more.
        self.parked: set[str] = set()

    def event(self, world: World, event: Event) -> None:
        if isinstance(event, events.ConnectionsLost):
            self.lost = {key for key, conn in world.conns.items() if conn in event.conns}
        is_closed = isinstance(event, events.ConnectionClosed)
        is_unregistered = isinstance(event, events.FrameReceived) and isinstance(event.frame, requests.Unregister)
        part = world.present(event.conn) if is_closed or is_unregistered else None
        if part and not world.is_to_be_parked(part):
            others = {key for key in world.registered if key != part.key and PARTS[key].may_see(part)}
            self.leaving.append((part.peer_id, others))

    def effect(self, world: World, effect: Effect) -> None:
        if isinstance(effect, effects.Write) and effect.frame.type == "session_left":
            hearer = world.part_of(effect.conn)
            assert hearer
            self.told.append((effect.frame.session_id, hearer.key))  # type: ignore[attr-defined]

    def rest(self, world: World) -> None:
        self._note_unparked(world)
        self.require(len(set(self.told)) == len(self.told), f"told twice: {self.told}")
        allowed = {(peer_id, key) for peer_id, others in self.leaving for key in others}
        wanted = {(peer_id, key) for peer_id, key in allowed if self._must_hear(key) and key not in self.lost}
        missing, extra = wanted - set(self.told), set(self.told) - allowed
        self.require(not missing, f"not told of a leaving: {missing}")
        self.require(not extra, f"told of a leaving that was none: {extra}")
        self.leaving.clear()
        self.told.clear()
        self.lost.clear()

    def _note_unparked(self, world: World) -> None:
        """Who is listed as parked no more, and is not here, left by that."""
        roster = world.router.state.roster
        for peer_id in self.parked - roster.parked.keys() - roster.sessions.keys():
            part = BY_ID[peer_id]
            others = {key for key in world.registered if key != part.key and PARTS[key].may_see(part)}
            self.leaving.append((peer_id, others))
        self.parked = set(roster.parked)

    @staticmethod
    def _must_hear(key: str) -> bool:
        part: Part = PARTS[key]
        return not part.has_ext
