"""Hostile surroundings of a client, and the broker that it starts: marks that only a broker would leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.executables import ROOT
from tests.support.waiting import wait_until
from tests.trials.environment.lines import LINES
from tests.trials.tables import judge_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTERCOMCTL = str(Path(sys.executable).with_name("intercomctl"))
# Runs in whatever loads it and tells of it only in a broker; the client itself may well run it.
_MARK = """
with open('/proc/self/cmdline', 'rb') as file:
    if b'serve' in file.read().split(b'\\0'):
        open({mark!r}, 'a').write(__file__)
"""
_PRELOADED = """
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void leave_a_mark(void) {
    char line[4096] = {0};
    int fd = open("/proc/self/cmdline", O_RDONLY);
    long size = read(fd, line, sizeof line - 1);
    close(fd);
    for (long at = 0; at < size; at += strlen(line + at) + 1) {
        if (!strcmp(line + at, "serve")) close(open(MARK, O_CREAT | O_WRONLY, 0600));
    }
    close(open(SEEN, O_CREAT | O_WRONLY, 0600));
}
"""


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A runtime directory of its own with a short path; its broker is ended by its pid."""
    directory = f"/tmp/ice-{os.getpid()}"
    os.mkdir(directory, 0o700)
    yield directory
    record = Path(directory, "broker.pid")
    if record.exists():
        pid = int(record.read_text().split()[0])
        if b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not record.exists(), "the broker to leave")
    subprocess.run(["rm", "-r", directory], check=True)


def list_sessions(runtime: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    environ = {"PATH": os.environ["PATH"], "PI_INTERCOM_RUNTIME_DIR": runtime, **variables}
    return subprocess.run([_INTERCOMCTL, "list"], cwd=cwd, env=environ, capture_output=True, check=True)


def test_code_around_intercomctl_never_reaches_the_broker(runtime: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for name in ("msgspec", "intercomd", "structlog", "uvloop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(_MARK.format(mark=str(mark)))
    for name in ("sitecustomize.py", "usercustomize.py"):
        (tmp_path / name).write_text(_MARK.format(mark=str(mark)))
    shown = list_sessions(runtime, tmp_path, PYTHONPATH=str(tmp_path), PYTHONSTARTUP=str(tmp_path / "sitecustomize.py"))
    assert b"started intercomd" in shown.stderr
    assert not mark.exists()


def test_a_mark_is_left_where_it_would_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "sitecustomize.py").write_text(_MARK.format(mark=str(mark)))
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", "pass", "serve"], env=environ, check=True)
    assert mark.exists()


@pytest.mark.needs("cc")
def test_a_preloaded_library_stays_with_the_client(runtime: str, tmp_path: Path) -> None:
    mark, seen = tmp_path / "mark", tmp_path / "seen"
    (tmp_path / "mark.c").write_text(_PRELOADED)
    library = tmp_path / "mark.so"
    defines = [f'-DMARK="{mark}"', f'-DSEEN="{seen}"']
    subprocess.run(["cc", "-shared", "-fPIC", *defines, "-o", library, tmp_path / "mark.c"], check=True)
    shown = list_sessions(runtime, tmp_path, LD_PRELOAD=str(library), LD_LIBRARY_PATH=str(tmp_path))
    assert b"started intercomd" in shown.stderr
    assert seen.exists(), "the client itself did load it"
    assert not mark.exists()


def test_every_line_names_a_test_that_exists() -> None:
    for nodes in LINES.values():
        for node in nodes:
            path, _, name = node.partition("::")
            assert f"def {name}".rstrip() in Path(ROOT, path).read_text(encoding="utf-8"), node


def test_a_line_that_is_not_shown_is_told() -> None:
    assert judge_lines({"planted": ("a.py::test",)}, {})[1]
