"""What can happen to the broker, in the past tense. Built by edges, consumed by ``router.Router``.

Owns the vocabulary only. A connection is an opaque number that the listener never reuses; ``at_ms`` is wall
time in Unix milliseconds; ids are made by an edge. Values are not changed once built (they are not frozen
because freezing costs three times the construction on the hot path).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intercomd.core.items import Item
    from libintercom.wire.messages import Message
    from libintercom.wire.requests import Request

    Sent = tuple[str, Message, bytes, int]


@dataclass(slots=True)
class ConnectionAccepted:
    """A socket of our own uid was accepted (another uid never gets this far)."""

    conn: int
    at_ms: int


@dataclass(slots=True)
class FrameReceived:
    """One complete, valid frame. ``message`` holds the exact bytes of a send's ``message`` member.

    ``ids`` are two fresh UUIDs when the frame is a ``register`` or a ``read``, else empty.
    """

    conn: int
    frame: Request
    size_bytes: int
    at_ms: int
    message: bytes = b""
    ids: tuple[str, ...] = ()


@dataclass(slots=True)
class SendsReceived:
    """Consecutive usual sends of one connection, in order: the same as a ``FrameReceived`` of each.

    Usual: its message has no member but ``id``, ``timestamp``, ``content``, ``replyTo``, ``expectsReply``,
    ``delivery``, ``timeoutMs``, a false ``passive``, and such as the broker does not know. ``sends``: target, message,
    the exact bytes of the ``message`` member, and the size of the frame in bytes.
    """

    conn: int
    at_ms: int
    sends: list[Sent]


@dataclass(slots=True)
class FrameRejected:
    """Bytes that are no valid frame; nothing behind them on that connection is read any more."""

    conn: int
    reason: str


@dataclass(slots=True)
class FrameBegun:
    """``held_bytes`` of an incomplete frame are in memory after a read; 0 when it was completed."""

    conn: int
    held_bytes: int


@dataclass(slots=True)
class ConnectionClosed:
    """The socket is gone: by its peer, by an error, or after our ``Close``."""

    conn: int
    reason: str


@dataclass(slots=True)
class ConnectionsLost:
    """Writing showed that these peers are gone: nothing reaches them. What they said before is still heard.

    A ``ConnectionClosed`` of each follows, in this turn or a later one.
    """

    conns: tuple[int, ...]


@dataclass(slots=True)
class DeliveriesTaken:
    """The kernel took these whole ``Deliver`` frames on their recipients' sockets."""

    tokens: tuple[int, ...]


@dataclass(slots=True)
class DeliveriesHeld:
    """After a first try these ``Deliver`` frames are, at least in part, still in our memory."""

    tokens: tuple[int, ...]


@dataclass(slots=True)
class OutputProgressed:
    """Bytes that wait for a connection's socket: some appeared, the kernel took some, or none are left (0).

    Reported whenever their number changed at the end of a turn. ``has_moved`` is False when bytes only appeared.
    """

    conn: int
    waiting_bytes: int
    has_moved: bool


@dataclass(slots=True)
class Stored:
    """An item is where it survives a restart, as far as this spool promises."""

    key: str


@dataclass(slots=True)
class StoreFailed:
    """An item could not be stored."""

    key: str
    reason: str


@dataclass(slots=True)
class Forgotten:
    """No restart brings an item back; with a ``failure`` one may, until the spool can write again."""

    key: str
    failure: str = ""


@dataclass(slots=True)
class Recovered:
    """What an earlier broker of this namespace left in the spool, in the order it was stored.

    Reported before anything else happens.
    """

    items: tuple[Item, ...]


@dataclass(slots=True)
class DescriptorsExhausted:
    """accept() failed for want of file descriptors (EMFILE, ENFILE)."""


@dataclass(slots=True)
class StopRequested:
    """SIGTERM, SIGINT or a lost endpoint: leave in order."""

    reason: str


@dataclass(slots=True)
class StopCancelled:
    """An idle ``StopAccepting`` found a connection in the backlog: the endpoint stays."""


@dataclass(slots=True)
class EndpointReleased:
    """After ``StopAccepting``: our names are unlinked and what the backlog held was accepted and closed."""


Event = (
    ConnectionAccepted
    | FrameReceived
    | SendsReceived
    | FrameRejected
    | FrameBegun
    | ConnectionClosed
    | ConnectionsLost
    | DeliveriesTaken
    | DeliveriesHeld
    | OutputProgressed
    | Stored
    | StoreFailed
    | Forgotten
    | Recovered
    | DescriptorsExhausted
    | StopRequested
    | StopCancelled
    | EndpointReleased
)
