"""The recipient's own check of a guarded message, before its first checkpoint (wire.md 9.3, sessions.md 4). Pure.

Owns whether a guard fits the live context of this session now. Does not own the guard's form
(``libintercom.wire.guards``) nor the broker's check, which came before: consent may have been withdrawn in between.

Driven so: for each message ``find_fault(message, own)`` with the context as it is at that moment; a fault is told,
nothing is stored, and the message never becomes an ordinary one.
"""

from __future__ import annotations

from libintercom.wire.guards import Guard, guard_fault, is_guarded
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import BOOL, LABEL, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.wire.messages import Message


class OwnContext(Record):
    """What a guard is compared with. ``application_guard`` None: no companion gave its consent, or it took it back.

    ``is_live``: the context is neither inactive nor invalidated; ``is_negotiated``: the broker granted
    ``guardedDelivery:1`` on this connection.
    """

    root_session_id: str = required(STRING)
    peer_id: str = required(STRING)
    incarnation: str = required(STRING)
    application_guard: str | None = optional(LABEL, default=None)
    is_main: bool = required(BOOL)
    is_live: bool = required(BOOL)
    is_negotiated: bool = required(BOOL)


class GuardFault(Record):
    """Why a guarded message is not admitted: a code of wire.md 9.3, and a sentence."""

    code: str = required(STRING)
    reason: str = required(STRING)


def find_fault(message: Message, own: OwnContext) -> GuardFault | None:
    """Why this message must not be admitted here and now; ``None``: it may, or it has no guard."""
    if not is_guarded(message):
        return None
    invalid = guard_fault(message.guard.peer_id if isinstance(message.guard, Guard) else "", message)
    if invalid:
        return GuardFault(code="guard_invalid", reason=invalid)
    return _target_fault(message, own) or _stale_fault(message, own)


def _target_fault(message: Message, own: OwnContext) -> GuardFault | None:
    if not own.is_main:
        return GuardFault(code="guard_target", reason="a child is no target of guarded delivery")
    if (message.guard.peer_id, message.guard.root_session_id) != (own.peer_id, own.root_session_id):
        return GuardFault(code="guard_target", reason="its guard names another main")
    if not own.is_negotiated:
        return GuardFault(code="guard_unsupported", reason="this session did not negotiate guarded delivery")
    return None


def _stale_fault(message: Message, own: OwnContext) -> GuardFault | None:
    if not own.is_live or message.guard.incarnation != own.incarnation:
        return GuardFault(code="guard_stale", reason="its guard names a context that is over")
    if own.application_guard is None:
        return GuardFault(code="guard_stale", reason="consent was withdrawn")
    if message.guard.application_guard != own.application_guard:
        return GuardFault(code="guard_stale", reason="consent has changed")
    return None
