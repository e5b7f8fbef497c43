"""One broker after another: the last session leaves, and clients come just when the broker goes.

Owns the rhythm and the judgement. For every client that connected: it ends registered and is served from then on, or
it is told (its connection ends unanswered, or nobody is there), and the library's client then joins. None hangs, none
gets half a registration, none is registered and then left, and all of them end in one broker.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING

from libintercom.client import Client
from libintercom.errors import IntercomError
from libintercom.profile import Profile
from tests.support.waiting import wait_until
from tests.trials.idle.arrivals import HALF, NOBODY, REGISTERED, SENT_AWAY, SILENCE, Arrival, arrive
from tests.trials.namespaces import LEAVING_S, Namespace, namespace
from tests.trials.witness.eyes import watching
from tests.trials.witness.judgement import find_overlaps

if TYPE_CHECKING:
    import random

IDLE_EXIT_S = 0.05
# How many come to one leaving broker, and how close around the moment in which it goes.
_CROWDS = (1, 3, 8, 25, 60)
_SPREADS_S = (0.0001, 0.0005, 0.003)
# How far that moment is corrected after each generation: up where all were registered, down where nobody was there.
_STEP_S = 0.0004
# Who is registered while the broker was about to leave is watched for so many idle times.
_WATCHED_TIMES = 3


@dataclasses.dataclass
class Tally:
    """What was tried and seen."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    violations: list[str] = dataclasses.field(default_factory=list)


class Generations:
    """Clients and brokers of one namespace. ``aim_s``: when a broker goes, from the last session's leaving on."""

    def __init__(self, own: Namespace, dice: random.Random, tally: Tally, aim_s: float) -> None:
        self.own, self.dice, self.tally, self.aim_s = own, dice, tally, aim_s
        self.number = 0

    def run_one(self) -> None:
        """A session comes and leaves, and others come when the broker goes."""
        self.number += 1
        with contextlib.ExitStack() as stack:
            self._join_again(stack)
        left_at = time.monotonic()
        spread_s = self.dice.choice(_SPREADS_S)
        moments = [left_at + self.aim_s + self.dice.gauss(0.0, spread_s) for _ in range(self.dice.choice(_CROWDS))]
        arrivals = [Arrival(f"client {number}", moment) for number, moment in enumerate(moments)]
        with contextlib.ExitStack() as stack:
            for arrival in arrivals:
                stack.callback(arrival.close)
            arrive(self.own.places.socket, arrivals)
            self._correct(arrivals)
            self._judge(arrivals)

    def _correct(self, arrivals: list[Arrival]) -> None:
        words = {arrival.found for arrival in arrivals}
        self.aim_s += _STEP_S * ((words == {REGISTERED}) - (words == {NOBODY}))

    def _judge(self, arrivals: list[Arrival]) -> None:
        for arrival in arrivals:
            self.tally.counts[arrival.found] += 1
            if arrival.found in (HALF, SILENCE):
                self._violate(f"a client that had connected got {arrival.found}")
        registered = [arrival for arrival in arrivals if arrival.found == REGISTERED]
        self._require_served(registered, "right after it registered")
        homes = {arrival.incarnation for arrival in registered}
        with contextlib.ExitStack() as stack:
            for arrival in arrivals:
                if arrival.found in (SENT_AWAY, NOBODY):
                    homes.add(self._join_again(stack))
            if registered:
                until = time.monotonic() + _WATCHED_TIMES * IDLE_EXIT_S
                wait_until(lambda: time.monotonic() >= until, "some idle times to pass")
            self._require_served(registered, f"{_WATCHED_TIMES} idle times later")
        if len(homes) > 1:
            self._violate(f"the clients ended in {len(homes)} brokers")

    def _require_served(self, registered: list[Arrival], when: str) -> None:
        for arrival in registered:
            if not arrival.is_served():
                self._violate(f"a registered client was not served {when}")

    def _join_again(self, stack: contextlib.ExitStack) -> str:
        try:
            client = stack.enter_context(Client.join(Profile(cwd="/", model="none"), places=self.own.places))
        except IntercomError as error:
            self._violate(f"a client could not join by the library: {error}")
            return ""
        self.tally.counts["joined by the library"] += 1
        assert client.broker is not None
        return client.broker.incarnation

    def _violate(self, what: str) -> None:
        self.tally.violations.append(f"generation {self.number}: {what}")


def run(
    generations: int, dice: random.Random, before: str = "", aim_s: float = IDLE_EXIT_S, leaving_s: float = LEAVING_S
) -> Tally:
    """So many brokers, one after another; ``before`` may plant a fault in them, and ``aim_s`` is the first aim."""
    tally = Tally()
    with namespace() as own:
        own.use_executable(before=before, options=f"--idle-exit-s {IDLE_EXIT_S}")
        with watching(own, Path(own.parent), 0, is_path_watched=False) as seen, own.entered():
            trial = Generations(own, dice, tally, aim_s)
            for _ in range(generations):
                trial.run_one()
            left = own.wait_empty(leaving_s)
    tally.violations += find_overlaps(seen)
    if left:
        tally.violations.append(f"pids {left} did not leave though nobody was connected")
    tally.counts["brokers"] = seen.owners
    tally.counts["generations"] = generations
    return tally
