"""What a refused sender is told, judged: the rule, what was counted, its limit, and when it opens again.

Owns the judgement of one refusal. Does not own keeping the promise in it (``greed``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.sayings import Object

# What a rule may be called, by code (wire.md 14.6).
_RULES = {
    "rate_limited": {"sends", "bytes", "pair"},
    "recipient_full": {"recipient_messages", "recipient_bytes", "outbound_bytes", "recipient_asks", "asker_asks"},
}


def untruth(refusal: Object) -> str:
    """What is wrong with a refusal for load, ``""`` when nothing is."""
    code = refusal.get("code")
    is_certain = refusal.get("retryable") is refusal.get("outcomeKnown") is True
    if code == "recipient_stalled":
        return "" if is_certain else f"certainty of {refusal}"
    if code not in _RULES:
        return f"a code that no load explains: {refusal}"
    if refusal.get("rule") not in _RULES[code]:
        return f"rule of {refusal}"
    if not is_certain:
        return f"certainty of {refusal}"
    if (code == "rate_limited") != (refusal.get("retryAfterMs", 0) > 0):
        return f"retryAfterMs of {refusal}"
    numbers = (str(refusal.get("count")), str(refusal.get("limit")))
    return "" if all(number in refusal["reason"] for number in numbers) else f"numbers in the reason of {refusal}"
