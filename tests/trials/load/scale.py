"""How much each trial does: in full by the command, reduced in ``make test``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Counts and sizes. ``pair_messages`` a run of the pair; ``greeds`` of the kinds of greed."""

    pair_messages: int
    flood_mb: int
    flood_s: float
    half_frames: int
    frame_s: float
    strangers: int
    passers_by: int
    crowd: int
    hostile_frames: int
    soak_s: float
    greeds: int
    # Whether times are judged, on processors kept for it. Among other tests, on a machine that may be busy with others,
    # they are only said; counts, memory and descriptors are judged always.
    is_timed: bool = True
    seed: int = 0


# stage 2 asks for 200 MB, 10,000 sessions; the rest is as long as a figure needs to be steady.
FULL = Scale(
    pair_messages=8_000,
    flood_mb=200,
    flood_s=5.0,
    half_frames=2_000,
    frame_s=4.0,
    strangers=400,
    passers_by=10_000,
    crowd=10_000,
    hostile_frames=200,
    soak_s=60.0,
    greeds=99,
)
QUICK = Scale(
    pair_messages=150,
    flood_mb=8,
    flood_s=0.2,
    half_frames=70,
    frame_s=1.5,
    strangers=80,
    passers_by=200,
    crowd=200,
    hostile_frames=8,
    soak_s=0.6,
    greeds=1,
    is_timed=False,
)
