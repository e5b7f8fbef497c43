"""What can happen to an inbox: past tense, one frozen type each. Pure.

Owns the vocabulary of ``Inbox.handle``, beside ``AskEnded`` and ``PeerLeft`` of ``libintercom.inbound``, which it takes
as they are. Does not own what follows (``steps``).
"""

from __future__ import annotations

from libintercom.inbound import Inbound
from libintercom.session.entries import Standing
from libintercom.wire.messages import nested
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import ANYTHING, BOOL, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Recovered(Record):
    """Always the first: what the journal had unfinished, in admission order; empty when nothing or no journal."""

    standings: tuple[Standing, ...] = required(ANYTHING)


class Arrived(Record):
    """A message whose guard, if any, was found current. ``standing``: what the journal knows under its ID."""

    inbound: Inbound = required(nested(Inbound))
    standing: Standing | None = optional(nested(Standing), default=None)


class ReplyArrived(Record):
    """A reply that an ask of ours waits for; one that nobody waits for is an ordinary ``Arrived``."""

    inbound: Inbound = required(nested(Inbound))
    standing: Standing | None = optional(nested(Standing), default=None)


class Checkpointed(Record):
    """Every entry of one ``Checkpoint`` is durable."""

    entry_ids: tuple[str, ...] = required(ANYTHING)


class CheckpointFailed(Record):
    """No entry of one ``Checkpoint`` is durable."""

    entry_ids: tuple[str, ...] = required(ANYTHING)
    reason: str = required(STRING)


class HostPlaced(Record):
    """The host confirmed: message ID to the host's own entry, ``""`` when it names none."""

    placements: Mapping[str, str] = required(ANYTHING)


class HostRefused(Record):
    """The host certainly holds none of these."""

    message_ids: tuple[str, ...] = required(ANYTHING)
    reason: str = required(STRING)


class HostUnsure(Record):
    """The call broke off or took too long: each of these may be with the host or not."""

    message_ids: tuple[str, ...] = required(ANYTHING)
    reason: str = required(STRING)


class PlacementFound(Record):
    """Asked for a message, the host showed its entry (``""``: it has it and names none)."""

    message_id: str = required(STRING)
    placement: str = required(STRING)


class PlacementAbsent(Record):
    """Asked for a message, the host certainly does not have it."""

    message_id: str = required(STRING)


class PlacementUnknown(Record):
    """Asked for a message, the host cannot tell."""

    message_id: str = required(STRING)
    reason: str = required(STRING)


class InputConsumed(Record):
    """A model, or whoever reads, took these in."""

    message_ids: tuple[str, ...] = required(ANYTHING)


class TurnStarted(Record):
    """The host began to work; for one that reads at prompts only, this is the prompt."""


class TurnEnded(Record):
    """The host is idle. ``consumed_ids``: what this turn took in, as far as it was not reported before."""

    is_ok: bool = required(BOOL)
    consumed_ids: tuple[str, ...] = required(ANYTHING)


class RetryDue(Record):
    """It is time to offer again what the host refused or the journal could not store."""


class ReplyBegan(Record):
    """Our reply to a pending question (``Tracker.resolve``) is about to leave."""

    ask_id: str = required(STRING)
    reply_id: str = required(STRING)


class ReplyEnded(Record):
    """What the broker said of it: taken, certainly not taken, or (``None``) unknown."""

    ask_id: str = required(STRING)
    reply_id: str = required(STRING)
    is_accepted: bool | None = optional(BOOL, default=None)


class PlaceChosen(Record):
    """A person wants an uncertain message placed, be it for the second time."""

    message_id: str = required(STRING)


class DiscardChosen(Record):
    """A person wants an uncertain or still staged message never placed."""

    message_id: str = required(STRING)
    reason: str = required(STRING)


class ShutdownBegan(Record):
    """Nothing new is offered; what was begun is finished, then ``Detach``."""


class ContextInvalidated(Record):
    """The native session was replaced under this inbox: from now on it does nothing."""
