"""A folder of journals for each test, and a journal in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from libintercom.session import faults
from libintercom.session.journal import Journal
from tests.support.journaled import FOREVER, private_place

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def place() -> Iterator[str]:
    """A private folder that has no folder of journals yet."""
    with private_place() as made:
        yield made


@pytest.fixture
def folder(place: str) -> str:
    return f"{place}/journals"


@pytest.fixture
def journal(folder: str) -> Iterator[Journal]:
    with Journal.open("ann", folder=folder, limits=FOREVER) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    faults.set_hook(None)
