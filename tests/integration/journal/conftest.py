"""Where files stand that only have to survive a kill, not a loss of power."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = "/dev/shm"


@pytest.fixture(scope="session")
def quick_place() -> str:
    """A kill takes nothing from the kernel, so memory does; hundreds of real synchronisations would take minutes."""
    return MEMORY if os.access(MEMORY, os.W_OK) else tempfile.gettempdir()


@pytest.fixture(scope="module")
def quick_path(quick_place: str) -> Iterator[Path]:
    made = tempfile.mkdtemp(prefix="ijq-", dir=quick_place)
    yield Path(made)
    shutil.rmtree(made, ignore_errors=True)
