"""A private runtime directory with a short path, and brokers that end with their test."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import pytest

from intercomd.edges.listener.binding import bind_socket
from intercomd.edges.ownership.acquisition import acquire
from intercomd.edges.ownership.holding import Ownership
from libintercom.paths import Places, find_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def places() -> Iterator[Places]:
    parent = tempfile.mkdtemp(prefix="ico-", dir="/tmp")
    try:
        yield find_places({"PI_INTERCOM_RUNTIME_DIR": f"{parent}/r", "HOME": parent})
    finally:
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def runtime(places: Places) -> str:
    """The runtime directory, made."""
    os.mkdir(places.runtime_dir, 0o700)
    return places.runtime_dir


@pytest.fixture
def own(places: Places) -> Iterator[Callable[[], Ownership]]:
    """Become the owner in this process; let go at the end of the test."""
    owned: list[Ownership] = []

    def become() -> Ownership:
        won = acquire(places, bind_socket)
        assert isinstance(won, Ownership), won
        owned.append(won)
        return won

    yield become
    for ownership in owned:
        ownership.leave(0.0)
