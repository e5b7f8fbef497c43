"""Who may import whom: the rules hold, and each of them is shown to fail when it is broken.

The rules stand in .importlinter. A breach is planted in a copy of the packages, one for each contract and kind of
breach; a module that nobody placed is a breach too.
"""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.architecture.sources import PACKAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

# What import-linter reads beside the packages.
RULES = (".importlinter", "tests/__init__.py", "tests/architecture/__init__.py", "tests/architecture/contracts.py")

# (contract, file, import that breaks it). A file that does not exist is a module that nobody placed.
BREACHES = [
    ("pure", "libintercom/wire/frames.py", "import socket"),
    ("pure", "libintercom/wire/frames.py", "from os import path"),
    ("pure", "intercomd/core/router.py", "import time"),
    ("pure", "intercomd/core/router.py", "import asyncio"),
    ("pure", "libintercom/targets.py", "import random"),
    ("session-pure", "libintercom/session/inbox.py", "import time"),
    ("session-pure", "libintercom/session/receipts.py", "from libintercom import identity"),
    ("session-layers", "libintercom/session/entries.py", "from libintercom.session import inbox"),
    ("journal-layers", "libintercom/session/journal/schema.py", "from libintercom.session.journal import writer"),
    ("journal-layers", "libintercom/session/journal/stray.py", "import os"),
    ("wire-only", "libintercom/wire/frames.py", "from libintercom import identity"),
    ("wire-only", "libintercom/wire/frames.py", "import msgspec"),
    ("core-only", "intercomd/core/router.py", "from libintercom import texts"),
    ("core-only", "intercomd/core/router.py", "from intercomd import ports"),
    ("core-only", "intercomd/core/router.py", "import msgspec"),
    ("devices-pure", "libintercom/devices/conversation.py", "import time"),
    ("devices-pure", "libintercom/devices/judging.py", "from libintercom.devices import transport"),
    ("devices-layers", "libintercom/devices/conversation.py", "from libintercom.devices import openssh"),
    ("devices-layers", "libintercom/devices/stray.py", "import os"),
    ("remote-only", "remote/entry.py", "import rich"),
    ("remote-only", "remote/entry.py", "from intercomctl import output"),
    ("remote-layers", "remote/caller.py", "from remote import messages"),
    ("remote-layers", "remote/stray.py", "import os"),
    ("libintercom-only", "libintercom/client.py", "import rich"),
    ("libintercom-only", "libintercom/client.py", "from intercomd.core import router"),
    ("intercomd-only", "intercomd/serving.py", "from intercomctl import output"),
    ("intercomd-only", "intercomd/settings.py", "import psutil"),
    ("ports-only", "intercomd/ports.py", "from intercomd.edges import clock"),
    ("shell-only", "intercomd/shell.py", "from intercomd.edges import clock"),
    ("shell-only", "intercomd/shell.py", "from intercomd import settings"),
    ("edges-only", "intercomd/edges/clock.py", "from intercomd import shell"),
    ("edges-only", "intercomd/edges/clock.py", "import pydantic"),
    ("commands-only", "intercomctl/commands/send.py", "from intercomd.core import router"),
    ("commands-only", "intercomctl/commands/send.py", "import psutil"),
    ("intercomctl-only", "intercomctl/output.py", "import intercomd"),
    ("adapters-only", "intercom_adapters/__init__.py", "import intercomd"),
    ("adapters-only", "intercom_adapters/__init__.py", "from intercomctl import output"),
    ("adapters-only", "intercom_adapters/mcp/server.py", "import msgspec"),
    ("adapters-layers", "intercom_adapters/mcp/tool.py", "from intercom_adapters.mcp import actions"),
    ("adapters-layers", "intercom_adapters/mcp/stray.py", "import os"),
    ("libintercom-layers", "libintercom/identity.py", "from libintercom import client"),
    ("libintercom-layers", "libintercom/client.py", "from libintercom import aio"),
    ("libintercom-layers", "libintercom/stray.py", "import os"),
    ("intercomd-layers", "intercomd/edges/clock.py", "from intercomd import shell"),
    ("intercomd-layers", "intercomd/ports.py", "from intercomd import settings"),
    ("intercomd-layers", "intercomd/stray.py", "import os"),
    ("edges-layers", "intercomd/edges/clock.py", "from intercomd.edges import ids"),
    ("edges-layers", "intercomd/edges/stray.py", "import os"),
    ("core-layers", "intercomd/core/roster.py", "from intercomd.core import router"),
    ("core-layers", "intercomd/core/stray.py", "import re"),
    ("intercomctl-layers", "intercomctl/output.py", "from intercomctl import main"),
    ("intercomctl-layers", "intercomctl/stray.py", "import os"),
    ("commands-independent", "intercomctl/commands/send.py", "from intercomctl.commands import ask"),
]


def contracts() -> list[str]:
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter")
    prefix = "importlinter:contract:"
    return [section.removeprefix(prefix) for section in rules.sections() if section.startswith(prefix)]


def lint(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Judge the tree at ``folder``, which comes before this checkout on the path."""
    script = "import sys; sys.path.insert(0, ''); from importlinter.cli import lint_imports_command as run; run()"
    command = [sys.executable, "-P", "-c", script, "--no-cache", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and the rules."""
    ignore = shutil.ignore_patterns("__pycache__")
    for package in (*PACKAGES, "remote"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    for name in RULES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_rule_holds() -> None:
    ended = lint(ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_copy_without_a_breach_holds(tree: Path) -> None:
    ended = lint(tree)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(("contract", "file", "statement"), BREACHES)
def test_a_breach_is_found(tree: Path, contract: str, file: str, statement: str) -> None:
    target = tree / file
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    target.write_text(f"{before}\n{statement}\n", encoding="utf-8")
    ended = lint(tree, "--contract", contract)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "BROKEN" in ended.stdout, ended.stdout


def test_every_contract_has_a_breach() -> None:
    assert {contract for contract, _file, _statement in BREACHES} == set(contracts())
