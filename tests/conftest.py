"""How every test runs: away from the user's own sessions, with a seed that is printed and can be given back.

Owns the environment of a run, the hypothesis profiles, the time a test may take and the rule for tests that need a
program or a container engine. Does not own fixtures of one kind of test: those stand in tests/support.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.support import lab

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from types import FrameType

IS_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# Set by continuous integration where it installed an engine, tried it, and no container runs: what the attempt said.
REFUSED_CONTAINERS = "INTERCOM_REFUSED_CONTAINERS"

# Give the printed seed back through this variable to repeat a run.
SEED_VARIABLE = "INTERCOM_TEST_SEED"

# What a developer's shell may carry and no test may inherit: it would reach a real broker or real settings, or (the
# last one) make programs write at once that hold their output back for everybody else.
PRIVATE_PREFIXES = ("PI_INTERCOM_", "PI_CODING_AGENT_", "PYTHONUNBUFFERED")

# One seed for everything random: hypothesis and the tests' own generators. Continuous integration repeats itself.
CI_SEED = 20260101

# Longer than any test takes on a busy two-core machine. The end of a hang is a failure with a stack and a name; what
# cannot be interrupted is ended by pytest's own faulthandler_timeout, which is longer than a test's set-up, call and
# tear-down may take together, and ends the whole run.
TIMEOUT_S = float(os.environ.get("INTERCOM_TEST_TIMEOUT_S", "240"))
# What cleans up after an interrupted test may wait for ever too (the end of a block joins its threads, waits for its
# program), so it is interrupted again; an orderly end of a broker takes less.
AGAIN_S = float(os.environ.get("INTERCOM_TEST_AGAIN_S", "20"))


class TookTooLong(BaseException):
    """The end of a hang.

    No failure as ``pytest.fail`` makes it: hypothesis takes that for a falsified example, and tries it again.
    """


hypothesis.settings.register_profile("local", print_blob=True, deadline=None)
hypothesis.settings.register_profile("ci", parent=hypothesis.settings.get_profile("local"), derandomize=True)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed and cut the run off from the user's own sessions."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A run in the background of a script; the programs under test would inherit it and never be interrupted.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.settings.load_profile("ci" if IS_CI else "local")
    chosen = os.environ.get(SEED_VARIABLE) or (CI_SEED if IS_CI else random.SystemRandom().randrange(2**32))
    # Through the environment, so that xdist's workers use the same one.
    os.environ[SEED_VARIABLE] = str(int(chosen))
    if not IS_CI and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = os.environ[SEED_VARIABLE]
    _isolate(config)


def pytest_report_header() -> str:
    return f"intercom: seed {os.environ[SEED_VARIABLE]} (repeat with {SEED_VARIABLE}={os.environ[SEED_VARIABLE]})"


def _isolate(config: pytest.Config) -> None:
    for name in [name for name in os.environ if name.startswith(PRIVATE_PREFIXES)]:
        del os.environ[name]
    # Short, since a socket path has 100 bytes at most and some systems have long temporary directories.
    private = tempfile.mkdtemp(prefix="ict-", dir="/tmp")
    config.add_cleanup(lambda: shutil.rmtree(private, ignore_errors=True))
    runtime = f"{private}/run"
    os.mkdir(runtime, 0o700)
    os.environ["PI_INTERCOM_RUNTIME_DIR"] = runtime
    os.environ["XDG_STATE_HOME"] = f"{private}/state"
    os.environ["PI_CODING_AGENT_DIR"] = f"{private}/agent"


@pytest.fixture
def seed() -> int:
    """The seed of this run, as printed in its header."""
    return int(os.environ[SEED_VARIABLE])


@pytest.fixture(scope="session")
def engine() -> Iterator[lab.Engine]:
    """A container engine that answers; ours is stopped at the end, a foreign one is left alone."""
    with lab.engine() as found:
        yield found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Skip a test where what it needs cannot be had, or fail it where it is mandatory."""
    for needed in item.iter_markers("needs"):
        _require(_missing_programs(needed.args))
    if item.get_closest_marker("container") is not None:
        if REFUSED_CONTAINERS in os.environ:
            pytest.skip(f"no container runs here: {os.environ[REFUSED_CONTAINERS]}")
        _require(lab.missing_programs())
    with _time_limit(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    with _time_limit(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    with _time_limit(item):
        return (yield)


def _missing_programs(names: Sequence[str]) -> str:
    absent = [name for name in names if shutil.which(name) is None]
    return f"{', '.join(absent)} is not installed" if absent else ""


def _require(missing: str) -> None:
    if missing and IS_CI:
        pytest.fail(f"CI=true makes this test mandatory, but {missing}", pytrace=False)
    if missing:
        pytest.skip(missing)


@contextmanager
def _time_limit(item: pytest.Item) -> Iterator[None]:
    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise TookTooLong(f"{item.nodeid} took longer than {TIMEOUT_S:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
