"""Each invariant has a planted bug that the explorer finds: a watch that never cries would be found here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.stateful.explorer import explore
from tests.stateful.session.planted import PLANTS
from tests.stateful.session.scenarios import BY_NAME
from tests.stateful.session.watches import WATCHES

if TYPE_CHECKING:
    from tests.stateful.planted import Plant


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_found(plant: Plant):
    with plant.in_place():
        report = explore(BY_NAME[plant.scenario], stop_after=1)
    assert [violation.invariant for violation, _trail in report.violations] == [plant.invariant], report.violations


def test_every_invariant_has_a_planted_bug():
    assert {plant.invariant for plant in PLANTS} == {watch.name for watch in WATCHES}
