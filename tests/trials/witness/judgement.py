"""What follows from what was seen: whether two programs owned one namespace at the same time.

Pure. Two owners at the same time are, exactly, any of these:

* two programs hold life: each holds an exclusive lock on a record that was published as ``broker.pid`` and that its
  owner did not withdraw. A hold lasts at least from the end of the first look that found it to the beginning of the
  last one; two such spans of different programs that meet are an overlap;
* two brokers serve: one answered (a registration at the path, or a request of a session it had registered) both
  before and after the other one answered. An answer happened at some moment between its request and its arrival, so
  only answers that certainly lie so are counted: for a broker, it served between its earliest arrival and its latest
  request, and two such spans that meet are an overlap;
* somebody answered at the path while another program held life from before the request until after the arrival.
"""

from __future__ import annotations

import dataclasses
import itertools

# A record may be locked before the witness finds by whom; longer than this its owner hides.
_NAMELESS_S = 0.5
# Between two looks of the life witness; a longer blindness proves nothing about that time.
LONGEST_GAP_S = 1.0


@dataclasses.dataclass(frozen=True)
class Hold:
    """A program held life on one record, at least from ``first`` to ``last`` (monotonic seconds)."""

    pid: int
    inode: int
    first: float
    last: float


@dataclasses.dataclass(frozen=True)
class Service:
    """A broker answered a request that was begun at ``begun``; the answer was there at ``ended``.

    ``is_at_path``: the connection was made for it, so the broker was reachable at the path in that time.
    """

    incarnation: str
    pid: int
    begun: float
    ended: float
    is_at_path: bool


@dataclasses.dataclass
class Seen:
    """Everything that was seen of one namespace."""

    holds: list[Hold] = dataclasses.field(default_factory=list)
    services: list[Service] = dataclasses.field(default_factory=list)
    # Inode and for how long it was locked by nobody who could be named.
    nameless: list[tuple[int, float]] = dataclasses.field(default_factory=list)
    # What the path witness's attempts came to.
    attempts: dict[str, int] = dataclasses.field(default_factory=dict)
    looks: int = 0
    longest_gap_s: float = 0.0

    @property
    def owners(self) -> int:
        """How many programs held life at some time."""
        return len({hold.pid for hold in self.holds})

    @property
    def brokers(self) -> int:
        """How many brokers answered somebody."""
        return len({service.incarnation for service in self.services})


def find_overlaps(seen: Seen) -> list[str]:
    """Every violation that the witnesses saw."""
    return [
        *_overlapping_holds(seen.holds),
        *_overlapping_services(seen.services),
        *_strangers(seen),
        *(
            f"the record with inode {inode} was locked for {held_s:.1f} s by nobody who could be named"
            for inode, held_s in seen.nameless
            if held_s > _NAMELESS_S
        ),
    ]


def serves_through(services: list[Service], begun: float, ended: float) -> bool:
    """Whether one broker certainly served before, in and after that time."""
    before = {service.incarnation for service in services if service.ended <= begun}
    return any(service.incarnation in before for service in services if service.begun >= ended)


def _overlapping_holds(holds: list[Hold]) -> list[str]:
    return [
        f"pids {one.pid} and {other.pid} held life at the same time, for at least "
        f"{1000 * (min(one.last, other.last) - max(one.first, other.first)):.1f} ms"
        for one, other in itertools.combinations(holds, 2)
        if one.pid != other.pid and max(one.first, other.first) <= min(one.last, other.last)
    ]


def _overlapping_services(services: list[Service]) -> list[str]:
    spans: dict[str, list[float]] = {}
    pids: dict[str, int] = {}
    for service in services:
        span = spans.setdefault(service.incarnation, [service.ended, service.begun])
        span[0], span[1] = min(span[0], service.ended), max(span[1], service.begun)
        pids[service.incarnation] = service.pid
    return [
        f"brokers {pids[one]} and {pids[other]} served at the same time: each answered after the other had answered"
        for one, other in itertools.combinations(spans, 2)
        if spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]
    ]


def _strangers(seen: Seen) -> list[str]:
    found = []
    for service in seen.services:
        if not service.is_at_path:
            continue
        owners = [hold for hold in seen.holds if hold.first <= service.begun and service.ended <= hold.last]
        found += [
            f"pid {service.pid} was reached at the path while pid {hold.pid} held life"
            for hold in owners
            if hold.pid != service.pid
        ]
    return found
