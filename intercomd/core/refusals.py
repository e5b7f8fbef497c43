"""Refusing a send: the code clients compare, the sentence people read (wire.md 14.1 and section 4).

Owns the texts of ``delivery_failed``. The older clients' texts stay as they compare them; new ones read
``<what> "<to>": <found>; <remedy>``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libintercom.targets import AMBIGUOUS, MAX_PROPOSED, MIN_PREFIX_CHARS, SELF, TOO_SHORT, display_target, nearest
from libintercom.wire.answers import DeliveryFailed
from libintercom.wire.codes import is_outcome_known, is_retryable
from libintercom.wire.frames import MAX_FRAME_BYTES
from libintercom.wire.messages import SIBLING, Candidate
from libintercom.wire.values import MAX_LABEL_BYTES, js_trim

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from intercomd.core.quotas import Excess
    from intercomd.core.roster import Circle, Roster, Session
    from libintercom.targets import Resolution

# The literal texts of the seeds' lineage (wire.md section 4), which its clients show and compare.
INVALID_FORMAT = "Invalid message format"
SENDER_NOT_FOUND = "Sender session not found"
NOT_FOUND = "Session not found"
RECIPIENT_LEFT = "Recipient disconnected before delivery"
STAGE_FULL = "Replace-mode delivery queue is full; retry after pending updates are delivered."
STAGED = "Queued for replace-mode delivery"
# Ours: it is stored until the parked child comes back; it is stored until whoever asked fetches it.
PARKED = "Queued until the parked session returns"
KEPT = "Kept for its ask"
# Ours: the frame is in the broker's memory, behind what the recipient's socket has not taken yet.
HELD = "Queued until the recipient's connection takes it"

# A target is repeated as it was written up to the size of a name; a longer one could not even be answered.
_MAX_REPEATED_CHARS = MAX_LABEL_BYTES
_CLIPPED_CHARS = 64
# Sessions of a circle that are named; each name may have a kilobyte.
_MAX_NAMED = 16
_MS_PER_S = 1000
_RULE_WORDS = {
    "sends": "sends of this session at once",
    "bytes": "bytes from this session",
    "pair": "messages a minute to this recipient",
    "recipient_messages": "messages waiting for this recipient",
    "recipient_bytes": "bytes waiting for this recipient",
    "outbound_bytes": "bytes waiting for all recipients",
    "recipient_asks": "questions this recipient has not answered",
    "asker_asks": "questions of this session without an answer",
    "parked_messages": "messages waiting for this parked session",
    "parked_bytes": "bytes waiting for this parked session",
    "parked_bytes_total": "bytes waiting for all parked sessions",
    "kept_asks": "questions of this session whose replies are kept",
    "kept_asks_total": "questions whose replies are kept",
    "kept_bytes": "bytes of replies kept for their askers",
}


def refusal(message_id: str, code: str, reason: str, **extra: Any) -> DeliveryFailed:
    """A refusal with its code's certainty."""
    return DeliveryFailed(
        message_id=message_id,
        reason=reason,
        code=code,
        retryable=is_retryable(code),
        outcome_known=is_outcome_known(code),
        **extra,
    )


def clip(to: str) -> str:
    """A target as a sentence repeats it."""
    return to if len(to) <= _MAX_REPEATED_CHARS else js_trim(to)[:_CLIPPED_CHARS] + "…"


def for_dialect(frame: DeliveryFailed, sender: Session | None) -> DeliveryFailed:
    """The refusal with the member a sibling client reads, without those that only ``ext:1`` clients get."""
    if sender is not None and sender.has_ext:
        return frame
    is_sibling = sender is not None and sender.dialect == SIBLING
    return frame.replace(candidates=None, nearest=None, delivery="failed" if is_sibling else None)


def self_target(message_id: str, to: str) -> DeliveryFailed:
    """Nobody sends to itself."""
    return refusal(message_id, "self_target", f'Target "{clip(to)}": that is this session; choose another one')


def unresolved(
    message_id: str, to: str, found: Resolution, roster: Roster, sender: Session, *, may_search: bool
) -> DeliveryFailed:
    """Why a text selects nobody. Only what the sender may see is computed over, so nothing hidden shows."""
    circles = roster.circles_for(sender.registered)
    if found.kind == SELF:
        return self_target(message_id, to)
    if found.kind == TOO_SHORT:
        reason = f'Target "{clip(to)}": too short; use the name, or at least {MIN_PREFIX_CHARS} characters of the ID'
        return refusal(message_id, "too_short", reason)
    if found.kind == AMBIGUOUS:
        return refusal(message_id, "ambiguous", _ambiguity(to, found), candidates=_describe(found.ids, roster, circles))
    similar = nearest(to, [circle.index for circle in circles], sender.peer_id) if may_search else []
    return refusal(message_id, "not_found", NOT_FOUND, nearest=_describe(similar, roster, circles) or None)


def _ambiguity(to: str, found: Resolution) -> str:
    if found.is_by_name:
        return f'Multiple sessions named "{clip(to)}" are connected. Use the session ID instead.'
    return f'Target "{clip(to)}": {len(found.ids)} sessions match; use the full session ID'


def _describe(ids: Iterable[str], roster: Roster, circles: Sequence[Circle]) -> tuple[Candidate, ...]:
    indexes = [circle.index for circle in circles]
    shown = sorted(ids)[:MAX_PROPOSED]
    rows = ((session.peer_id, session.registered) for session in map(roster.find, shown) if session is not None)
    return tuple(
        Candidate(id=peer_id, target=display_target(peer_id, indexes), name=row.name, cwd=row.cwd)
        for peer_id, row in rows
    )


def over_limit(message_id: str, to: str, excess: Excess, code: str = "recipient_full") -> DeliveryFailed:
    """A budget is used up: which rule, how much was counted, when it opens again. ``code``: of one without a time."""
    words = _RULE_WORDS[excess.rule]
    is_rate = bool(excess.retry_after_ms)
    remedy = f"retry in {excess.retry_after_ms / _MS_PER_S:.1f} s" if is_rate else "retry when some were taken"
    return refusal(
        message_id,
        "rate_limited" if is_rate else code,
        f'Message to "{clip(to)}": {excess.count} {words} (limit {excess.limit}); {remedy}',
        rule=excess.rule,
        count=excess.count,
        limit=excess.limit,
        retry_after_ms=excess.retry_after_ms if is_rate else None,
    )


def too_large(message_id: str, message_bytes: int, frame_bytes: int) -> DeliveryFailed:
    """The message fits a frame but not with its sender's row beside it; both sizes are told."""
    reason = (
        f"Intercom message too large ({frame_bytes} bytes; max {MAX_FRAME_BYTES}): "
        f"the message alone is {message_bytes} bytes, the rest is its sender's row"
    )
    return refusal(message_id, "too_large", reason)


def stalled(message_id: str, to: str, after_s: float) -> DeliveryFailed:
    """The recipient's socket takes nothing."""
    reason = (
        f'Message to "{clip(to)}": its connection has taken nothing for {after_s:g} s; check that session, then retry'
    )
    return refusal(message_id, "recipient_stalled", reason)


def not_stored(message_id: str, to: str, cause: str) -> DeliveryFailed:
    """What had to be stored first could not be."""
    reason = f'Message to "{clip(to)}": it could not be stored ({cause}); nothing was sent, retry'
    return refusal(message_id, "store_failed", reason)


def cycle(message_id: str, to: str, names: Sequence[str]) -> DeliveryFailed:
    """The ask would close a circle of waiting sessions; ``names`` are those the asker may see, and all it learns."""
    more = len(names) - _MAX_NAMED
    shown = " -> ".join([*names[:_MAX_NAMED], *([f"{more} more"] if more > 0 else []), "you"])
    remedy = "answer the question you were asked first, or use send"
    reason = f'Ask to "{clip(to)}": it would wait in a circle ({shown}); {remedy}'
    return refusal(message_id, "ask_cycle", reason)
