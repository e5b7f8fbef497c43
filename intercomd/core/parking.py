"""Parked children: who may park, which of them are away, and who comes back (wire.md 9.5).

Owns the children. Does not own their messages (``inputs``), their records (``parked``) nor waking them (``waking``).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from intercomd.core.farewells import Farewells
from intercomd.core.inputs import Inputs
from intercomd.core.items import CHILD, Item
from intercomd.core.parked import STORED, Child, listing, make_row, read_description
from intercomd.core.roster import Session
from libintercom.wire.answers import Parked, ParkFailed, SessionLeft
from libintercom.wire.messages import ParkedRow
from libintercom.wire.requests import Park, Unpark, WakeOutcome

if TYPE_CHECKING:
    from intercomd.core.deliveries import Deliveries
    from intercomd.core.obligations import Obligations
    from intercomd.core.roster import Connection
    from intercomd.core.state import State
    from intercomd.core.waking import Waking
    from libintercom.wire.messages import Registration
    from libintercom.wire.requests import Request

_MS_PER_S = 1000
# Children that left unparked and may still be parked: their mains learn of their end within moments.
_MAX_SEEN = 4_096
# What is listed for input whose child's own record is missing.
_UNKNOWN = ParkedRow(cwd="/", model="unknown")


class Parking:
    """Every parked child of this broker."""

    def __init__(self, state: State, obligations: Obligations, deliveries: Deliveries, waking: Waking) -> None:
        self._state, self._obligations, self._waking = state, obligations, waking
        self.inputs = Inputs(state, obligations, deliveries, self._settle)
        self.farewells = Farewells(state)
        self._children: dict[str, Child] = {}
        self._by_key: dict[str, Child] = {}
        self._last_seen: OrderedDict[str, Registration] = OrderedDict()
        self._made = 0

    def __len__(self) -> int:
        return len(self._children)

    def attempt_of(self, child_id: str) -> int:
        """The number of the last try of waking a child, 0 when there was none."""
        child = self._children.get(child_id)
        return 0 if child is None else child.attempt

    def child_of(self, recipient: Session) -> Child:
        """The child that a spooled recipient stands for."""
        return self._children[recipient.peer_id]

    # -- what mains ask for --------------------------------------------------------------------------

    def hear(self, connection: Connection, frame: Request) -> None:
        """A main says something about a child."""
        if isinstance(frame, Park):
            self.park(connection, frame)
        elif isinstance(frame, Unpark):
            self.unpark(connection, frame)
        elif isinstance(frame, WakeOutcome):
            self.settle_wake(connection, frame)

    def park(self, connection: Connection, frame: Park) -> None:
        """A main says that a child will be away; answered once that is stored."""
        main = connection.session
        fault = "not_your_child" if main is None else self._fault(main, frame.child_id)
        if main is None or fault:
            self._refuse(connection, frame.child_id, fault)
            return
        child = self._children.get(frame.child_id) or self._add(main, frame)
        child.owner_id, child.run_id, child.is_intended = main.peer_id, frame.run_id, True
        child.parked_at_ms = self._state.turn.at_ms
        child.parkers.append(connection.conn)
        if child.live is None:
            self._describe(child, frame.row)
            self._await_expiry(child)
        self._state.storing.store(CHILD, child.key, child.facts())

    def unpark(self, connection: Connection, frame: Unpark) -> None:
        """A main says that a child will not be back: it is listed no more, and what waited for it is dead.

        Answered once no restart can bring it back.
        """
        main, child = connection.session, self._children.get(frame.child_id)
        fault = "not_your_child" if main is None or child is None or not _is_main_of(main, child.root) else ""
        if child is not None and not fault and child.inputs:
            fault = "child_live" if child.live is not None else "" if frame.discard else "has_input"
        if child is None or fault:
            self._refuse(connection, frame.child_id, fault)
            return
        waiting = list(child.inputs.values())
        self.farewells.begin(connection.conn, child, [child.key, *(one.key for one in waiting)])
        for one in waiting:
            self.inputs.bury(child, one, "discarded")
        self._end(child, is_answered=True)

    def settle_wake(self, connection: Connection, frame: WakeOutcome) -> None:
        """A main says what came of waking its child; from anybody else it means nothing."""
        main, child = connection.session, self._children.get(frame.child_id)
        if main is not None and child is not None and _is_main_of(main, child.root):
            self._waking.settle(child, frame)

    # -- who comes and goes --------------------------------------------------------------------------

    def may_be(self, peer_id: str, registered: Registration) -> bool:
        """Whether a newcomer may have this ID: a parked child's is for itself alone."""
        child = self._children.get(peer_id)
        return child is None or (child.root == registered.root_session_id == registered.parent_session_id)

    def arrive(self, session: Session) -> None:
        """A session registered: a child gets what waited for it, a main hears which of its children have some."""
        child = self._children.get(session.peer_id)
        if child is not None:
            self._bring_back(child, session)
        elif not session.is_child and session.root is not None:
            for own in [child for child in self._children.values() if child.root == session.root]:
                if own.live is None:
                    self._waking.wake_once(own)

    def make_way(self, peer_id: str) -> None:
        """A child comes back: its place in the roster is its own again."""
        child = self._children.get(peer_id)
        if child is not None and child.live is None:
            self._state.roster.leave(child.listed)

    def expects(self, session: Session) -> bool:
        """Whether a session that leaves now is parked by that: nobody is told that it left."""
        child = self._children.get(session.peer_id)
        return child is not None and child.live is session and (child.is_intended or bool(child.inputs))

    def leave(self, session: Session) -> None:
        """A session left the roster: it is parked now, or may still be."""
        child = self._children.get(session.peer_id)
        if child is not None and child.live is session:
            self._send_away(child, session)
        elif session.is_child:
            self._last_seen[session.peer_id] = session.registered
            self._last_seen.move_to_end(session.peer_id)
            if len(self._last_seen) > _MAX_SEEN:
                self._last_seen.popitem(last=False)

    # -- what the spool says -------------------------------------------------------------------------

    def stored(self, key: str) -> None:
        """A child's own record is kept."""
        child = self._by_key.get(key)
        if child is not None:
            child.is_stored = True
            self._answer_parkers(child)

    def store_failed(self, key: str, cause: str) -> None:
        """A child's own record could not be kept: it is as it was before."""
        child = self._by_key.get(key)
        if child is None:
            return
        self._state.turn.log("error", "parking not stored", child=child.child_id, reason=cause)
        for conn in self._take_parkers(child):
            self._state.turn.write(conn, ParkFailed(child_id=child.child_id, code="store_failed"))
        if not child.inputs and not child.is_stored:
            self._end(child)

    def input_stored(self, key: str) -> None:
        """A message is kept: it goes to a child that is here, or is worth waking one that is away."""
        kept = self.inputs.stored(key)
        if kept is None:
            return
        child, waiting = kept
        self._settle(child)
        if child.live is None:
            self._waking.wake_for(child, waiting)

    def recover(self, items: list[Item]) -> None:
        """What an earlier broker kept, in its order: its children are away, whoever they were."""
        for item in items:
            facts = item.read()
            if item.kind == CHILD:
                child = self._revive(facts["child"], facts["root"], read_description(item), item.key)
                child.owner_id, child.parked_at_ms, child.run_id = facts["owner"], facts["at"], facts.get("run")
                continue
            known = self._children.get(facts["child"])
            self.inputs.recover(known or self._revive(facts["child"], facts["root"], _UNKNOWN, None), item)
        for child in self._children.values():
            self._settle(child)

    # -- what is due ---------------------------------------------------------------------------------

    def expire(self, child_id: str) -> None:
        """The oldest of what waits for a child, or its parking, has waited long enough."""
        child = self._children[child_id]
        for waiting in list(child.inputs.values()):
            if waiting.state == STORED and self._left_ms(waiting.at_ms) <= 0:
                self.inputs.bury(child, waiting, "expired")
        if not child.inputs and self._left_ms(child.parked_at_ms) <= 0:
            self._end(child)
        else:
            self._settle(child)

    def retry_drain(self, child_id: str) -> None:
        """There may be room on a child's socket again."""
        self.inputs.drain(self._children[child_id])

    # -- parking and returning -----------------------------------------------------------------------

    def _fault(self, main: Session, child_id: str) -> str:
        """Why a session may not park a child, ``""`` when it may."""
        if child_id in self._children:
            return "" if _is_main_of(main, self._children[child_id].root) else "not_your_child"
        here = self._state.roster.sessions.get(child_id)
        last = self._last_seen.get(child_id) if here is None else here.registered
        root = None if last is None or last.parent_session_id is None else last.root_session_id
        if root is None or not _is_main_of(main, root):
            return "not_your_child"
        limits = self._state.limits
        own = sum(child.root == root for child in self._children.values())
        is_full = own >= limits.parked_children or len(self._children) >= limits.parked_children_total
        return "limit" if is_full else ""

    def _add(self, main: Session, frame: Park) -> Child:
        here = self._state.roster.sessions.get(frame.child_id)
        last = here.registered if here is not None else self._last_seen.pop(frame.child_id, None)
        child = self._make(frame.child_id, main.root or "", listing(main.root or "", last, frame.row), None)
        child.live = here
        if here is None:
            self._state.roster.join(child.listed)
        return child

    def _make(self, child_id: str, root: str, registered: Registration, key: str | None) -> Child:
        listed, key = self._make_listed(child_id, registered), key or self._state.storing.next_key()
        child = Child(child_id, root, listed, root, key, self._state.turn.at_ms)
        self._children[child_id] = self._by_key[key] = child
        return child

    def _make_listed(self, child_id: str, registered: Registration) -> Session:
        self._made += 1
        row = make_row(child_id, registered, self._state.turn.at_ms)
        return Session(-self._made, child_id, registered, row, has_ext=True, is_spooled=True)

    def _revive(self, child_id: str, root: str, described: ParkedRow, key: str | None) -> Child:
        child = self._make(child_id, root, listing(root, None, described), key)
        child.is_stored = True
        self._state.roster.join(child.listed)
        return child

    def _describe(self, child: Child, described: ParkedRow | None) -> None:
        self._state.roster.change(child.listed, listing(child.root, child.listed.registered, described))

    def _send_away(self, child: Child, session: Session) -> None:
        child.live = None
        if not child.is_intended and not child.inputs:
            self._end(child)
            return
        # It did not get everything: whatever was intended, it is parked again.
        child.is_intended = True
        child.listed = self._make_listed(child.child_id, listing(child.root, session.registered, None))
        child.listed.partners = session.partners
        self._state.roster.join(child.listed)
        self._state.deadlines.clear(("drain", child.child_id))
        self._settle(child)

    def _bring_back(self, child: Child, session: Session) -> None:
        self._state.deadlines.clear(("parked", child.child_id))
        session.partners |= child.listed.partners
        child.live, child.is_intended, child.failure = session, False, None
        child.tries.clear()
        self._settle(child)

    def _settle(self, child: Child) -> None:
        """Something changed: show it, or go on serving a child that is here, as long as there is something to serve."""
        if self._children.get(child.child_id) is not child:
            return
        if child.live is None:
            child.show()
            self._await_expiry(child)
        elif child.inputs or child.is_intended:
            self.inputs.drain(child)
        else:
            self._end(child)

    def _end(self, child: Child, *, is_answered: bool = False) -> None:
        """It is parked no more: forgotten, and where it is away, gone from its group."""
        state = self._state
        self._answer_parkers(child)
        state.storing.forget(child.key, is_answered=is_answered)
        del self._children[child.child_id], self._by_key[child.key]
        for kind in ("parked", "drain"):
            state.deadlines.clear((kind, child.child_id))
        if child.live is not None:
            child.live.is_spooled = False
        elif child.child_id in state.roster.parked:
            state.roster.leave(child.listed)
            self._obligations.give_up(child.child_id)
            farewell = SessionLeft(session_id=child.child_id)
            for other in state.roster.hearers_of(child.listed):
                state.turn.write(other.conn, farewell)

    # -- answers and time ----------------------------------------------------------------------------

    def _answer_parkers(self, child: Child) -> None:
        for conn in self._take_parkers(child):
            self._state.turn.write(conn, Parked(child_id=child.child_id))

    def _take_parkers(self, child: Child) -> list[int]:
        """Those of who asked to park it that are still registered."""
        waiting, child.parkers = child.parkers, []
        sessions = ((conn, self._state.roster.session_of(conn)) for conn in waiting)
        return [conn for conn, session in sessions if session is not None and _is_main_of(session, child.root)]

    def _refuse(self, connection: Connection, child_id: str, code: str) -> None:
        self._state.turn.write(connection.conn, ParkFailed(child_id=child_id, code=code))

    def _await_expiry(self, child: Child) -> None:
        """What can expire is due at its time; what is on its way somewhere is looked at again much later."""
        waiting = [self._left_ms(one.at_ms) for one in child.inputs.values() if one.state == STORED]
        own_ms = self._state.limits.parked_s * _MS_PER_S if child.inputs else self._left_ms(child.parked_at_ms)
        left_s = max(0.0, min([*waiting, own_ms]) / _MS_PER_S)
        self._state.deadlines.set(("parked", child.child_id), self._state.turn.now + left_s)

    def _left_ms(self, since_ms: float) -> float:
        return since_ms + self._state.limits.parked_s * _MS_PER_S - self._state.turn.at_ms


def _is_main_of(session: Session, root: str) -> bool:
    return not session.is_child and session.root == root
