"""Faults put into the programs that are killed: each must be seen, or the judgement is blind.

Owns trying each planted fault until it is seen or many runs have passed. Does not own the faults (``planted``,
``broker_life``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.trials.crash import broker_life, planted, room
from tests.trials.crash.broker_lane import play_brokers
from tests.trials.crash.lanes import Told, play
from tests.trials.crash.session_lane import play_sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Whether a kill meets a fault depends on where it falls; most are met within twenty.
_MOST_RUNS = 600
_ROOM_FAULT, _ROOM_SEEN_AS = "offer before checkpoint", "was offered and is not stored"


FAULTS = (*planted.SEEN_AS, *broker_life.SEEN_AS)


def try_all(
    seed: int, lanes: int, say: Callable[[str], object], *, has_room: bool, chosen: Sequence[str] = FAULTS
) -> list[str]:
    """Every chosen fault; the violations are those that nobody saw."""
    unseen = []
    for lane, faults in ((play_sessions, planted.SEEN_AS), (play_brokers, broker_life.SEEN_AS)):
        for fault, seen_as in faults.items():
            if fault not in chosen:
                continue
            told: Told = play(lane, _MOST_RUNS, seed, lanes, planted=fault, seen_as=seen_as)
            found = next((violation for violation in told.violations if seen_as in violation), "")
            say(f"planted: {fault}: {f'seen after {told.runs} runs' if found else 'NOT SEEN'}")
            unseen += [] if found else [f"the judgement is blind to: {fault} ({told.violations[:3]})"]
    if has_room:
        found_in_room = room.perform(room.FULL, _ROOM_FAULT)["violations"]
        is_seen = any(_ROOM_SEEN_AS in violation for violation in found_in_room)
        say(f"planted: {_ROOM_FAULT}, without room: {'seen' if is_seen else 'NOT SEEN'}")
        unseen += [] if is_seen else [f"the judgement is blind to: {_ROOM_FAULT} without room ({found_in_room[:3]})"]
    return unseen
