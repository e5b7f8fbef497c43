"""Recognizing the broker's own probe of its path among what connections send first (ownership.md section 5).

Owns which nonces are awaited. Sending one is ``libintercom.endpoint.probe``: a length that no frame may announce, then
the nonce, so any other broker drops that connection at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from libintercom.endpoint import PROBE_NONCE_BYTES, PROBE_PREAMBLE

if TYPE_CHECKING:
    from collections.abc import Callable


class Nonces:
    """The nonces that may arrive, each with whom to tell."""

    def __init__(self) -> None:
        self._awaited: dict[bytes, Callable[[], None]] = {}

    def expect(self, nonce: bytes, seen: Callable[[], None]) -> None:
        """Call ``seen`` once when ``nonce`` (``PROBE_NONCE_BYTES`` bytes) arrives on a fresh connection."""
        if len(nonce) != PROBE_NONCE_BYTES:
            raise ValueError(f"a nonce has {PROBE_NONCE_BYTES} bytes, not {len(nonce)}")
        self._awaited[nonce] = seen

    def forget(self, nonce: bytes) -> None:
        """Await a nonce no longer."""
        self._awaited.pop(nonce, None)

    def recognize(self, received: bytes) -> bool:
        """Whether the first bytes of a connection are an awaited probe. It is one write, so it comes whole."""
        if not received.startswith(PROBE_PREAMBLE):
            return False
        seen = self._awaited.pop(received[len(PROBE_PREAMBLE) :], None)
        if seen is None:
            return False
        seen()
        return True
