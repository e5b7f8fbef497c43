"""Both failure tables, each row over a real ssh connection; and a row's judgement shown to fail."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tests.integration.devices import rows
from tests.support.fleet import Fleet, fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.needs("ssh")


@pytest.fixture(scope="module")
def devices() -> Iterator[Fleet]:
    with fleet(rows.DEVICE, "empty") as made:
        rows.populate(made)
        yield made


@pytest.mark.parametrize("row", rows.ROWS, ids=lambda row: f"{row.words[0]}: {row.name}")
def test_a_row(devices: Fleet, row: rows.Row) -> None:
    assert rows.try_row(devices, row) == []


@pytest.mark.parametrize("change", [{"said": "Not sent to desk: …"}, {"status": 3}, {"arrived": 7}], ids=str)
def test_a_wrong_row_is_found(devices: Fleet, change: dict) -> None:
    row = dataclasses.replace(rows.MESSAGES[0], **change)
    assert len(rows.try_row(devices, row)) == 1
