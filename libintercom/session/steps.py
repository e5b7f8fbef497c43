"""What an inbox asks for: imperative, one frozen type each, to be carried out in the order of the list. Pure.

Owns the vocabulary that ``Inbox.handle`` answers with. Does not own carrying it out.
"""

from __future__ import annotations

from libintercom.inbound import Inbound
from libintercom.wire.messages import DELIVERIES, nested
from libintercom.wire.record import Record, required
from libintercom.wire.values import ANYTHING, BOOL, COUNT, STRING, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.session.entries import Entry

# Why a message was not admitted. ``duplicate``: known already, by whatever end; ``stale``: this inbox's context is
# over; ``not_stored``: the journal could not take it; ``unreadable``: a stored one breaks the rules of this version;
# ``foreign``: a stored one was admitted by another session, whose history was copied.
DUPLICATE = "duplicate"
STALE = "stale"
NOT_STORED = "not_stored"
UNREADABLE = "unreadable"
FOREIGN = "foreign"
# What else is worth telling. ``unrecorded``: it happened, and the journal does not know; ``host_refused``: it is
# offered again at the next occasion; ``uncertain``: it waits for a person; ``evicted``: too many questions wait;
# ``no_such``: a person's decision was about nothing that waits for one.
UNRECORDED = "unrecorded"
HOST_REFUSED = "host_refused"
UNCERTAIN = "uncertain"
EVICTED = "evicted"
NO_SUCH = "no_such"


class Checkpoint(Record):
    """Store these, all or none, behind all before; answer with ``Checkpointed`` or ``CheckpointFailed``."""

    entries: tuple[Entry, ...] = required(ANYTHING)

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """What the answer names."""
        return tuple(entry.entry_id for entry in self.entries)


class Placeable(Record):
    """One message for the host. ``is_ask_open``: somebody still waits for a reply; ``received_at_ms``: Unix ms."""

    message_id: str = required(STRING)
    inbound: Inbound = required(nested(Inbound))
    delivery: str = required(one_of(*DELIVERIES))
    is_ask_open: bool = required(BOOL)
    received_at_ms: int = required(COUNT)
    text_sha256: str = required(STRING)


class Place(Record):
    """Hand these to the host in this order, in one call; each of them ends in a ``Host…`` happening."""

    batch: tuple[Placeable, ...] = required(ANYTHING)


class Wake(Record):
    """Wake the host, once, for all that was placed so far."""


class FindPlacement(Record):
    """Ask the host for this message; answer with a ``Placement…`` happening."""

    message_id: str = required(STRING)


class SendReply(Record):
    """Send the reply now: that it leaves is on record. Answer with ``ReplyEnded``."""

    ask_id: str = required(STRING)
    reply_id: str = required(STRING)


class RefuseReply(Record):
    """Do not send it; ``reason`` is for whoever wrote it."""

    ask_id: str = required(STRING)
    reply_id: str = required(STRING)
    reason: str = required(STRING)


class GiveReply(Record):
    """Give this reply to the ask that waits for it."""

    message_id: str = required(STRING)


class WithholdReply(Record):
    """Do not give it; ``code``: ``duplicate``, ``stale`` or ``not_stored``."""

    message_id: str = required(STRING)
    code: str = required(STRING)
    reason: str = required(STRING)


class Refuse(Record):
    """This message was not admitted; codes above."""

    message_id: str = required(STRING)
    code: str = required(STRING)
    reason: str = required(STRING)


class Report(Record):
    """Tell whoever watches; codes above."""

    message_id: str = required(STRING)
    code: str = required(STRING)
    reason: str = required(STRING)


class Detach(Record):
    """Everything begun is finished: the owner may let go."""
