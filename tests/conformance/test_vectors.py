"""Every vector on everything it can run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.runs import LiveBrokers, pairs, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.catalogue import Vector


@pytest.fixture(scope="module")
def brokers() -> Iterator[LiveBrokers]:
    with LiveBrokers() as started:
        yield started


def name(value: Vector | str) -> str:
    return value if isinstance(value, str) else value.label


@pytest.mark.parametrize(("vector", "target"), pairs(), ids=name)
def test_vector(vector: Vector, target: str, brokers: LiveBrokers):
    assert run(vector, target, brokers) > 0
