"""The linter and the type checker: every rule on, every exception with its reason, and both shown to close.

Their findings on the whole tree are `make lint` and `make types`; here a planted mistake is found.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

# An entry of a list of ignored rules, alone on its line.
ENTRY = re.compile(r'^ {4}"[A-Z]+[0-9]*",(?P<reason>.*)$', re.MULTILINE)


def ruff(code: str, path: str) -> str:
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise"]
    command += ["--stdin-filename", path, "-"]
    return subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, check=False).stdout


def mypy(folder: Path, code: str) -> str:
    (folder / "planted.py").write_text(code, encoding="utf-8")
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(folder / "cache"), "planted.py"]
    command = [sys.executable, "-m", "mypy", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_every_rule_is_on_and_every_exception_has_a_reason() -> None:
    lint = tomllib.loads(PYPROJECT)["tool"]["ruff"]["lint"]
    listed = [*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)]
    reasons = [match["reason"] for match in ENTRY.finditer(PYPROJECT)]
    assert lint["select"] == ["ALL"]
    # The one list on a single line is the ban of sleeps, explained above it.
    assert len(reasons) == len(listed) - listed.count("TID251")
    assert [reason for reason in reasons if not reason.strip().startswith("# ")] == []


@pytest.mark.parametrize(
    ("rule", "code", "path"),
    [
        ("ANN201", "def f():\n    return 1\n", "libintercom/planted.py"),
        ("D100", "a = 1\n", "intercomd/core/planted.py"),
        ("D101", "class A:\n    a = 1\n", "intercomd/core/planted.py"),
        ("T201", "print(1)\n", "intercomctl/commands/planted.py"),
        ("E501", "a = " + "1 + " * 40 + "1\n", "tests/unit/test_planted.py"),
        ("BLE001", "try:\n    a = 1\nexcept Exception:\n    a = 2\n", "intercomd/planted.py"),
        ("F841", "def f() -> None:\n    a = 1\n", "tests/unit/test_planted.py"),
    ],
)
def test_the_linter_finds_a_planted_mistake(rule: str, code: str, path: str) -> None:
    assert rule in ruff(code, path)


def test_the_type_checker_is_strict(tmp_path: Path) -> None:
    said = mypy(tmp_path, "def f(a):\n    return a\n\ndef g() -> int:\n    return 'a'\n\nx: list = []\n")
    assert set(re.findall(r"\[([a-z-]+)\]", said)) >= {"no-untyped-def", "return-value", "type-arg"}
