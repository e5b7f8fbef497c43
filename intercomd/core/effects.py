"""What the broker may ask of its edges, in the imperative. Built by ``router.Router``, applied by the shell.

Owns the vocabulary only. Effects of one event are applied in order; what ``Deliver`` and ``Write`` put out
is flushed at the end of the turn, recipients before acknowledgements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from intercomd.core.items import Item
    from libintercom.wire.answers import Answer


@dataclass(slots=True)
class Deliver:
    """Write a ``message`` frame: the sender's row and the message, both as JSON bytes.

    The listener answers with ``DeliveriesTaken`` or ``DeliveriesHeld`` for ``token``, in the same turn.
    """

    conn: int
    token: int
    sender: bytes
    message: bytes


@dataclass(slots=True)
class DeliverAll:
    """The same as a ``Deliver`` of each message with its token, in order, all with one row."""

    conn: int
    tokens: range
    sender: bytes
    messages: list[bytes]


@dataclass(slots=True)
class Acknowledge:
    """Write a plain ``delivered`` frame for each message, in order."""

    conn: int
    message_ids: list[str]


@dataclass(slots=True)
class Write:
    """Write any other frame; charged to the connection it goes to."""

    conn: int
    frame: Answer


@dataclass(slots=True)
class WriteRows:
    """Write one ``sessions`` frame whose rows are JSON bytes already (they are cached)."""

    conn: int
    request_id: str
    rows: list[bytes]
    more: bool | None = None
    omitted: int | None = None


@dataclass(slots=True)
class Close:
    """Close a connection. With ``is_after_flush`` what was written goes out first, as far as the kernel takes it."""

    conn: int
    reason: str
    is_after_flush: bool = False


@dataclass(slots=True)
class PauseReading:
    """Read nothing more from a connection until ``ResumeReading``."""

    conn: int


@dataclass(slots=True)
class ResumeReading:
    """Read from a connection again."""

    conn: int


@dataclass(slots=True)
class PauseAccepting:
    """Leave new connections in the backlog until ``ResumeAccepting``."""

    reason: str


@dataclass(slots=True)
class ResumeAccepting:
    """Accept new connections again."""


@dataclass(slots=True)
class StopAccepting:
    """Leave: stop accepting, give up the endpoint in order, then report ``EndpointReleased``.

    With ``is_cancellable`` (idle exit) a connection in the backlog cancels it before anything was unlinked:
    the edge goes on accepting and reports ``StopCancelled`` (ownership.md section 5).
    """

    reason: str
    is_cancellable: bool = False


@dataclass(slots=True)
class Store:
    """Keep an item where it survives a restart; answered by ``Stored`` or ``StoreFailed``.

    Items are kept in the order of these effects. One under a key that is kept already replaces it in its place.
    """

    item: Item


@dataclass(slots=True)
class Forget:
    """Keep this item no longer; what was asked for before it happens before it. ``Forgotten`` follows if asked for."""

    key: str
    is_answered: bool = False


@dataclass(slots=True)
class Log:
    """Say something in the log: ids, sizes, hashes and reasons, never a body."""

    level: str
    what: str
    parts: dict[str, Any]


@dataclass(slots=True)
class Exit:
    """Everything is settled: end with this status."""

    status: int
    reason: str


Effect = (
    Deliver
    | DeliverAll
    | Acknowledge
    | Write
    | WriteRows
    | Close
    | PauseReading
    | ResumeReading
    | PauseAccepting
    | ResumeAccepting
    | StopAccepting
    | Store
    | Forget
    | Log
    | Exit
)
