"""How tests run, shown to be so: mandatory containers, the printed seed, warnings as errors, an end to every hang.

Each test runs pytest on a planted file with the project's own configuration.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

CONTAINER_TEST = "import pytest\n@pytest.mark.container\ndef test_planted(): pass\n"


def run(folder: Path, code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on ``code`` as a test of this project, with ``environment`` over the present one."""
    planted = folder / "test_planted.py"
    planted.write_text(code, encoding="utf-8")
    quiet = ["-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}"]
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", *quiet, *options, str(planted)]
    private = {"CI", "INTERCOM_TEST_SEED", "INTERCOM_REFUSED_CONTAINERS"}
    inherited = {name: value for name, value in os.environ.items() if name not in private}
    whole = {**inherited, **environment}
    return subprocess.run(command, cwd=ROOT, env=whole, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("marker", "missing"),
    [("container", "docker is not installed"), ("needs('no-such-program')", "no-such-program is not installed")],
)
def test_what_cannot_be_had_fails_in_ci_and_is_skipped_elsewhere(tmp_path: Path, marker: str, missing: str) -> None:
    code = CONTAINER_TEST.replace("container", marker)
    in_ci = run(tmp_path, code, PATH=str(tmp_path), CI="true")
    assert in_ci.returncode == 1
    assert f"CI=true makes this test mandatory, but {missing}" in in_ci.stdout
    elsewhere = run(tmp_path, code, PATH=str(tmp_path))
    assert elsewhere.returncode == 0
    assert re.search(rf"SKIPPED .*{missing}", elsewhere.stdout)


def test_containers_that_were_tried_and_refused_are_skipped_in_ci_with_what_was_said(tmp_path: Path) -> None:
    ended = run(tmp_path, CONTAINER_TEST, CI="true", INTERCOM_REFUSED_CONTAINERS="mount: permission denied")
    assert ended.returncode == 0
    assert re.search("SKIPPED .*no container runs here: mount: permission denied", ended.stdout)


def test_what_is_there_is_no_reason_to_skip(tmp_path: Path) -> None:
    ended = run(tmp_path, CONTAINER_TEST.replace("container", "needs('bash')"), CI="true")
    assert "1 passed" in ended.stdout


def test_an_unknown_marker_fails(tmp_path: Path) -> None:
    assert run(tmp_path, CONTAINER_TEST.replace("container", "contained")).returncode != 0


def test_the_seed_is_printed_and_taken_back(tmp_path: Path) -> None:
    code = "def test_planted(seed): assert seed == 7\n"
    ended = run(tmp_path, code, INTERCOM_TEST_SEED="7")
    assert ended.returncode == 0, ended.stdout
    assert "seed 7 (repeat with INTERCOM_TEST_SEED=7)" in ended.stdout
    assert run(tmp_path, code, INTERCOM_TEST_SEED="8").returncode == 1


def test_the_seed_repeats_what_hypothesis_draws(tmp_path: Path) -> None:
    code = (
        "from hypothesis import given, settings, strategies as s\n"
        "@settings(database=None, max_examples=3)\n"
        "@given(s.integers(0, 2**64))\n"
        "def test_planted(n): print('drawn', n)\n"
    )
    drawn = [
        [line for line in run(tmp_path, code, "-s", INTERCOM_TEST_SEED=seed).stdout.splitlines() if "drawn" in line]
        for seed in ("7", "7", "8")
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_warning_fails(tmp_path: Path) -> None:
    assert run(tmp_path, "import warnings\ndef test_planted(): warnings.warn('x')\n").returncode == 1


HANGING_TEST = "import threading\na = threading.Lock()\na.acquire()\ndef test_planted(): a.acquire(timeout=60)\n"


def test_a_hang_is_a_failure_and_the_run_goes_on(tmp_path: Path) -> None:
    ended = run(tmp_path, HANGING_TEST + "def test_next(): pass\n", INTERCOM_TEST_TIMEOUT_S="0.3")
    assert ended.returncode == 1
    assert "test_planted took longer than 0.3 s" in ended.stdout
    assert "1 failed, 1 passed" in ended.stdout


def test_a_hang_in_a_fixture_is_a_failure_too(tmp_path: Path) -> None:
    fixture = HANGING_TEST.replace("def test_planted()", "import pytest\n@pytest.fixture\ndef hangs()")
    ended = run(tmp_path, fixture + "def test_planted(hangs): pass\n", INTERCOM_TEST_TIMEOUT_S="0.3")
    assert "test_planted took longer than 0.3 s" in ended.stdout


HANGING_EXAMPLE = """
import threading
from hypothesis import given, settings, strategies as s
a = threading.Lock()
a.acquire()
@settings(database=None)
@given(s.integers(0, 2**64))
def test_planted(n): a.acquire(timeout=60)
def test_next(): pass
"""
HANGING_END = """
import threading
from concurrent.futures import ThreadPoolExecutor
over = threading.Event()
def test_planted():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(over.wait, 60).result()
def test_next(): over.set()
"""


@pytest.mark.parametrize("code", [HANGING_EXAMPLE, HANGING_END])
def test_a_hang_is_not_tried_again_and_neither_is_its_end_waited_for(tmp_path: Path, code: str) -> None:
    limits = {"INTERCOM_TEST_TIMEOUT_S": "0.3", "INTERCOM_TEST_AGAIN_S": "0.3"}
    ended = run(tmp_path, code, "-o", "faulthandler_timeout=30", **limits)
    assert "test_planted took longer than 0.3 s" in ended.stdout
    assert "1 failed, 1 passed" in ended.stdout


def test_a_hang_that_nothing_interrupts_ends_the_run_with_a_stack(tmp_path: Path) -> None:
    ended = run(tmp_path, HANGING_TEST, "-o", "faulthandler_timeout=0.5")
    assert ended.returncode != 0
    assert "test_planted.py" in ended.stdout + ended.stderr
    assert "Timeout" in ended.stdout + ended.stderr


def test_no_test_reaches_the_sessions_of_the_user(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "def test_planted():\n"
        "    assert os.environ['PI_INTERCOM_RUNTIME_DIR'].startswith('/tmp/ict-')\n"
        "    assert os.stat(os.environ['PI_INTERCOM_RUNTIME_DIR']).st_mode & 0o77 == 0\n"
        "    assert 'PI_INTERCOM_PEER_ID' not in os.environ\n"
    )
    ended = run(tmp_path, code, PI_INTERCOM_RUNTIME_DIR="/tmp/elsewhere", PI_INTERCOM_PEER_ID="a")
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_private_directories_are_removed(tmp_path: Path, workers: str) -> None:
    code = (
        "import os, pathlib\n"
        "def test_planted(): pathlib.Path(os.environ['SEEN']).write_text(os.environ['PI_INTERCOM_RUNTIME_DIR'])\n"
    )
    seen = tmp_path / "seen"
    ended = run(tmp_path, code, "-n", workers, SEEN=str(seen))
    assert ended.returncode == 0, ended.stdout
    assert not Path(seen.read_text(encoding="utf-8")).parent.exists()
