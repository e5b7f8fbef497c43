"""No test outside tests/integration sleeps: not by the linter's rule, which is shown to close, nor around it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT, sources

# The waiting loop, and the one folder whose programs poll real processes.
SLEEPING_PLACES = ("tests/support/waiting.py", "tests/integration/")

# Another name for the rule would be a way around it.
WAYS_AROUND = ("noqa: TID251", "Event().wait(", "select.select([], [], []")


def findings(code: str, path: str) -> str:
    """What ruff says about ``code`` as if it stood at ``path``."""
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID251", "--stdin-filename", path, "-"]
    ended = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, check=False)
    assert not ended.stderr, ended.stderr
    return ended.stdout


SLEEPS = ["import time\ntime.sleep(1)\n", "from time import sleep\nsleep(1)\n", "import asyncio\nasyncio.sleep(1)\n"]


@pytest.mark.parametrize("code", SLEEPS)
@pytest.mark.parametrize("folder", ["unit", "stateful", "conformance", "architecture", "support"])
def test_the_linter_finds_a_sleep(folder: str, code: str) -> None:
    assert "TID251" in findings(code, f"tests/{folder}/test_planted.py")


@pytest.mark.parametrize("path", ["tests/integration/test_planted.py", "tests/support/waiting.py", "libintercom/a.py"])
def test_the_linter_allows_waiting_where_it_belongs(path: str) -> None:
    assert "TID251" not in findings(SLEEPS[0], path)


def test_no_test_goes_around_the_rule() -> None:
    judged = [source for source in sources("tests") if not source.path.startswith(SLEEPING_PLACES)]
    own = "tests/architecture/test_sleeps.py"
    assert [s.path for s in judged if s.path != own and any(way in s.text for way in WAYS_AROUND)] == []
