"""The server's command line and how the program ends, without a broker."""

from __future__ import annotations

import subprocess
import sys

import pytest

from intercom_adapters.mcp.program import PROGRAM
from libintercom.asking import MAX_TIMEOUT_S
from libintercom.version import __version__

# The program with the protocol's package out of reach.
WITHOUT = "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n, *a: None if n == 'mcp' else f(n, *a)\n"
RUN = "from intercom_adapters.mcp.program import main; main()"


def run(*words: str, script: str = RUN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *words], input="", capture_output=True, text=True, check=False, cwd="/"
    )


def test_its_version_and_help() -> None:
    assert run("--version").stdout == f"{PROGRAM} {__version__}\n"
    asked = run("--help").stdout
    assert all(option in asked for option in ("--session-id", "--name", "--model", "--ask-timeout"))


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", str(MAX_TIMEOUT_S + 1), "soon"])
def test_a_wait_that_is_none_is_refused(seconds: str) -> None:
    ended = run("--ask-timeout", seconds)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--ask-timeout" in ended.stderr


def test_without_the_protocols_package_it_says_how_to_get_it() -> None:
    ended = run(script=WITHOUT + RUN)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "intercom-mcp: the package mcp is not installed beside this program. Install it: pip install 'intercomd[mcp]'\n"
    )
