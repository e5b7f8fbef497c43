"""What each program loads before it works: modules that cost start-up time, or that a phase must do without.

Each row says which import is judged and what it must not bring. Times are measured in bench/, never here.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# A blocking client is to cost a few times a bare interpreter; each of these alone costs as much as that or more.
SLOW = {
    "argparse",
    "asyncio",
    "dataclasses",
    "email",
    "inspect",
    "logging",
    "pathlib",
    "shutil",
    "ssl",
    "subprocess",
    "tempfile",
    "typing",
    "uuid",
}

# Nothing installed may be loaded by the library, nor by a candidate broker that has not yet won the start: a hundred
# starters at once would load it a hundred times for one winner.
INSTALLED = {"click", "msgspec", "psutil", "pydantic", "pydantic_settings", "rich", "structlog", "typer", "uvloop"}

# asyncio is the asyncio client's own; it brings these with it.
ASYNCIO_BRINGS = {"asyncio", "dataclasses", "inspect", "logging", "ssl", "subprocess", "typing"}

# The import -> modules it must not load.
FORBIDDEN = {
    "libintercom": SLOW | INSTALLED,
    "libintercom.errors": SLOW | INSTALLED,
    "libintercom.version": SLOW | INSTALLED,
    "libintercom.wire.codes": SLOW | INSTALLED,
    "libintercom.wire.frames": SLOW | INSTALLED,
    "libintercom.wire.messages": SLOW | INSTALLED,
    "libintercom.wire.connection": SLOW | INSTALLED,
    "libintercom.identity": SLOW | INSTALLED,
    "libintercom.targets": SLOW | INSTALLED,
    "libintercom.texts": SLOW | INSTALLED,
    "libintercom.paths": SLOW | INSTALLED,
    "libintercom.endpoint": SLOW | INSTALLED,
    "libintercom.starting": SLOW | INSTALLED,
    "libintercom.client": SLOW | INSTALLED,
    "libintercom.session.journal": SLOW | INSTALLED,
    "libintercom.aio": (SLOW | INSTALLED) - ASYNCIO_BRINGS,
    "intercomd": SLOW | INSTALLED,
    "intercomd.__main__": SLOW | INSTALLED,
    # All that a candidate decides with; what a winner needs comes with intercomd.serving.
    "intercomd.candidate": (SLOW | INSTALLED) - {"typing"},
    # `list` and `send` go straight to their work.
    "intercomctl.__main__": INSTALLED | {"asyncio"},
    "intercomctl.commands.list": INSTALLED | {"asyncio"},
    "intercomctl.commands.send": INSTALLED | {"asyncio"},
    # typer 0.28 is the command line's framework; 0.29 would bring pydantic.
    "intercomctl.main": {"asyncio", "msgspec", "psutil", "pydantic", "pydantic_settings", "structlog", "uvloop"},
}


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after ``statement``."""
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.split())


@pytest.mark.parametrize("program", FORBIDDEN)
def test_it_loads_nothing_forbidden(program: str) -> None:
    assert loaded_by(f"import {program}") & FORBIDDEN[program] == set()


def test_a_forbidden_module_would_be_seen() -> None:
    assert {"dataclasses", "inspect"} <= loaded_by("import dataclasses") & SLOW
    assert loaded_by("import msgspec") & INSTALLED == {"msgspec"}


def test_a_bare_interpreter_loads_none_of_them() -> None:
    """Otherwise the table would say nothing about our own imports."""
    assert loaded_by("pass") & (SLOW | INSTALLED) == set()
