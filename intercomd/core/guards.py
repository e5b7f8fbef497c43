"""Guarded sends: only to the one main, context and consent that the guard names (wire.md 9.3).

Owns the broker's checks and their order. Does not own what a guard must look like (``libintercom.wire.guards``) nor
the recipient's own check before it admits the message. A guarded message is refused or delivered as such: there is
no path from here to an ordinary send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core import refusals
from intercomd.core.roster import may_see
from libintercom.wire.guards import guard_fault

if TYPE_CHECKING:
    from intercomd.core.roster import Roster, Session
    from libintercom.wire.answers import DeliveryFailed
    from libintercom.wire.guards import Guard
    from libintercom.wire.messages import Message


def aim(roster: Roster, sender: Session, to: str, message: Message) -> Session | DeliveryFailed:
    """The session with the guard's exact peer ID, or why there can be none."""
    fault = guard_fault(to, message)
    if fault:
        return _say(message, "guard_invalid", to, f"{fault}; correct it")
    if not sender.has_guard:
        found = "this session did not negotiate guardedDelivery; register with it"
        return _say(message, "guard_unsupported", to, found)
    if to == sender.peer_id:
        return refusals.self_target(message.id, to)
    recipient = roster.sessions.get(to)
    if recipient is None or not may_see(sender.registered, recipient.registered):
        # Nothing similar is proposed either: a guard is for one session and no other.
        return refusals.refusal(message.id, "not_found", refusals.NOT_FOUND)
    return recipient


def find_fault(roster: Roster, recipient: Session, to: str, message: Message) -> DeliveryFailed | None:
    """Why this message is not for the session as it is now, or None."""
    guard: Guard = message.guard
    if recipient.is_child or recipient.root != guard.root_session_id:
        return _say(message, "guard_target", to, "it is not that main; look the target up again")
    if not recipient.has_guard:
        return _say(message, "guard_unsupported", to, "it takes no guarded messages; update that session")
    mains = roster.mains_of(guard.root_session_id)
    if mains != 1:
        return _say(message, "guard_ambiguous_root", to, f"{mains} mains have its root; end all but one of them")
    current = (recipient.registered.incarnation, recipient.registered.application_guard)
    if current != (guard.incarnation, guard.application_guard):
        return _say(message, "guard_stale", to, "its context or consent has changed; look the target up again")
    return None


def _say(message: Message, code: str, to: str, found: str) -> DeliveryFailed:
    return refusals.refusal(message.id, code, f'Guarded message to "{refusals.clip(to)}": {found}')
