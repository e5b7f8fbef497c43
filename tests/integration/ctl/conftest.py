"""One broker for the commands' tests, and the command line against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ctl import Ctl
from tests.support.daemon import running_daemon, runtime_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.daemon import Daemon


@pytest.fixture(scope="module")
def broker() -> Iterator[Daemon]:
    """A broker that stays; tests of one module share it and leave no session behind."""
    with running_daemon("--idle-exit-s", "600") as daemon:
        yield daemon


@pytest.fixture
def ctl(broker: Daemon) -> Ctl:
    return Ctl(broker.directory)


@pytest.fixture
def alone() -> Iterator[Ctl]:
    """A namespace in which no broker runs; one that a command starts is stopped at the end."""
    with runtime_directory() as directory:
        started = Ctl(directory, PI_INTERCOM_IDLE_EXIT_S="30")
        yield started
        started.run("broker", "stop")
