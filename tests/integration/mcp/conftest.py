"""One broker for the tool's tests, and the environment of its servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ctl import Ctl
from tests.support.daemon import running_daemon

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
