"""How a start can end without owning anything. Owns the value; ``publishing`` and ``acquisition`` produce it."""

from __future__ import annotations

from libintercom.errors import EXIT_DONE, EXIT_REFUSED, EXIT_UNKNOWN, EXIT_UNREACHABLE
from libintercom.wire.record import Record, required
from libintercom.wire.values import BOOL, COUNT, TEXT, one_of

# The words of a report (libintercom.launching reads them).
ALREADY = "already"
CLAIMED = "claimed"
UNCERTAIN = "uncertain"
ERROR = "error"


class Outcome(Record):
    """Why this program is not the owner; ``reason`` is for a person and ``exit_status`` for a supervisor.

    ``is_doubtful`` marks a claim of which nobody can say whether its program lives.
    """

    kind: str = required(one_of(ALREADY, CLAIMED, UNCERTAIN, ERROR))
    reason: str = required(TEXT)
    is_doubtful: bool = required(BOOL)
    exit_status: int = required(COUNT)


def already(reason: str) -> Outcome:
    """A broker serves the namespace: nothing to do, which is no failure."""
    return Outcome(kind=ALREADY, reason=reason, is_doubtful=False, exit_status=EXIT_DONE)


def claimed(reason: str, *, is_doubtful: bool = False) -> Outcome:
    """Somebody else is starting, or ending, or changed something: look again in a moment."""
    return Outcome(kind=CLAIMED, reason=reason, is_doubtful=is_doubtful, exit_status=EXIT_REFUSED)


def uncertain(reason: str) -> Outcome:
    """A broker may be alive; an operator has to look."""
    return Outcome(kind=UNCERTAIN, reason=reason, is_doubtful=False, exit_status=EXIT_UNKNOWN)


def failed(reason: str, exit_status: int = EXIT_UNREACHABLE) -> Outcome:
    """Nothing can be owned here as things are."""
    return Outcome(kind=ERROR, reason=reason, is_doubtful=False, exit_status=exit_status)
