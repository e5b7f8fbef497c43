"""The constant remote command and ssh's arguments; what the shells of this machine make of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from libintercom.devices.command import NO_COMMAND_STATUS, REMOTE_COMMAND, SSH_OPTIONS, ssh_arguments

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = ("sh", "dash", "bash", "zsh", "fish", "tcsh")


def test_exactly_the_four_options_and_the_end_of_options() -> None:
    assert ssh_arguments("laptop", "x") == ["ssh", *SSH_OPTIONS, "--", "laptop", "x"]
    assert SSH_OPTIONS[1::2] == (
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=2",
    )


def test_it_starts_with_an_empty_line_and_ends_with_the_status() -> None:
    assert REMOTE_COMMAND.startswith("echo; test ")
    assert REMOTE_COMMAND.endswith("; exit 44")
    assert "'" not in REMOTE_COMMAND
    assert '"' not in REMOTE_COMMAND


def run(shell: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [shell, "-c", REMOTE_COMMAND], env=environment, capture_output=True, text=True, check=False, cwd=home
    )


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def put(path: Path, text: str, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def test_without_a_command_it_ends_with_its_own_status(shell: str, tmp_path: Path) -> None:
    ended = run(shell, tmp_path)
    assert (ended.stdout, ended.returncode) == ("\n", NO_COMMAND_STATUS)


def test_the_first_that_is_there_runs_behind_its_marker(shell: str, tmp_path: Path) -> None:
    put(tmp_path / ".local/share/intercom/remote_cli.py", "print('one file')", 0o644)
    assert run(shell, tmp_path).stdout == "\nintercom-remote 1\none file\n"
    put(tmp_path / ".local/bin/intercom-remote", "#!/bin/sh\necho own script\nexit 7\n")
    ended = run(shell, tmp_path)
    assert (ended.stdout, ended.returncode) == ("\nintercom-remote 1\nown script\n", 7)


def test_the_node_command_has_a_marker_of_its_own(shell: str, tmp_path: Path) -> None:
    place = ".pi/agent/git/github.com/fitchmultz/pi-subagents/dist/pi-intercom/remote-cli.js"
    put(tmp_path / place, "console.log(1)", 0o644)
    assert run(shell, tmp_path).stdout.startswith("\nintercom-remote node\n")
