"""How soon everybody is back after a broker was killed and started again, and what of their messages was lost."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import actors, brokers, journaling
from bench.brokers import launch, ours, stop
from bench.generating import Failed
from bench.rows import Goal, Row, missing
from bench.sessions import await_session
from bench.spreads import spread

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from bench.actors import Actor
    from bench.rounds import Bench
    from bench.sessions import Session

_PROGRAMS, _EACH = 4, 5
_SESSIONS = _PROGRAMS * _EACH
_FIGURE = f"restart of the broker under {_SESSIONS} sessions"
_TIME, _BACK = Goal(1.2, "s"), Goal(float(_SESSIONS), "sessions", is_floor=True)
_LOST = Goal(0.0, "messages")
# Messages pass for so long before the kill, and again after everybody is back.
_TALK_S = 1.0
# Sessions that are not back by then stay away as far as a user can tell.
_DEADLINE_S = 20.0
# Between two looks at who is back: small against the bar, and a list of so few takes the broker 0.1 ms.
_LOOK_S = 0.005


@dataclass(frozen=True)
class _Found:
    """One restart. ``wrong``: delivered and not received, received twice, or received though said not to be sent."""

    back_s: float
    answering_s: float
    back: int
    wrong: int
    received: int
    outcomes: collections.Counter[str]


def measure(bench: Bench) -> list[Row]:
    bench.say(f"{_FIGURE}, {_EACH} in each of {_PROGRAMS} programs")
    try:
        with journaling.disk_folder() as folder:
            on = f"journals on {journaling.filesystem(folder)}"
            found = [_turn(bench, f"{folder}/{turn}", turn) for turn in range(bench.rounds)]
    except (Failed, OSError) as failure:
        return [missing(f"{_FIGURE}: {what}", goal, str(failure)) for what, goal in _ROWS.items()]
    supervised, alone = [one[0] for one in found], [one[1] for one in found]
    both = [*supervised, *alone]
    told = (
        (supervised, lambda one: one.back_s, f"from SIGKILL, started again at once; {_answering(supervised)}; {on}"),
        (alone, lambda one: one.back_s, f"from SIGKILL; {_answering(alone)}; {on}"),
        (both, lambda one: float(one.back), "under the same peer ID, of both kinds of restart"),
        (both, lambda one: float(one.wrong), f"lost, twice, or against the word of the outcome; {_counts(both)}"),
    )
    return [
        Row(f"{_FIGURE}: {what}", goal, spread(ones, figure), goal.unit, note)
        for (what, goal), (ones, figure, note) in zip(_ROWS.items(), told, strict=True)
    ]


_ROWS = {
    "all registered again": _TIME,
    "all registered again, started by the sessions themselves": _TIME,
    "sessions back": _BACK,
    "messages lost": _LOST,
}


def _answering(found: list[_Found]) -> str:
    return f"the broker itself answers after {spread(found, lambda one: one.answering_s).text('s')}"


def _counts(found: list[_Found]) -> str:
    outcomes = sum((one.outcomes for one in found), collections.Counter[str]())
    told = ", ".join(f"{count:,} {word}" for word, count in sorted(outcomes.items()))
    return f"of {told}; {sum(one.received for one in found):,} received"


def _turn(bench: Bench, state: str, turn: int) -> tuple[_Found, _Found]:
    bench.say(f"  round {turn + 1} of {bench.rounds}")
    return _restart(f"{state}-wait", "wait"), _restart(f"{state}-start", "start")


def _restart(state: str, missed: str) -> _Found:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(brokers.private_folder())
        process, keeper = stack.enter_context(_broker(folder))
        around = actors.environment(folder, state)
        words = [(str(first), str(_EACH), str(_SESSIONS), missed) for first in range(0, _SESSIONS, _EACH)]
        circle = [stack.enter_context(actors.playing("restarted.py", given, around)) for given in words]
        before = _list(keeper)
        _tell(circle, "begin")
        time.sleep(_TALK_S)
        began_s = time.monotonic()
        process.kill()
        process.wait()
        keeper = stack.enter_context(_broker(folder) if missed == "wait" else _started_by_others(folder))[1]
        answering_s = time.monotonic() - began_s
        back = _await_all(keeper, before, began_s + _DEADLINE_S)
        back_s = time.monotonic() - began_s
        time.sleep(_TALK_S)
        sent, received, waiting = _finish(circle)
    wrong = count_wrong(sent, received, waiting)
    return _Found(back_s, answering_s, back, wrong, len(received), collections.Counter(sent.values()))


@contextlib.contextmanager
def _broker(folder: str) -> Iterator[tuple[subprocess.Popen[bytes], Session]]:
    """A broker with the default limits, and a session that only looks."""
    process = launch(ours(), folder)
    try:
        with contextlib.closing(await_session(f"{folder}/broker.sock", brokers.KEEPER)) as keeper:
            yield process, keeper
    finally:
        if process.poll() is None:
            stop(process)


@contextlib.contextmanager
def _started_by_others(folder: str) -> Iterator[tuple[int, Session]]:
    """The broker that comes without our doing. It leaves by itself once nobody is there; it is not waited for."""
    with contextlib.closing(await_session(f"{folder}/broker.sock", brokers.KEEPER)) as keeper:
        pid = brokers.find_pid(keeper)
        try:
            yield pid, keeper
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _list(keeper: Session) -> set[str]:
    """The peer IDs of the circle's sessions that are registered."""
    keeper.say(type="list", requestId="look")
    return {row["id"] for row in keeper.hear("sessions")["sessions"] if row["name"].startswith("circle-")}


def _await_all(keeper: Session, wanted: set[str], deadline_s: float) -> int:
    """How many of them are there, at the latest at the deadline."""
    while True:
        back = len(_list(keeper) & wanted)
        if back == len(wanted) or time.monotonic() > deadline_s:
            return back
        time.sleep(_LOOK_S)


def _tell(circle: list[Actor], line: str) -> None:
    for actor in circle:
        actor.say(line)


def _finish(circle: list[Actor]) -> tuple[dict[str, str], list[str], list[str]]:
    """What became of each message as its sender knows it, what was received, and what waits on record."""
    _tell(circle, "stop")
    sent: dict[str, str] = {}
    for actor in circle:
        sent |= json.loads(actor.hear())
    _tell(circle, "end")
    ended = [json.loads(actor.hear()) for actor in circle]
    received, waiting = ([one for found in ended for one in found[name]] for name in ("received", "waiting"))
    return sent, received, waiting


def count_wrong(sent: dict[str, str], received: list[str], waiting: list[str]) -> int:
    """How many messages break the word of their outcome, or were admitted and never given (``waiting``)."""
    came = set(received)
    delivered = {key for key, outcome in sent.items() if outcome == "delivered"}
    never_arrived = {key for key, outcome in sent.items() if outcome in {"refused", "not_sent"}}
    return len((delivered | set(waiting)) - came) + len(never_arrived & came) + len(received) - len(came)
