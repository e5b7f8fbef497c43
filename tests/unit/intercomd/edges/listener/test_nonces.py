"""Which first bytes are the broker's own probe."""

from __future__ import annotations

import pytest

from intercomd.edges.listener.nonces import Nonces
from libintercom.endpoint import PROBE_NONCE_BYTES, PROBE_PREAMBLE

NONCE = bytes(range(PROBE_NONCE_BYTES))


def test_an_awaited_nonce_is_seen_once() -> None:
    nonces, seen = Nonces(), []
    nonces.expect(NONCE, lambda: seen.append(True))
    assert nonces.recognize(PROBE_PREAMBLE + NONCE)
    assert not nonces.recognize(PROBE_PREAMBLE + NONCE)
    assert seen == [True]


@pytest.mark.parametrize(
    "received",
    [
        b"",
        PROBE_PREAMBLE,
        PROBE_PREAMBLE + NONCE[:-1],
        PROBE_PREAMBLE + NONCE + b"x",
        NONCE,
        PROBE_PREAMBLE + b"y" * 16,
    ],
)
def test_anything_else_is_none(received: bytes) -> None:
    nonces = Nonces()
    nonces.expect(NONCE, lambda: pytest.fail("a nonce was seen"))
    assert not nonces.recognize(received)


def test_a_forgotten_nonce_is_none() -> None:
    nonces = Nonces()
    nonces.expect(NONCE, lambda: pytest.fail("a forgotten nonce was seen"))
    nonces.forget(NONCE)
    nonces.forget(NONCE)
    assert not nonces.recognize(PROBE_PREAMBLE + NONCE)


def test_a_nonce_of_another_length_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Nonces().expect(b"short", lambda: None)
