"""The refusal codes that clients compare."""

from __future__ import annotations

import pytest

from libintercom.wire import codes

# Refusals that may pass by themselves (wire.md 14.1, 14.5, 14.6).
RETRYABLE = {
    "rate_limited",
    "recipient_full",
    "parked_full",
    "recipient_stalled",
    "recipient_left",
    "stage_full",
    "store_failed",
}
# The codes that wire.md 14.1 names, the guard's and the parked child's left out.
NAMED = {
    "not_found",
    "ambiguous",
    "too_short",
    "self_target",
    "invalid_message",
    "too_large",
    "not_registered",
    "ask_cycle",
    "message_id_reuse",
} | RETRYABLE


def test_every_named_code_is_there() -> None:
    assert set(codes.CODES) >= NAMED


@pytest.mark.parametrize("code", codes.CODES)
def test_code_is_snake_case_and_certain(code: str) -> None:
    assert code == code.lower()
    assert code.replace("_", "").isalpha()
    assert codes.is_outcome_known(code)
    assert codes.is_retryable(code) == (code in RETRYABLE)
