r"""Lone surrogate escapes, which JavaScript peers may write and msgspec refuses.

Owns shielding a payload: the ``\u`` of every ``\udNNN`` becomes a sentinel character that the payload does not hold,
in front of the same four hex digits, so that a strict decoder accepts it; and undoing that, in decoded strings (the
exact value) and in raw bytes (the exact bytes). Does not own decoding.

A frame may hold 170,000 of them, so nothing here takes a step for each: escapes with a partner, and of other
characters that start so, are shielded along with the lone ones, since two replacements cost less than a look at each.
"""

from __future__ import annotations

import json
import random
import re

from libintercom.errors import InvalidFrame

# Quick "there may be one": the start of any surrogate's escape.
_MAYBE = re.compile(rb"\\u[dD][89a-fA-F]")
# An escaped backslash hides what follows it. Meanwhile both bytes are one that valid UTF-8 never has.
_HIDING, _HIDDEN = rb"\\", b"\xff\xff"
# Up to here, that is in honest frames, it is cheaper to find that every escape has its partner than to shield them.
_SEARCHED_BYTES = 16 * 1024
# A high surrogate without a low one behind it, or a low one without a high one before.
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE = re.compile(rb"%b(?!%b)|(?<!%b)%b" % (_HIGH, _LOW, _HIGH, _LOW))
# What only looks like an escape is no JSON; shielded it would be text.
_BROKEN = re.compile(rb"\\u[dD](?![0-9a-fA-F]{3})")
# Characters without a meaning of their own (the private use area of the basic plane): 6,400 candidates.
_SENTINELS = range(0xE000, 0xF900)
# Guesses before every candidate is looked for: no honest peer has used even one.
_GUESSES = 8
# Nothing is secret: one that is in use is not taken. Of our own, since the common one may be seeded by somebody.
_choose = random.Random().choice  # noqa: S311 - see above
# Any of them, in a payload in lower case: as itself, or escaped.
_USED = re.compile(rb"\xee[\x80-\xbf]{2}|\xef[\x80-\xa3][\x80-\xbf]|\\u(?:e[0-9a-f]|f[0-8])[0-9a-f]{2}")
_ESCAPED_BYTES = len(rb"\ue000")


class Shield:
    """One payload's sentinel. ``payload`` is what a strict decoder may read instead of the original."""

    def __init__(self, payload: bytes, sentinel: str) -> None:
        self.payload = payload
        self._sentinel, self._mark = sentinel, sentinel.encode()

    def restore_text(self, text: str) -> str:
        """A decoded string with its surrogates back; those with a partner are one character again."""
        if self._sentinel not in text:
            return text
        restored: str = json.loads(json.dumps(text, ensure_ascii=False).replace(self._sentinel, "\\u"))
        return restored

    def restore_bytes(self, raw: bytes) -> bytes:
        """Raw JSON as it was before shielding, byte for byte."""
        return raw.replace(self._mark, rb"\u")


def shield(payload: bytes) -> Shield | None:
    """Shield a payload (valid UTF-8), or ``None`` when it need not be: it has no lone surrogate escape, or is no JSON.

    Raises:
        InvalidFrame: every possible sentinel is in use, which no honest peer does.
    """
    if _MAYBE.search(payload) is None:
        return None
    visible = payload.replace(_HIDING, _HIDDEN)
    if len(payload) <= _SEARCHED_BYTES and _LONE.search(visible) is None:
        return None
    if _BROKEN.search(visible) is not None:
        return None
    sentinel = _unused_character(payload)
    mark = sentinel.encode()
    shielded = visible.replace(rb"\ud", mark + b"d").replace(rb"\uD", mark + b"D")
    return Shield(shielded.replace(_HIDDEN, _HIDING), sentinel)


def _unused_character(payload: bytes) -> str:
    # Bytes of characters beyond ASCII stay what they are.
    lowered = payload.lower()
    for _guess in range(_GUESSES):
        guess = _choose(_SENTINELS)
        if chr(guess).encode() not in lowered and b"\\u%04x" % guess not in lowered:
            return chr(guess)
    used = {_code(found) for found in set(_USED.findall(lowered))}
    unused = next((candidate for candidate in _SENTINELS if candidate not in used), None)
    if unused is None:
        raise InvalidFrame("lone surrogates beside every private use character")
    return chr(unused)


def _code(found: bytes) -> int:
    return int(found[-4:], 16) if len(found) == _ESCAPED_BYTES else ord(found.decode())
