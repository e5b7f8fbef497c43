"""The MCP inspector's command line: finding it, installing it, and one call through it.

Owns the pinned version, where it is installed and how it is run. Does not own what is called nor what must come back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# The one this trial was written against; a newer one may print otherwise.
PACKAGE = "@modelcontextprotocol/inspector@2.12.0"
# Beside the virtual environment's own programs, so that `make clean` takes it away.
FOLDER = Path(sys.prefix) / "inspector"
PROGRAM = FOLDER / "node_modules" / ".bin" / "mcp-inspector"
SERVER = str(Path(sys.executable).with_name("intercom-mcp"))
# It starts two programs and one of them loads slowly.
_DEADLINE_S = 120.0


class Unavailable(Exception):
    """The inspector cannot be had here; the words say why."""


@dataclass(frozen=True)
class Answer:
    """What it printed; ``value`` is the JSON of its standard output, None when that was none."""

    status: int
    value: Any
    err: str


def missing() -> str:
    """Why the inspector cannot be run without installing it first; "" when it can."""
    if shutil.which("node") is None:
        return "node is not installed"
    return "" if PROGRAM.exists() else f"{PACKAGE} is not installed; `make inspector` installs it"


def install() -> None:
    """Install it from npm, once.

    Raises:
        Unavailable: there is no npm, or it could not install.

    """
    if not missing():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    FOLDER.mkdir(exist_ok=True)
    command = [npm, "install", "--prefix", str(FOLDER), "--no-fund", "--no-audit", "--ignore-scripts", PACKAGE]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ended.returncode or missing():
        raise Unavailable(f"npm could not install {PACKAGE}: {ended.stderr.strip()[-400:]}")


def inspect(environment: Mapping[str, str], *words: str) -> Answer:
    """Have it start a server in this environment and do what ``words`` say."""
    variables = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
    command = [str(PROGRAM), "--cli", *variables, SERVER, *words]
    ended = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "HOME": environment["HOME"]},
        cwd=environment["HOME"],
        timeout=_DEADLINE_S,
    )
    try:
        value = json.loads(ended.stdout)
    except ValueError:
        value = None
    return Answer(ended.returncode, value, ended.stderr)


def call(environment: Mapping[str, str], **arguments: str) -> Answer:
    """Have it call the tool."""
    pairs = [part for name, value in arguments.items() for part in ("--tool-arg", f"{name}={value}")]
    return inspect(environment, "--method", "tools/call", "--tool-name", "intercom", *pairs)
