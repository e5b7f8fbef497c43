"""The cut matrix, each cell a test, and its judgement shown to fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from libintercom.devices.results import DeviceResult
from libintercom.outcomes import DELIVERED, Outcome, not_sent, unknown
from tests.integration.devices import matrix
from tests.integration.devices.matrix import Tally
from tests.support.fleet import Fleet, fleet

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

    from tests.support.fleet import Recipient

pytestmark = pytest.mark.needs("ssh")


@pytest.fixture(scope="module")
def cutting() -> Iterator[tuple[Fleet, dict[str, Recipient]]]:
    with fleet(matrix.DEVICE) as made:
        device = made.devices[matrix.DEVICE]
        yield made, {
            matrix.ANSWERING: device.recipient(matrix.ANSWERING),
            matrix.SILENT: device.recipient(matrix.SILENT, answers=False),
        }


@pytest.mark.parametrize("cell", matrix.cells(), ids="-".join)
def test_what_is_said_is_true(cutting: tuple[Fleet, dict[str, Recipient]], cell: tuple[str, str, str]) -> None:
    tally = Tally()
    matrix.try_cell(*cutting, cell, tally)
    assert tally.violations == []
    assert tally.trials == 1


@pytest.mark.parametrize("number", matrix.CALLER_ENDS, ids=lambda number: number.name)
def test_a_question_of_a_killed_caller_is_retired(
    cutting: tuple[Fleet, dict[str, Recipient]], number: signal.Signals
) -> None:
    made, recipients = cutting
    tally = Tally()
    matrix.kill_caller(made, recipients[matrix.SILENT], number, tally)
    assert tally.violations == []


ACCEPTED = Outcome(outcome=DELIVERED, message_id="m", accepted=True, delivered=True, delivery_unknown=False)
UNTRUE = {
    "denied and arrived": ("login", not_sent("m", "unreachable", "r"), "", 1),
    "accepted and never arrived": ("answered", ACCEPTED, "disconnected", 0),
    "arrived twice": ("answered", ACCEPTED, "disconnected", 2),
    "unknown where nothing left": ("noise", unknown("m", "r"), "", 0),
    "certain where nobody can know": ("forwarded", not_sent("m", "unreachable", "r"), "", 0),
}


@pytest.mark.parametrize("case", UNTRUE.values(), ids=UNTRUE.keys())
def test_an_untrue_word_is_a_violation(case: tuple[str, Outcome, str, int]) -> None:
    step, outcome, ended_by, arrived = case
    tally = Tally()
    result = DeviceResult(device="laptop", target="a@laptop", outcome=outcome, sentence="", ended_by=ended_by)
    matrix.judge(tally, "planted", step, result, arrived)
    assert tally.violations
