"""Hostile places (``python -m tests.trials.environment`` takes every Python found); planted faults are seen."""

from __future__ import annotations

import sys

import pytest

from tests.trials.environment.hostile import COMPILER
from tests.trials.environment.starts import HOSTILITIES, INTERCOMCTL, Hostility, find_pythons, start_amid

WORST = HOSTILITIES[-1]
THIS = "this Python"
needs_compiler = pytest.mark.needs(COMPILER)

# Everything that is inheritable stays open in whatever is started.
KEEPS_FDS = """
import subprocess
class Careless(subprocess.Popen):
    def __init__(self, *args, **options):
        options.update(close_fds=False, pass_fds=())
        os.set_inheritable(int(args[0][-1]), True)
        super().__init__(*args, **options)
subprocess.Popen = Careless
"""
# Amid what, a fault in the client's library, one in the broker, and what is seen: one thing is handed on by each.
FAULTS = [
    (
        "programs, shells and secrets",
        "launching.clean_environment = lambda environ: dict(environ)",
        "",
        "its environment",
    ),
    ("umask 0", "", "from intercomd import settling; settling.os.umask = lambda mode: 0", "its umask is 0000"),
    ("low limits", "", "from intercomd import settling; settling._set_soft_limit = print", "its limit CPU is 900"),
    ("signals ignored and blocked", "", "import signal; signal.pthread_sigmask = print", "it blocks signals"),
    ("thousands of descriptors", KEEPS_FDS, "", "it inherited descriptors"),
]


def amid(name: str) -> Hostility:
    return next(one for one in HOSTILITIES if one.name == name)


@pytest.mark.parametrize(
    "hostility",
    [pytest.param(one, id=one.name, marks=needs_compiler if one.needs_compiler else ()) for one in HOSTILITIES],
)
def test_what_surrounds_a_client_never_reaches_its_broker(hostility: Hostility) -> None:
    assert start_amid(THIS, sys.executable, hostility).violations == []


@needs_compiler
def test_nor_when_the_command_line_starts_it() -> None:
    assert start_amid(INTERCOMCTL, "", WORST).violations == []


@needs_compiler
def test_nor_when_another_python_starts_it() -> None:
    others = {name: path for name, path in find_pythons().items() if name != THIS}
    if not others:
        pytest.skip("no other Python from 3.9 on is installed")
    oldest, path = next(iter(others.items()))
    print(f"{oldest} at {path}, one of {list(others)}")
    assert start_amid(oldest, path, WORST).violations == []


@pytest.mark.parametrize(("name", "fault", "before", "told"), FAULTS)
def test_what_is_handed_on_is_seen(name: str, fault: str, before: str, told: str) -> None:
    violations = start_amid(THIS, sys.executable, amid(name), fault=fault, before=before).violations
    assert any(told in violation for violation in violations), violations


@needs_compiler
def test_a_library_that_reaches_the_broker_is_seen() -> None:
    fault = "launching.clean_environment = lambda environ: dict(environ)"
    violations = start_amid(THIS, sys.executable, amid("a preloaded library"), fault=fault).violations
    assert any("library reached the broker" in violation for violation in violations), violations
    assert any("has something of the hostile place mapped" in violation for violation in violations), violations
