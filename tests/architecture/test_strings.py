"""Strings that no file of the repository holds: places of one machine, and hosts of package registries.

The registry belongs to whoever installs; a path of one machine is wrong on every other. The patterns are written in
pieces, so that this file is clean itself.
"""

from __future__ import annotations

import re

import pytest

from tests.architecture.sources import ROOT, tracked_files

PLACES = re.compile(
    "|".join(
        [
            "/wor" + "k/(main|shared|steering|[.]library)",
            "/far" + "m/",
            "/roo" + "t/",
            "/tmp/(stu" + "dio|bri" + "ef)",
        ],
    ),
)
HOSTS = re.compile(
    "|".join(["py" + "pi[.]org", "python" + "hosted", "npm" + "js[.](org|com)", "deb[.]" + "debian[.]org"]),
)


def found_in(text: str) -> list[str]:
    return [match.group() for pattern in (PLACES, HOSTS) for match in pattern.finditer(text)]


def test_no_file_names_a_machine_or_a_registry() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8", errors="replace") for name in tracked_files()}
    assert {name: found for name, text in texts.items() if (found := found_in(text))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "cd /wor" + "k/main",
        "HOME=/roo" + "t/x",
        "/tmp/bri" + "ef",
        "https://py" + "pi.org/simple",
        "files.python" + "hosted.example",
    ],
)
def test_a_planted_string_is_found(text: str) -> None:
    assert len(found_in(text)) == 1


def test_ordinary_paths_are_left_alone() -> None:
    assert found_in("/tmp/pi-intercom-1000/broker.sock, /network/x, ~/.cache, pypi") == []
