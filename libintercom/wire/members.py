"""Taking members out of a JSON object's bytes while every other byte of its members stays as it came.

Owns that one cut (wire.md 9.7: what the broker strips from a kept ask). Does not own which members those are.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

# JSON's white space, which no member contains outside its strings' quotes.
_SPACE = " \t\n\r"
# Only where a value ends is asked, so no number is converted: an integer may have any number of digits.
_decoder = json.JSONDecoder(parse_int=str, parse_float=str)


def without_members(whole: bytes, names: Collection[str]) -> bytes | None:
    """The object without its own members of these names (those of nested objects stay).

    None when it is no JSON object, or nested beyond what the decoder can follow.
    """
    try:
        return _cut(whole.decode("utf-8", "surrogatepass"), names).encode("utf-8", "surrogatepass")
    except (ValueError, IndexError, RecursionError):
        return None


def _cut(text: str, names: Collection[str]) -> str:
    at = _skip(text, 0)
    if text[at] != "{":
        raise ValueError("no object")
    at = _skip(text, at + 1)
    kept = []
    while text[at] != "}":
        start = at
        name, at = _decoder.raw_decode(text, at)
        _value, at = _decoder.raw_decode(text, _skip(text, _skip(text, at) + 1))
        if name not in names:
            kept.append(text[start:at])
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return "{" + ",".join(kept) + "}"


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
