"""A running broker for each test, on the loop that serves by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.daemon import Daemon, running_daemon

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A broker that does not leave by itself while a test runs."""
    with running_daemon("--idle-exit-s", "60") as running:
        yield running
