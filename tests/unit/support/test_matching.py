"""The pattern language of conversations and vectors: what fits, what does not, and that the reason names the place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.matching import explain_mismatch, matches

UUID = "00000001-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (1, 1.0),
        ({"a": 1}, {"a": 1}),
        ({"a": 1, "...": True}, {"a": 1, "b": 2}),
        ({"a": "<absent>", "...": True}, {"b": 2}),
        (["<any>", "<string>", "<number>", "<uuid>"], [None, "", 0, UUID]),
        ("<has:b>", "abc"),
        ("<has:a\nb>", "xa\nby"),
        (["<as:x>", "<x>"], [{"k": 1}, {"k": 1}]),
        (None, None),
    ],
)
def test_fits(pattern: Any, value: Any):
    assert matches(pattern, value)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (1, True),
        (True, 1),
        (1, "1"),
        (0, None),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {}),
        ({"a": 1}, [1]),
        ({"a": "<absent>", "...": True}, {"a": None}),
        ([1], [1, 1]),
        ([1, 2], [2, 1]),
        ("<number>", True),
        ("<uuid>", UUID.upper().replace("0", "A")),
        ("<string>", 1),
        ("<has:b>", "ac"),
        (["<as:x>", "<x>"], [1, 2]),
        ("<nobody>", "nobody"),
    ],
)
def test_does_not_fit(pattern: Any, value: Any):
    assert not matches(pattern, value)


def test_reason_names_the_place():
    assert explain_mismatch({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, {}) == "$.a[0].b is 2, expected 1"


def test_names_are_kept_between_calls():
    kept: dict[str, Any] = {}
    assert not explain_mismatch({"id": "<as:one>"}, {"id": "x"}, kept)
    assert kept == {"one": "x"}
    assert explain_mismatch("<one>", "y", kept)
