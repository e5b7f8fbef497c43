"""``python -m tests.trials.storm.starters COUNT SEED PROGRAM``: COUNT programs that all begin at the same moment.

Owns the starters: each is a process of its own, forked before the start signal from a parent that loaded the library
once, so that they really come at once. The parent says its children's pids, waits until its input ends, and then lets
all of them go; each writes one line of JSON about each of its answers to standard output. Kinds:

* ``join``: the library's client joins, stays a moment, asks for a list, leaves; most do so more than once;
* ``ensure``: a program that only wants a broker to run;
* ``fresh``: a whole new interpreter that joins once;
* ``command``: starts the broker's PROGRAM itself, as clients do that know nothing of our starter.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from libintercom.client import Client
from libintercom.errors import IntercomError
from libintercom.paths import find_places
from libintercom.profile import Profile
from libintercom.starting import ensure_broker
from tests.support.executables import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from libintercom.paths import Places

JOIN, ENSURE, FRESH, COMMAND = "join", "ensure", "fresh", "command"
# How often each kind comes, out of a hundred.
WEIGHTS = {JOIN: 74, ENSURE: 16, FRESH: 4, COMMAND: 6}
# How long a session stays, and how long it is away before it joins again: around the idle time of the brokers.
_STAY_S = (0.0, 0.1)
_AWAY_S = (0.0, 0.2)
# How often one starter comes at most.
_TIMES = 3


def say(**answer: Any) -> None:
    """One line, by one write, so that lines of many programs never mix."""
    os.write(sys.stdout.fileno(), json.dumps({"pid": os.getpid(), **answer}).encode() + b"\n")


def tell(kind: str, act: Callable[[], dict[str, Any]]) -> None:
    """Act once, and say how that was answered and when."""
    begun = time.monotonic()
    try:
        told = act()
    except IntercomError as error:
        told = {"answer": type(error).__name__, "text": str(error)}
    say(kind=kind, begun=begun, ended=time.monotonic(), **told)


def join(kind: str, places: Places, dice: random.Random) -> None:
    """Join once, stay a moment and leave."""
    joined: list[Client] = []

    def act() -> dict[str, Any]:
        profile = Profile(cwd="/", model="none", name=f"starter {os.getpid()}")
        joined.append(Client.join(profile, places=places))
        return {"answer": "joined", **_who(joined[0])}

    tell(kind, act)
    for client in joined:
        _stay(client, dice)


def _stay(client: Client, dice: random.Random) -> None:
    """Hear events for a while, then ask for a list: the broker that registered us still serves, or is gone."""
    who = _who(client)
    for _event in client.events(dice.uniform(*_STAY_S)):
        pass
    begun = time.monotonic()
    try:
        client.list_sessions()
    except IntercomError:
        return
    say(listed=True, begun=begun, ended=time.monotonic(), **who)
    client.disconnect()


def _who(client: Client) -> dict[str, Any]:
    assert client.broker is not None
    return {"broker": client.broker.pid, "incarnation": client.broker.incarnation}


def often(act: Callable[[], object], dice: random.Random, end_fd: int) -> None:
    """Act up to ``_TIMES`` times, with pauses that the end of the round cuts short."""
    for _ in range(dice.randint(1, _TIMES)):
        act()
        select.select([end_fd], [], [], dice.uniform(*_AWAY_S))


def ensure(places: Places) -> None:
    def act() -> dict[str, Any]:
        ensure_broker(places)
        return {"answer": "ensured"}

    tell(ENSURE, act)


def command(program: str) -> None:
    """Run the broker's program directly; its words when it did not become the broker."""

    def act() -> dict[str, Any]:
        ended = subprocess.run([program, "serve"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return {"answer": "ended", "status": ended.returncode, "text": ended.stderr.decode()[-400:]}

    tell(COMMAND, act)


class _Pipes:
    """``go`` ends when everybody may begin, ``end`` when the round is over."""

    def __init__(self) -> None:
        self.go, self.end = os.pipe(), os.pipe()


def _fork(kind: str, places: Places, seed: int, program: str, pipes: _Pipes) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(pipes.go[1])
        os.close(pipes.end[1])
        # Returns at the end of the file: when the parent lets go, for everybody at once.
        os.read(pipes.go[0], 1)
        dice = random.Random(seed)
        if kind == JOIN:
            often(lambda: join(JOIN, places, dice), dice, pipes.end[0])
        elif kind == ENSURE:
            ensure(places)
        elif kind == COMMAND:
            often(lambda: command(program), dice, pipes.end[0])
        else:
            os.chdir(ROOT)
            arguments = [sys.executable, "-m", "tests.trials.storm.starters", FRESH, str(seed)]
            os.execv(sys.executable, arguments)  # noqa: S606 - a program of its own in the place of the forked one
    finally:
        os._exit(0)


def main() -> int:
    places = find_places()
    if sys.argv[1] == FRESH:
        join(FRESH, places, random.Random(int(sys.argv[2])))
        return 0
    count, seed, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dice = random.Random(seed)
    kinds = dice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)
    pipes = _Pipes()
    pids = {_fork(kind, places, dice.randrange(1 << 32), program, pipes): kind for kind in kinds}
    say(starters=[[pid, kind] for pid, kind in pids.items()])
    sys.stdin.readline()
    say(released=time.monotonic())
    os.close(pipes.go[1])
    # The second line, or the end of the input, is the end of the round.
    sys.stdin.readline()
    os.close(pipes.end[1])
    for pid in pids:
        os.waitpid(pid, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
