"""Which modules the one file holds, by their imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from remote import bundle

if TYPE_CHECKING:
    from pathlib import Path

CASES = {
    "a module": ("import libintercom.wire.frames", ["libintercom.wire.frames"]),
    "names of a module": ("from libintercom.errors import IntercomError", ["libintercom.errors"]),
    "a module of a package": ("from libintercom import texts", ["libintercom", "libintercom.texts"]),
    "inside a function": ("def f():\n    from remote import looking", ["remote", "remote.looking"]),
    "the standard library": ("import os\nfrom json import loads", []),
    "for the type checker": ("if TYPE_CHECKING:\n    from libintercom.client import Client", []),
    "beside the checker": (
        "if TYPE_CHECKING:\n    import os\nelse:\n    import libintercom.texts",
        ["libintercom.texts"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_a_module_imports_when_it_runs(case: tuple[str, list[str]]) -> None:
    text, expected = case
    assert bundle.imports(ast.parse(text)) == expected


def test_packages_come_with_their_modules() -> None:
    names = bundle.modules()
    assert {"libintercom", "libintercom.wire", "libintercom.devices", "remote", "remote.entry"} <= set(names)
    assert names == sorted(set(names))


@pytest.mark.parametrize("text", ["a = '''b'''\n", "a = 1\\"])
def test_what_would_end_the_string_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote" / "entry.py").write_text(text)
    monkeypatch.setattr(bundle, "ROOT", str(tmp_path))
    monkeypatch.setattr(bundle, "modules", lambda: ["remote.entry"])
    with pytest.raises(SystemExit, match="raw string"):
        bundle.write()
