r"""Lone surrogate escapes, which JavaScript peers may write and msgspec refuses.

Owns shielding a payload: each lone ``\udNNN`` becomes a sentinel character that the payload does not hold, followed
by the same four hex digits, so that a strict decoder accepts it; and undoing that, in decoded strings (the exact
value) and in raw bytes (the exact bytes). Does not own decoding.
"""

from __future__ import annotations

import re

from libintercom.errors import InvalidFrame

# Quick "there may be one": the start of any surrogate's escape.
_MAYBE = re.compile(rb"\\u[dD][89a-fA-F]")
# Escapes in the order in which a JSON reader meets them, so that an escaped backslash hides what follows it.
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|[^u])", re.DOTALL)
_HIGH, _LOW, _END = 0xD800, 0xDC00, 0xE000
# Characters without a meaning of their own (the private use area of the basic plane): 6,400 candidates.
_SENTINELS = range(0xE000, 0xF900)


class Shield:
    """One payload's sentinel. ``payload`` is what a strict decoder may read instead of the original."""

    def __init__(self, payload: bytes, sentinel: str) -> None:
        self.payload = payload
        self._in_text = re.compile(sentinel + "([0-9a-fA-F]{4})")
        self._in_bytes = re.compile(sentinel.encode() + b"([0-9a-fA-F]{4})")

    def restore_text(self, text: str) -> str:
        """A decoded string with its lone surrogates back."""
        return self._in_text.sub(lambda found: chr(int(found[1], 16)), text)

    def restore_bytes(self, raw: bytes) -> bytes:
        """Raw JSON as it was before shielding, byte for byte."""
        return self._in_bytes.sub(rb"\\u\1", raw)


def shield(payload: bytes) -> Shield | None:
    """Shield a payload (valid UTF-8), or ``None`` when it has no lone surrogate escape.

    Raises:
        InvalidFrame: every possible sentinel is in use, which no honest peer does.
    """
    if _MAYBE.search(payload) is None:
        return None
    starts = _find_lone(payload)
    if not starts:
        return None
    sentinel = _unused_character(payload)
    mark, parts, end = sentinel.encode(), [], 0
    for start in starts:
        # Two bytes are replaced, the backslash and the u; the digits stay.
        parts += [payload[end:start], mark]
        end = start + 2
    return Shield(b"".join([*parts, payload[end:]]), sentinel)


def _find_lone(payload: bytes) -> list[int]:
    """Where the escapes of surrogates without a partner start."""
    lone: list[int] = []
    # The start and end of a high surrogate that waits for its low one.
    waiting, end = -1, -1
    for found in _ESCAPE.finditer(payload):
        unit = int(found[1], 16) if found[1] else 0
        is_pair = waiting >= 0 and found.start() == end and _LOW <= unit < _END
        if waiting >= 0 and not is_pair:
            lone.append(waiting)
        waiting = -1
        if _HIGH <= unit < _LOW:
            waiting, end = found.start(), found.end()
        elif _LOW <= unit < _END and not is_pair:
            lone.append(found.start())
    return [*lone, waiting] if waiting >= 0 else lone


def _unused_character(payload: bytes) -> str:
    used = set(map(ord, payload.decode()))
    used.update(int(found[1], 16) for found in _ESCAPE.finditer(payload) if found[1])
    for candidate in _SENTINELS:
        if candidate not in used:
            return chr(candidate)
    raise InvalidFrame("lone surrogates beside every private use character")
