"""Who is connected, in which group, and who may see whom (wire.md 9.2).

Owns connections, sessions, groups and the visible set of each. Does not own what they say to one another.
Hidden sessions are in none of the indexes that a question is answered from, so nothing can leak them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from heapq import merge
from typing import TYPE_CHECKING

from libintercom.targets import Index, name_key
from libintercom.wire.connection import OBSERVING, REGISTERED, UNREGISTERED
from libintercom.wire.messages import NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from intercomd.core.items import Lineage
    from intercomd.core.rows import RowBytes
    from libintercom.wire.messages import Registration

# Sorts sessions without a project after all project ids, which are hex (wire.md 14.10).
_NO_PROJECT = "~"


@dataclass(slots=True, eq=False)
class Session:
    """One registered endpoint. ``root`` and ``parent`` are its lineage; a standalone main has neither."""

    conn: int
    peer_id: str
    registered: Registration
    row: RowBytes
    dialect: str = NATIVE
    has_ext: bool = False
    # What else it negotiated: guarded delivery, and reads of receipts.
    has_guard: bool = False
    has_receipts: bool = False
    # Peer IDs that this session exchanged a message with, and that have it among theirs (wire.md 14.11).
    partners: set[str] = field(default_factory=set)
    # Whom a target text meant in the roster of that version, so that a conversation resolves it once.
    aims: dict[str, Session] = field(default_factory=dict)
    aims_version: int = 0
    # What is said to it goes through the spool: it is parked, or older input is still on its way to it.
    is_spooled: bool = False

    @property
    def is_parked(self) -> bool:
        """A child that is listed though nobody is connected; no connection has such a number."""
        return self.conn < 0

    @property
    def root(self) -> str | None:
        return self.registered.root_session_id

    @property
    def lineage(self) -> Lineage:
        return (self.registered.root_session_id, self.registered.parent_session_id)

    @property
    def is_child(self) -> bool:
        return self.registered.parent_session_id is not None

    @property
    def is_idle(self) -> bool:
        status = self.registered.status or ""
        return status == "idle" or status.startswith("idle ")

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """The order of lists: project, name, ID (wire.md 14.10)."""
        return (self.registered.project_id or _NO_PROJECT, name_key(self.registered.name or ""), self.peer_id)


@dataclass(slots=True, eq=False)
class Connection:
    """One socket of our own uid and what the core knows of it."""

    conn: int
    state: str = UNREGISTERED
    session: Session | None = None
    # An observer sees what a session of its lineage would see, and is seen by nobody.
    observer: Registration | None = None
    has_ext: bool = False
    has_guard: bool = False
    # Deliveries in our memory for this socket, and all bytes that wait for it.
    held_messages: int = 0
    held_bytes: int = 0
    # Tokens of the deliveries that have not ended, in order.
    tokens: dict[int, None] = field(default_factory=dict)
    waiting_bytes: int = 0
    is_stalled: bool = False
    partial_bytes: int = 0
    # Why nothing is read from it just now.
    paused_for: set[str] = field(default_factory=set)
    is_closing: bool = False

    @property
    def is_registered(self) -> bool:
        return self.state == REGISTERED

    @property
    def is_observer(self) -> bool:
        return self.state == OBSERVING


class Circle:
    """Sessions of one visible set: searchable, and in the order of lists."""

    def __init__(self) -> None:
        self.index = Index()
        # Those who hear of every leaving: clients without ``ext:1``, by connection.
        self.hearers: dict[int, Session] = {}
        self._sorted: list[tuple[tuple[str, str, str], int, Session]] = []

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, session: Session) -> None:
        self.index.add(session.peer_id, session.registered.name)
        if not session.has_ext:
            self.hearers[session.conn] = session
        insort(self._sorted, self._entry(session))

    def remove(self, session: Session) -> None:
        self.index.remove(session.peer_id)
        self.hearers.pop(session.conn, None)
        del self._sorted[bisect_left(self._sorted, self._entry(session))]

    def entries(self) -> list[tuple[tuple[str, str, str], int, Session]]:
        return self._sorted

    def __iter__(self) -> Iterator[Session]:
        return (entry[2] for entry in self._sorted)

    @staticmethod
    def _entry(session: Session) -> tuple[tuple[str, str, str], int, Session]:
        # The connection keeps equal keys apart: sessions themselves have no order.
        return (session.sort_key, session.conn, session)


class Roster:
    """Every connection and session, and the circles they are seen in."""

    def __init__(self) -> None:
        # Counts every change of who may be found under which name.
        self.version = 0
        self.connections: dict[int, Connection] = {}
        self.sessions: dict[str, Session] = {}
        # Children that are listed in their groups though nobody is connected.
        self.parked: dict[str, Session] = {}
        self.mains = Circle()
        # Children, and mains that have a root, by root: who is in one collaboration group.
        self._children: dict[str, Circle] = {}
        self._group_mains: dict[str, Circle] = {}

    def session_of(self, conn: int) -> Session | None:
        """The session on a connection, if one is registered there."""
        connection = self.connections.get(conn)
        return connection.session if connection else None

    def find(self, peer_id: str) -> Session | None:
        """Whoever is listed under a peer ID, parked or not."""
        return self.sessions.get(peer_id) or self.parked.get(peer_id)

    def join(self, session: Session) -> None:
        """A session registered, or a child was parked."""
        self.version += 1
        (self.parked if session.is_parked else self.sessions)[session.peer_id] = session
        for circle in self._homes(session):
            circle.add(session)

    def leave(self, session: Session) -> None:
        """A session left, or a child is parked no more."""
        self.version += 1
        del (self.parked if session.is_parked else self.sessions)[session.peer_id]
        for circle in self._homes(session):
            circle.remove(session)
        for groups in (self._children, self._group_mains):
            if session.root in groups and not len(groups[session.root]):
                del groups[session.root]

    def hearers_of(self, session: Session) -> list[Session]:
        """Who hears of a session's leaving, after it left: its partners, and older clients that could see it.

        Its partners forget it. The cost is that of telling them, however many sessions there are.
        """
        hearers = [other for circle in self.circles_for(session.registered) for other in circle.hearers.values()]
        partners = [other for peer_id in session.partners if (other := self.find(peer_id)) is not None]
        for partner in partners:
            partner.partners.discard(session.peer_id)
        return hearers + [partner for partner in partners if partner.has_ext and not partner.is_parked]

    def deafen(self, session: Session) -> None:
        """Nothing reaches a session any more: it need not be told who leaves."""
        for circle in self._homes(session):
            circle.hearers.pop(session.conn, None)

    def change(self, session: Session, registered: Registration) -> None:
        """A session's row changed; its lineage never does."""
        moved = (registered.name, registered.project_id) != (session.registered.name, session.registered.project_id)
        homes = list(self._homes(session)) if moved else []
        self.version += moved
        for circle in homes:
            circle.remove(session)
        session.registered = registered
        session.row.change(registered)
        for circle in homes:
            circle.add(session)

    def circles_for(self, viewer: Registration) -> list[Circle]:
        """The disjoint circles that a session or observer of this lineage may see."""
        root, own_group = viewer.root_session_id, []
        if root is not None:
            own_group = [self._children[root]] if root in self._children else []
            if viewer.parent_session_id is not None:
                return ([self._group_mains[root]] if root in self._group_mains else []) + own_group
        return [self.mains, *own_group]

    def mains_of(self, root: str) -> int:
        """How many mains of this root are connected."""
        return len(self._group_mains.get(root, ()))

    def visible_to(self, viewer: Registration) -> Iterable[Session]:
        """Every session that this lineage may see, in the order of lists."""
        circles = self.circles_for(viewer)
        if len(circles) == 1:
            return circles[0]
        return (entry[2] for entry in merge(*(circle.entries() for circle in circles)))

    def group_mains(self, root: str) -> Iterable[Session]:
        """The mains of a group."""
        return self._group_mains.get(root, ())

    def _homes(self, session: Session) -> Iterator[Circle]:
        root = session.root
        if not session.is_child:
            yield self.mains
        if root is not None:
            groups = self._children if session.is_child else self._group_mains
            yield groups.setdefault(root, Circle())


def may_see(viewer: Registration, other: Registration) -> bool:
    """Same root, or both mains."""
    if viewer.parent_session_id is None and other.parent_session_id is None:
        return True
    return viewer.root_session_id is not None and viewer.root_session_id == other.root_session_id
