"""Whether what arrived is what was expected: JSON values against patterns.

Owns the pattern language of conversations and vectors. A pattern is a JSON value that must be equal, with

* ``"<any>"``, ``"<string>"``, ``"<number>"``, ``"<uuid>"`` for values that cannot be known beforehand,
* ``"<absent>"`` for a member that must not be there,
* ``"<as:NAME>"`` to keep a value, ``"<NAME>"`` for the value kept so,
* ``"<has:WORDS>"`` for a string that holds the words,
* a member ``"...": true`` for an object that may have other members; without it the members are exact.

Numbers are compared as JavaScript does (``1`` is ``1.0``), booleans are no numbers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# Any JSON value.
Json = Any

ABSENT = "<absent>"
REST = "..."
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_MARK = re.compile("<([a-z]+)(?::(.*))?>", re.DOTALL)


def explain_mismatch(pattern: object, value: object, kept: dict[str, Json], path: str = "$") -> str:
    """Where and how ``value`` differs from ``pattern``, ``""`` when it does not. ``kept`` learns named values."""
    if isinstance(pattern, str):
        mark = _MARK.fullmatch(pattern)
        if mark:
            return _explain_mark(mark[1], mark[2], value, kept, path)
    if isinstance(pattern, dict) and isinstance(value, dict):
        return _explain_object(pattern, value, kept, path)
    if isinstance(pattern, list) and isinstance(value, list):
        if len(pattern) != len(value):
            return f"{path} has {len(value)} items, expected {len(pattern)}: {value!r}"
        pairs = zip(pattern, value, strict=True)
        return _first(explain_mismatch(want, got, kept, f"{path}[{at}]") for at, (want, got) in enumerate(pairs))
    if pattern == value and isinstance(pattern, bool) == isinstance(value, bool):
        return ""
    return f"{path} is {value!r}, expected {pattern!r}"


def matches(pattern: object, value: object) -> bool:
    """Whether ``value`` fits a pattern that keeps nothing."""
    return not explain_mismatch(pattern, value, {})


def _explain_object(pattern: dict[str, Json], value: dict[str, Json], kept: dict[str, Json], path: str) -> str:
    wanted = {name: want for name, want in pattern.items() if want != ABSENT and name != REST}
    for name, want in pattern.items():
        if want == ABSENT and name in value:
            return f"{path}.{name} is there ({value[name]!r}), expected absent"
    missing = [name for name in wanted if name not in value]
    if missing:
        return f"{path} lacks {', '.join(missing)}: {value!r}"
    extra = [name for name in value if name not in wanted]
    if extra and REST not in pattern:
        return f"{path} also has {', '.join(extra)}: {value!r}"
    return _first(explain_mismatch(want, value[name], kept, f"{path}.{name}") for name, want in wanted.items())


def _explain_mark(mark: str, rest: str | None, value: object, kept: dict[str, Json], path: str) -> str:
    if mark == "as":
        kept[str(rest)] = value
        return ""
    if mark == "has":
        return "" if isinstance(value, str) and str(rest) in value else f"{path} is {value!r}, expected {rest!r} in it"
    claims = {
        "any": True,
        "string": isinstance(value, str),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "uuid": isinstance(value, str) and _UUID.fullmatch(value) is not None,
    }
    if mark in claims:
        return "" if claims[mark] else f"{path} is {value!r}, expected a {mark}"
    if mark not in kept:
        return f"{path}: nothing was kept as {mark!r}"
    return explain_mismatch(kept[mark], value, kept, path)


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")
