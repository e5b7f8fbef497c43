"""Refusal codes of ``delivery_failed`` and other answers: is it retryable, is the outcome known.

Owns the vocabulary that clients compare (wire.md 14.1, 9.3, 9.5). Does not own the sentences around it.
"""

from __future__ import annotations

# code -> (retryable, outcome known). Every refusal of the broker is certain: nothing was delivered.
CODES = {
    "not_found": (False, True),
    "ambiguous": (False, True),
    "too_short": (False, True),
    "self_target": (False, True),
    "invalid_message": (False, True),
    "too_large": (False, True),
    "rate_limited": (True, True),
    "recipient_full": (True, True),
    "recipient_stalled": (True, True),
    "recipient_left": (True, True),
    "stage_full": (True, True),
    "store_failed": (True, True),
    "not_registered": (False, True),
    "ask_cycle": (False, True),
    "message_id_reuse": (False, True),
    "guard_invalid": (False, True),
    "guard_unsupported": (False, True),
    "parked_full": (True, True),
    "guard_target": (False, True),
    "guard_ambiguous_root": (False, True),
    "guard_stale": (False, True),
}


def is_retryable(code: str) -> bool:
    """True when the same message may be sent again later without a change."""
    return CODES[code][0]


def is_outcome_known(code: str) -> bool:
    """True when the refusal proves that nothing was delivered."""
    return CODES[code][1]
