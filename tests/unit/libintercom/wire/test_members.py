"""Members leave an object's bytes, and nothing else changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libintercom.wire.members import without_members


@pytest.mark.parametrize(
    ("whole", "left"),
    [
        (b'{"a":1}', b"{}"),
        (b"{}", b"{}"),
        (b' { "b" : 1.50 , "a":{"b":2}, "c":"\\ud800 \\"a\\":1" } ', b'{"b" : 1.50,"c":"\\ud800 \\"a\\":1"}'),
        (b'{"x":{"a":1},"\\u0061":2}', b'{"x":{"a":1}}'),
        (b'{"b":1e400,"a":' + b"9" * 5000 + b"}", b'{"b":1e400}'),
    ],
)
def test_named_members_are_cut(whole: bytes, left: bytes) -> None:
    assert without_members(whole, ("a",)) == left


@pytest.mark.parametrize("whole", [b"", b"[1]", b'{"a"', b'{"a":}', b'{"b":' + b"[" * 100_000 + b"]" * 100_000 + b"}"])
def test_what_cannot_be_followed_is_not_cut(whole: bytes) -> None:
    assert without_members(whole, ("a",)) is None


@given(st.dictionaries(st.sampled_from(["a", "b", "ä", '"']), st.one_of(st.integers(), st.text(), st.lists(st.text()))))
def test_the_rest_means_the_same(value: dict[str, object]) -> None:
    cut = without_members(json.dumps(value).encode(), ("a",))
    assert cut is not None
    assert json.loads(cut) == {name: member for name, member in value.items() if name != "a"}
