"""From the JSON of a vector to the bytes on the wire, with the notation for what JSON cannot say.

Owns that notation: ``{"$absent": true}`` leaves a member out, ``{"$repeat": text, "times": n}`` is a long string,
``{"$raw": pieces}`` is literal JSON text, ``{"$payload": pieces}`` a literal payload and ``{"$bytes": pieces}`` literal
bytes without a frame around them. A piece is a text, ``{"repeat": text, "times": n}`` or ``{"hex": digits}``.
"""

from __future__ import annotations

import copy
from typing import Any

from libintercom.wire.frames import encode_json, frame

# A text that no vector holds and that encodes to itself, to stand for raw JSON until the rest is encoded.
_HOLE = "@@raw-{}@@"


class _Absent:
    """Stands for a member to leave out."""


_ABSENT = _Absent()


def join_pieces(pieces: list[Any]) -> bytes:
    return b"".join(_piece(piece) for piece in pieces)


def _piece(piece: Any) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    if "hex" in piece:
        return bytes.fromhex(piece["hex"])
    return piece["repeat"].encode() * piece["times"]


def payload_of(value: Any) -> bytes:
    """The payload of a frame given as JSON with notation."""
    if isinstance(value, dict) and "$payload" in value:
        return join_pieces(value["$payload"])
    raw: list[bytes] = []
    encoded = encode_json(_expand(value, raw))
    for at, text in enumerate(raw):
        encoded = encoded.replace(encode_json(_HOLE.format(at)), text)
    return encoded


def bytes_of(value: Any) -> bytes:
    """What a client writes for a frame given as JSON with notation."""
    if isinstance(value, dict) and "$bytes" in value:
        return join_pieces(value["$bytes"])
    return frame(payload_of(value))


def expand(value: Any) -> Any:
    """The plain JSON value of an expectation or a payload; raw JSON is not allowed in it."""
    raw: list[bytes] = []
    expanded = _expand(value, raw)
    assert not raw, f"raw JSON in {value!r}"
    return expanded


def _expand(value: Any, raw: list[bytes]) -> Any:
    if isinstance(value, list):
        return [_expand(item, raw) for item in value]
    if not isinstance(value, dict):
        return value
    if "$absent" in value:
        return _ABSENT
    if "$repeat" in value:
        return value["$repeat"] * value["times"]
    if "$raw" in value:
        raw.append(join_pieces(value["$raw"]))
        return _HOLE.format(len(raw) - 1)
    members = {name: _expand(member, raw) for name, member in value.items()}
    return {name: member for name, member in members.items() if member is not _ABSENT}


def with_member(template: Any, path: str, value: Any) -> Any:
    """A copy of ``template`` whose member at a dotted path is ``value``; digits are list positions."""
    changed = copy.deepcopy(template)
    *parents, last = path.split(".")
    place = changed
    for step in parents:
        place = place[int(step) if isinstance(place, list) else step]
    place[last] = value
    return changed
