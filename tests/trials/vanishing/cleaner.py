"""The cleaner of temporary files at work: under a living broker, after a killed one, and while brokers come and go.

Owns running the real ``systemd-tmpfiles --clean`` on a private folder that stands for /tmp, with an age short enough
to wait for, and the judgement. A folder beside the broker's shows each time that the cleaner did clean.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from libintercom.client import Client
from libintercom.errors import IntercomError
from libintercom.profile import Profile
from tests.support.waiting import wait_until
from tests.trials.namespaces import namespace
from tests.trials.vanishing.stage import Trial, stage
from tests.trials.witness.eyes import watching
from tests.trials.witness.judgement import find_overlaps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.trials.namespaces import Namespace

CLEANER = "systemd-tmpfiles"
# tmpfiles.d(5): whole seconds. With 0 everything is old, which is harsher than any real configuration.
_AGE_S = 1
_LEAVING = "--idle-exit-s 0.05"
# bars.md section 4.
_ANSWER_S = 10.0


def clean(folder: str, age_s: int) -> None:
    """Remove what is older than ``age_s`` below ``folder``, as the system's timer does for /tmp."""
    with _configuration(folder, age_s) as path:
        subprocess.run([CLEANER, "--clean", path], check=True)


@contextlib.contextmanager
def _configuration(folder: str, age_s: int) -> Iterator[str]:
    path = f"{folder}.conf"
    Path(path).write_text(f"e {folder} - - - {age_s}s\n", encoding="ascii")
    try:
        yield path
    finally:
        os.unlink(path)


def _make_old(folder: str) -> None:
    """Wait until nothing below is younger than the age; nobody may touch it meanwhile."""

    def is_old() -> bool:
        paths = [folder, *(entry.path for entry in os.scandir(folder))]
        newest = max(max(seen.st_mtime, seen.st_atime, seen.st_ctime) for seen in map(os.lstat, paths))
        return time.time() - newest > _AGE_S + 0.1

    wait_until(is_old, f"{folder} to be older than {_AGE_S} s")


def _leave_beside(own: Namespace) -> str:
    """A file that the cleaner must take; its folder's path."""
    beside = f"{own.parent}/beside"
    os.mkdir(beside)
    Path(f"{beside}/old").touch()
    return beside


def clean_under_a_living_broker(before: str = "") -> Trial:
    """The cleaner leaves a living broker's directory alone; ``before`` may plant a broker that does not say so."""
    trial = Trial("cleaned under a living broker")
    with stage(before=before) as set_up:
        beside, directory = _leave_beside(set_up.own), set_up.own.directory
        _make_old(beside)
        _make_old(directory)
        names = _names(directory)
        clean(set_up.own.parent, _AGE_S)
        if os.path.exists(beside):
            trial.violations.append("the cleaner did not clean")
        lost = names - _names(directory)
        trial.became = f"{len(names)} files, lost {sorted(lost)}"
        if lost:
            trial.violations.append(f"{trial.name}: it took {sorted(lost)}")
        if set_up.answering() != set_up.broker.pid or not set_up.is_on_record():
            trial.violations.append(f"{trial.name}: the broker is not found any more")
        if not set_up.is_resident_served():
            trial.violations.append(f"{trial.name}: the resident is not served")
    return trial


def clean_after_a_killed_broker() -> Trial:
    """What a killed broker left is taken, and the next one starts as if there had been none."""
    trial = Trial("cleaned after a killed broker")
    with stage() as set_up:
        set_up.broker.kill()
        _make_old(set_up.own.directory)
        clean(set_up.own.parent, _AGE_S)
        trial.became = f"left {sorted(_names(set_up.own.directory))}"
        with set_up.join("next", spawn=True):
            pass
    return trial


def _names(directory: str) -> set[str]:
    return set(os.listdir(directory)) if os.path.exists(directory) else set()


def clean_while_brokers_come_and_go(starts: int, seed: int) -> Trial:
    """A cleaner that finds everything old runs all the time; each starter is answered, and no two brokers serve."""
    trial = Trial(f"cleaned all the time during {starts} starts")
    # In a folder of its own: the witnesses' files and the executable stand beside it.
    with namespace(folder="tmp") as own, contextlib.ExitStack() as stack:
        own.use_executable(options=_LEAVING)
        seen = stack.enter_context(watching(own, Path(own.parent), seed))
        cleaner = stack.enter_context(_cleaning(f"{own.parent}/tmp"))
        stack.enter_context(own.entered())
        for _ in range(starts):
            _start(own, trial)
        runs = cleaner.poll()
        trial.became = f"brokers {{owners}}, slowest answer {trial.took_s:.2f} s"
        if runs is not None:
            trial.violations.append(f"{trial.name}: the cleaner ended with status {runs}")
    trial.became = trial.became.format(owners=seen.owners)
    trial.violations += [f"{trial.name}: {overlap}" for overlap in find_overlaps(seen)]
    return trial


def _start(own: Namespace, trial: Trial) -> None:
    begun = time.monotonic()
    try:
        with Client.join(Profile(cwd="/", model="none"), places=own.places):
            pass
    except IntercomError as error:
        trial.violations.append(f"{trial.name}: a starter was told: {error}")
    took_s = time.monotonic() - begun
    trial.took_s = max(trial.took_s, took_s)
    if took_s > _ANSWER_S:
        trial.violations.append(f"{trial.name}: a starter waited {took_s:.1f} s")
    own.wait_empty()


@contextlib.contextmanager
def _cleaning(folder: str) -> Iterator[subprocess.Popen[bytes]]:
    """The cleaner, again and again, until the end."""
    with _configuration(folder, 0) as path:
        loop = ["sh", "-c", 'while :; do "$0" --clean "$1" || exit; done', CLEANER, path]
        # Killed with the loop, the last cleaner may find its configuration gone, and says so.
        with subprocess.Popen(loop, stderr=subprocess.DEVNULL) as cleaner:
            try:
                yield cleaner
            finally:
                cleaner.kill()
