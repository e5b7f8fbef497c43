"""What became of a request to another device, typed, with the certainty that was observed. Pure.

Owns the records and their words. Does not own how they are told from what came (``judging``) nor their sentences
(``libintercom.device_texts``).
"""

from __future__ import annotations

from libintercom.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_NO_REPLY, EXIT_REFUSED, EXIT_UNKNOWN, EXIT_UNREACHABLE
from libintercom.outcomes import UNKNOWN, Outcome
from libintercom.wire.messages import nested
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import ANYTHING, COUNT, NUMBER, STRING, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Why a device did not take a request, as the code of its outcome; each is certain: nothing was sent.
UNREACHABLE = "unreachable"
NO_COMMAND = "no_command"
NO_INTERPRETER = "no_interpreter"
TOO_OLD = "too_old"
NO_BROKER = "no_broker"
FAILED = "failed"
CANCELLED = "cancelled"
# The device had the request and gave no answer.
LOST = "connection_lost"
# What was told by the other side in its own sentence has the code it gave, or this one.
REFUSED_THERE = "refused_there"
# Nobody to talk to there: exit status 4 (devices.md section 4).
_ABSENCES = frozenset({UNREACHABLE, NO_COMMAND, NO_INTERPRETER, TOO_OLD, NO_BROKER})
# What only this side can observe; another device's answer never brings one of them.
OWN_CODES = _ABSENCES | {FAILED, CANCELLED, LOST}


class DeviceResult(Record):
    """How a send or an ask to ``target`` (``name@device``) ended.

    ``sentence`` is the other side's own one, where it told the end. ``reply`` is the reply's JSON object (``id``,
    ``timestamp``, ``replyTo``, ``content``). ``ended_by`` is as in ``outcomes.Answered``, for an ask without a reply.
    """

    device: str = required(STRING)
    target: str = required(STRING)
    outcome: Outcome = required(nested(Outcome))
    sentence: str = required(STRING)
    reply: Any = optional(ANYTHING, default=None)
    ended_by: str = required(one_of("", "timeout", "cancelled", "peer_left", "disconnected", "peer_busy"))

    @property
    def exit_status(self) -> int:
        """How a command ends on it: house.md section 6, devices.md section 4."""
        if self.ended_by == "cancelled":
            return EXIT_INTERRUPTED
        if self.outcome.is_accepted:
            return EXIT_NO_REPLY if self.ended_by else EXIT_DONE
        if self.outcome.outcome == UNKNOWN:
            return EXIT_UNKNOWN
        return status_of_code(self.outcome.code or "")


class DeviceListing(Record):
    """One device's main sessions, or why they are not known: ``code`` is "" for a device that answered.

    ``rows`` are those that were wanted, in the shape of ``roster.show_row``, their name, ID and target ending in
    ``@device``; ``total`` counts all, ``omitted`` those that could not be shown. ``now_ms`` is the device's clock.
    """

    device: str = required(STRING)
    code: str = required(STRING)
    reason: str = required(STRING)
    rows: Any = required(ANYTHING)
    total: int = required(COUNT)
    omitted: int = required(COUNT)
    now_ms: float = required(NUMBER)

    @property
    def is_listed(self) -> bool:
        return not self.code

    @property
    def exit_status(self) -> int:
        return EXIT_DONE if self.is_listed else status_of_code(self.code)


class DeviceCheck(Record):
    """What a device's command said of itself (devices.md section 3); ``found`` is None where it did not answer.

    ``marker`` is who answered: ours, the Node command, or nobody. ``steps`` are the names of the links of the chain
    that held, in order.
    """

    device: str = required(STRING)
    code: str = required(STRING)
    reason: str = required(STRING)
    marker: str = required(STRING)
    found: Any = optional(ANYTHING, default=None)

    @property
    def exit_status(self) -> int:
        return EXIT_DONE if not self.code else status_of_code(self.code)


def status_of_code(code: str) -> int:
    """The exit status of a request that certainly was not sent, or was not answered."""
    if code == CANCELLED:
        return EXIT_INTERRUPTED
    return EXIT_UNREACHABLE if code in _ABSENCES else EXIT_REFUSED
