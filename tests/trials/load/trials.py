"""Every trial of load by its name, in the order in which the command runs them.

Owns the list, and that a trial which cannot go on is a violation and not the end of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.trials.load import crowds, flood, greed, halves, hostility, promises, soak, strangers
from tests.trials.load.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trials.load.scale import Scale

TRIALS: dict[str, Callable[[Report, Scale], None]] = {
    "stopped-reader": flood.stop_reading,
    "stalled-reader": flood.never_read,
    "promises": promises.keep_promises,
    "greed": greed.be_greedy,
    "nonsense": greed.talk_nonsense,
    "half-frames": halves.hold_halves,
    "slow-clients": halves.be_slow,
    "strangers": strangers.crowd_the_door,
    "descriptors": strangers.run_out,
    "passing": crowds.pass_through,
    "crowd": crowds.be_many,
    "hostile": hostility.be_hostile,
    "soak": soak.soak,
}


def run(name: str, scale: Scale, plant: str = "") -> Report:
    """One trial; its report. ``plant`` is a folder with a fault for its broker."""
    report = Report(name, plant, is_timed=scale.is_timed)
    try:
        TRIALS[name](report, scale)
    except (AssertionError, OSError) as error:
        report.violate(f"it could not go on: {type(error).__name__}: {error}")
    return report
