"""Parked children and the input that waits for them: the records, and their shape in the spool (wire.md 9.5).

Owns what is known of each child and of each message. Does not own who may park, what is accepted and when it is
drained (``parking``), nor waking (``waking``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from intercomd.core.items import Author
from intercomd.core.rows import RowBytes
from libintercom.wire.messages import ParkedRow, Registration
from libintercom.wire.record import dump_record, parse_record

if TYPE_CHECKING:
    from intercomd.core.asks import Ask
    from intercomd.core.dedupe import Remembered
    from intercomd.core.items import Item
    from intercomd.core.roster import Session

# What the row of a parked child says beside its own members.
STATUS = "parked"
# How far one message is: given to the spool, kept there, handed to the child's socket.
STORING = "storing"
STORED = "stored"
HANDED = "handed"


@dataclass(slots=True, eq=False)
class Input:
    """One message that waits for a parked child."""

    key: str
    author: Author
    message_id: str
    row: bytes
    message: bytes
    at_ms: int
    is_passive: bool
    known: Remembered
    ask: Ask | None = None
    # Who is to hear how storing it ended; connections.
    askers: list[int] = field(default_factory=list)
    state: str = STORED
    # The delivery it is on its way with, and on which connection.
    token: int = 0
    conn: int = 0
    # Why it is to die as soon as it is stored; "" while it is wanted.
    doom: str = ""
    is_over: bool = False

    @property
    def size_bytes(self) -> int:
        return len(self.row) + len(self.message)

    def facts(self, child: Child) -> dict[str, Any]:
        """What the spool keeps beside row and message."""
        return {
            "child": child.child_id,
            "root": child.root,
            "sender": self.author.peer_id,
            "lineage": list(self.author.lineage),
            "id": self.message_id,
            "at": self.at_ms,
            "passive": self.is_passive,
        }


@dataclass(slots=True, eq=False)
class Child:
    """One child that its main parked: away, or back and not fully served, or about to leave.

    ``listed`` is its place in the roster while it is away. ``live`` is its session while it is here; ``is_intended``
    says that it is to be parked when it leaves.
    """

    child_id: str
    root: str
    listed: Session
    owner_id: str
    key: str
    parked_at_ms: int
    run_id: str | None = None
    inputs: dict[str, Input] = field(default_factory=dict)
    live: Session | None = None
    is_intended: bool = True
    # Its record is in the spool: it was parked before, whatever becomes of doing so again.
    is_stored: bool = False
    # Connections that wait to hear that it is parked, until its record is stored.
    parkers: list[int] = field(default_factory=list)
    # How often waking was asked for, and which messages each of the last tries was for.
    attempt: int = 0
    tries: dict[int, tuple[str, ...]] = field(default_factory=dict)
    failure: dict[str, Any] | None = None

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.inputs.values())

    def facts(self) -> dict[str, Any]:
        """What the spool keeps of the parking itself."""
        registered = self.listed.registered
        row = {name: getattr(registered, name) for name in ("cwd", "model", "name", "project_id")}
        described = ParkedRow(**{name: value for name, value in row.items() if value is not None})
        run = {} if self.run_id is None else {"run": self.run_id}
        return {
            "child": self.child_id,
            "root": self.root,
            "owner": self.owner_id,
            "at": self.parked_at_ms,
            "row": dump_record(described),
            **run,
        }

    def show(self) -> None:
        """Its row tells how much waits and how waking it went."""
        queued = sum(one.state != STORING for one in self.inputs.values())
        self.listed.row.park(queued, self.failure)


def listing(root: str, last: Registration | None, described: ParkedRow | None) -> Registration:
    """What a parked child is listed with: its main's description, or what was last seen of it."""
    shown = {} if last is None else {name: getattr(last, name) for name in ("cwd", "model", "name", "project_id")}
    if described is not None:
        shown = {**shown, **described.present()}
    given = {name: value for name, value in shown.items() if value is not None}
    return Registration(**given, status=STATUS, root_session_id=root, parent_session_id=root)


def make_row(child_id: str, registered: Registration, at_ms: int) -> RowBytes:
    """The row of a parked child; no endpoint is behind it, so its epoch names none."""
    row = RowBytes(child_id, registered, "", at_ms)
    row.park(0, None)
    return row


def read_description(item: Item) -> ParkedRow:
    """The description that a stored parking holds."""
    return parse_record(ParkedRow, item.read()["row"])


def author_of(facts: dict[str, Any]) -> Author:
    """Who made a stored message."""
    root, parent = facts["lineage"]
    return Author(facts["sender"], (root, parent))
