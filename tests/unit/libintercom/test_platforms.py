"""The three systems, told apart by what their interpreters say."""

from __future__ import annotations

import sys

import pytest

from libintercom.platforms import current_platform


@pytest.mark.parametrize(
    ("name", "has_api_level", "platform"),
    [
        ("linux", False, "linux"),
        ("linux", True, "android"),
        ("android", True, "android"),
        ("android", False, "android"),
        ("darwin", False, "darwin"),
        ("freebsd14", False, "freebsd14"),
    ],
)
def test_platforms(monkeypatch: pytest.MonkeyPatch, name: str, has_api_level: bool, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.delattr(sys, "getandroidapilevel", raising=False)
    if has_api_level:
        monkeypatch.setattr(sys, "getandroidapilevel", lambda: 34, raising=False)
    assert current_platform() == platform
