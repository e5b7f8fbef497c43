"""Shielding lone surrogate escapes: which are lone, and getting them back exactly."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercomd.edges.listener.surrogates import Shield, shield
from libintercom.errors import InvalidFrame


def shielded(payload: bytes) -> Shield:
    found = shield(payload)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "payload",
    [
        b'"x"',
        rb'"\ud83d\ude00"',
        rb'"\uD83D\uDE00"',
        rb'"\\ud83d"',
        rb'"\\\\udc00"',
        rb'"\ue000\u00e9"',
        b'"\xf0\x9f\x98\x80"',
    ],
)
def test_what_has_no_lone_surrogate_needs_no_shield(payload: bytes) -> None:
    assert shield(payload) is None


@pytest.mark.parametrize(
    "payload",
    [
        rb'"\ud83d"',
        rb'"\udc00"',
        rb'"\uDBFF x"',
        rb'"\ud83dx\ude00"',
        rb'"\ud83d\ud83d\ude00"',
        rb'"\ud83d\\ude00"',
        rb'"\\\ud83d"',
        rb'"\ude00\ud83d"',
        rb'["\ud83d","\ude00"]',
    ],
)
def test_a_shielded_payload_has_none_and_gives_all_back(payload: bytes) -> None:
    shield_ = shielded(payload)
    assert shield(shield_.payload) is None
    assert shield_.restore_bytes(shield_.payload) == payload
    assert _restored(shield_) == json.loads(payload)


@pytest.mark.parametrize("broken", [rb"\ud", rb"\ud8", rb"\ud83", rb"\ud83g", rb"\uDx00", rb"\ud8\ud83d"])
@pytest.mark.parametrize("room", [0, 20_000])
def test_what_is_no_escape_is_not_shielded_into_text(broken: bytes, room: int) -> None:
    payload = b'{"a":"' + b"x" * room + broken + rb'","b":"\ud83d"}'
    found = shield(payload)
    seen = payload if found is None else found.payload
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(seen)


LARGE = {
    "lone": (rb"\ud83d", 170_000),
    "low": (rb"\uDE00", 170_000),
    "pairs": (rb"\ud83d\ude00", 80_000),
    "three": (rb"\ud83d\ud83d\ude00", 55_000),
    "no surrogates": (rb"\ud83d\ud55c", 80_000),
    "hidden": (rb"\\ud83d\ud83d", 80_000),
    "escapes": (rb"\n\"\\\ude00", 80_000),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_frame_full_of_them_is_restored_exactly_and_costs_no_step_for_each(name: str) -> None:
    piece, count = LARGE[name]
    payload = b'"' + piece * count + b'"'
    calls = Calls()
    with calls:
        found = shielded(payload)
        text = found.restore_text(msgspec.json.decode(found.payload))
        raw = found.restore_bytes(found.payload)
    assert raw == payload
    assert text == json.loads(payload)
    assert calls.count < 100


@given(
    st.text(st.sampled_from(["\ud83d", "\ude00", "\udfff", "\ue000", "\\", '"', "a", "é", "u", "d"]), max_size=12),
    st.sampled_from([0, 20_000]),
)
def test_any_mixture_survives(text: str, room: int) -> None:
    payload = json.dumps("x" * room + text).encode()
    found = shield(payload)
    if found is None:
        assert not any("\ud800" <= char <= "\udfff" for char in json.loads(payload))
    else:
        assert found.restore_bytes(found.payload) == payload
        assert _restored(found) == json.loads(payload)


@pytest.mark.parametrize("used", ["\ue000".encode(), rb"\ue000", rb"\uE000"])
def test_a_character_in_use_is_no_sentinel(used: bytes) -> None:
    payload = b'"' + used + rb'\ud83d"'
    assert _restored(shielded(payload)) == "\ue000\ud83d"


def test_a_frame_that_uses_every_sentinel_is_refused() -> None:
    payload = b'"' + "".join(map(chr, range(0xE000, 0xF900))).encode() + rb'\ud83d"'
    with pytest.raises(InvalidFrame, match="private use"):
        shield(payload)


class Calls:
    """How many calls, Python's and C's, are made within."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        sys.setprofile(self._note)

    def __exit__(self, *_ending: object) -> None:
        sys.setprofile(None)

    def _note(self, _frame: object, event: str, _called: object) -> None:
        self.count += event in ("call", "c_call")


def _restored(found: Shield) -> object:
    value = json.loads(found.payload)
    if isinstance(value, list):
        return [found.restore_text(item) for item in value]
    return found.restore_text(value)
