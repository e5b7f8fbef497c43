"""The hash of a message's text as its sender wrote it. Pure.

Owns what bytes a text has for hashing: exact UTF-8, nothing normalised, and for a lone surrogate what JavaScript
writes, U+FFFD (wire.md 9.4; peers in JavaScript hash the same).
"""

from __future__ import annotations

import hashlib


def text_sha256(text: str) -> str:
    """Lowercase SHA-256 of the raw text: CRLF, tabs and composed or decomposed letters count as they are."""
    return hashlib.sha256(replace_surrogates(text).encode()).hexdigest()


def replace_surrogates(text: str) -> str:
    """The same text with U+FFFD for each lone surrogate; two that make a pair become their character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
