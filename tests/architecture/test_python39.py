"""The library and the remote command run on Python 3.9 with nothing installed.

The syntax tree is judged everywhere. A real 3.9 imports every module wherever one is found: named by
INTERCOM_PYTHON39, on PATH, or among pyenv's versions.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.architecture.python39 import NEWER, VARIABLE, interpreter, newer_features
from tests.architecture.sources import ROOT, Source, planted, sources

JUDGED = sources("libintercom", "remote")


@pytest.mark.parametrize("source", JUDGED, ids=lambda source: source.path)
def test_it_uses_nothing_newer(source: Source) -> None:
    assert newer_features(source) == []


NEWER_CODE = [
    "match 1:\n    case 1:\n        pass\n",
    "try:\n    pass\nexcept* OSError:\n    pass\n",
    "import tomllib\n",
    "from enum import StrEnum\n",
    "import asyncio\nasync def f():\n    async with asyncio.timeout(1):\n        pass\n",
    "zip([], [], strict=True)\n",
    "from dataclasses import dataclass\n@dataclass(slots=True)\nclass A:\n    pass\n",
    "isinstance(1, int | str)\n",
    "Alias = None | dict\n",
    "raise ExceptionGroup('a', [])\n",
    "from typing import Self\n",
    "error.add_note('a')\n",
    "type Alias = int\n",
]


@pytest.mark.parametrize("code", NEWER_CODE)
def test_a_newer_feature_is_found(code: str) -> None:
    assert len(newer_features(planted(code)[0])) == 1


OLDER_CODE = [
    "from __future__ import annotations\ndef f(a: int | None) -> str | None:\n    b: int | str = 1\n",
    "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from typing import Self\n",
    "import sys, asyncio\nif sys.version_info >= (3, 11):\n    asyncio.timeout(1)\n",
    "a = 1 | 2\nb = {1} | c\n",
    "'a'.removeprefix('a')\nlist[int]\n",
]


@pytest.mark.parametrize("code", OLDER_CODE)
def test_what_has_always_been_there_is_left_alone(code: str) -> None:
    assert newer_features(planted(code)[0]) == []


@pytest.fixture(scope="module")
def python39() -> str:
    if not interpreter():
        pytest.skip(f"no Python 3.9 on this machine (name one with {VARIABLE}); only the syntax trees were judged")
    return interpreter()


def imported(python: str, modules: list[str]) -> subprocess.CompletedProcess[str]:
    """Import ``modules`` from the checkout, without site-packages, and fail on any warning."""
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r})"
    script = "\n".join([path, "import importlib", *[f"importlib.import_module({module!r})" for module in modules]])
    command = [python, "-I", "-S", "-B", "-W", "error", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_real_39_imports_every_module(python39: str) -> None:
    modules = [source.module for source in JUDGED if source.path.startswith("libintercom/")]
    ended = imported(python39, modules)
    assert ended.returncode == 0, ended.stderr


def test_a_real_39_refuses_what_it_does_not_have(python39: str) -> None:
    assert imported(python39, ["tomllib"]).returncode != 0


def test_a_real_39_has_none_of_the_newer_names(python39: str) -> None:
    """The table would otherwise forbid what the library may well use."""
    names = [(module, name) for module, newer in NEWER.items() for name in newer]
    script = f"import importlib\nprint(*[n for n in {names!r} if hasattr(importlib.import_module(n[0]), n[1])])"
    ended = subprocess.run([python39, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == []
