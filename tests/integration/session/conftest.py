"""A namespace of its own for each test, with a broker that a test may end and start again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.sessions import Site, site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.daemon import Daemon


@pytest.fixture
def place() -> Iterator[Site]:
    """A namespace without a broker."""
    with site() as made:
        yield made


@pytest.fixture
def broker(place: Site) -> Iterator[Daemon]:
    """The broker of ``place``."""
    daemon = place.start_broker()
    try:
        yield daemon
    finally:
        daemon.kill()
