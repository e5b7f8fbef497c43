"""Setting up: which Python is taken, what is said when there is none, and what continuous integration installs.

The scripts run with a PATH of stand-ins; nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

# What the scripts themselves need; everything else is a stand-in or absent.
TOOLS = ("bash", "dirname", "env", "id")

BASH = shutil.which("bash") or "/bin/bash"


class Machine:
    """A PATH on which only stand-ins and a few tools stand; ``said`` is what the stand-ins were called with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        for name in TOOLS:
            # A script, never a link: a stand-in written over a link would overwrite the machine's own tool.
            self._write(name, f'exec {shutil.which(name)} "$@"')

    def put(self, name: str, script: str = "exit 0") -> None:
        self._write(name, f'printf "%s %s\\n" {name} "$*" >> "{self.log}"\n{script}')

    def _write(self, name: str, script: str) -> None:
        stand_in = self.folder / name
        stand_in.write_text(f"#!{BASH}\n{script}\n", encoding="utf-8")
        stand_in.chmod(0o755)

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [BASH, str(ROOT / script)]
        settings = {"PATH": str(self.folder), **environment}
        return subprocess.run(command, env=settings, capture_output=True, text=True, check=False)

    @property
    def said(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_python_that_is_too_old_is_passed_over(machine: Machine) -> None:
    machine.put("python3", "echo '3.9.2 is older than 3.11' >&2; exit 1")
    machine.put("python3.12", "echo /found/python3.12")
    ended = machine.run(".ci/find-python")
    assert (ended.returncode, ended.stdout) == (0, "/found/python3.12\n")


def test_the_real_probe_accepts_the_python_that_runs_this(machine: Machine) -> None:
    ended = machine.run(".ci/find-python", PYTHON=sys.executable)
    assert ended.returncode == 0, ended.stderr
    assert Path(ended.stdout.strip()).is_absolute()


def test_without_a_python_it_says_what_was_tried(machine: Machine) -> None:
    machine.put("python3", "echo '3.9.2 is older than 3.11' >&2; exit 1")
    ended = machine.run(".ci/find-python")
    assert ended.returncode == 1
    assert "python3: 3.9.2 is older than 3.11" in ended.stderr
    assert "make setup PYTHON=/path/to/python3" in ended.stderr


def test_without_anything_it_says_so(machine: Machine) -> None:
    assert "nothing named python3 is on PATH" in machine.run(".ci/find-python").stderr


def test_the_chosen_python_is_the_only_one_tried(machine: Machine) -> None:
    machine.put("python3", "echo /found/python3")
    assert machine.run(".ci/find-python", PYTHON="python3.99").returncode == 1


def whole(machine: Machine) -> None:
    containers = ("docker", "dockerd", "iptables", "mmdebstrap")
    for name in ("git", "make", "strace", "cc", "systemd-tmpfiles", "ssh", "sshd", *containers):
        machine.put(name)
    # In whose time containers are tried.
    machine.put("timeout", "echo a container runs")
    machine.put("python3", "echo /found/python3")


def test_on_a_whole_machine_nothing_is_installed(machine: Machine) -> None:
    whole(machine)
    machine.put("apt-get")
    assert machine.run(".ci/run").returncode == 0
    assert "make test" in machine.said
    assert not any(line.startswith("apt-get") for line in machine.said)


@pytest.mark.parametrize(("tried", "refused"), [("echo one runs", ""), ("echo warned; echo denied; exit 1", "denied")])
def test_containers_are_tried_and_what_refused_them_is_handed_on(machine: Machine, tried: str, refused: str) -> None:
    whole(machine)
    machine.put("timeout", tried)
    machine.put("make", f'echo "refused: $INTERCOM_REFUSED_CONTAINERS" >> "{machine.log}"')
    assert machine.run(".ci/run").returncode == 0
    assert any(line.startswith("timeout ") and line.endswith("-m tests.support.lab") for line in machine.said)
    assert machine.said[-1] == f"refused: {refused}"


def test_only_what_is_missing_is_installed(machine: Machine) -> None:
    whole(machine)
    (machine.folder / "git").unlink()
    machine.put("apt-get")
    machine.put("id", "echo 0")
    assert machine.run(".ci/run").returncode == 0
    installed = [line for line in machine.said if line.startswith("apt-get")]
    assert installed == ["apt-get update -q", "apt-get install -q -y --no-install-recommends git"]


def test_only_root_installs(machine: Machine) -> None:
    whole(machine)
    (machine.folder / "git").unlink()
    machine.put("id", "echo 1000")
    machine.put("apt-get")
    ended = machine.run(".ci/run")
    assert ended.returncode == 1
    assert "missing here: git" in ended.stdout
    assert "make test" not in machine.said


def test_a_failure_of_the_tests_is_a_failure_of_the_run(machine: Machine) -> None:
    whole(machine)
    machine.put("make", "exit 2")
    assert machine.run(".ci/run").returncode == 2


def test_the_run_script_can_be_run() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert os.access(ROOT / ".ci/find-python", os.X_OK)
