"""Connection after connection that says mutated frames, many at once, while others go on talking.

Owns the siege and what must hold: no crash, no hang, no bug confessed, nothing lost between the others, nothing passed
on that a client would reject, no memory and no descriptors kept. A bug is traced to the frames that cause it.
"""

from __future__ import annotations

import collections
import dataclasses
import socket
import time
from typing import TYPE_CHECKING

from libintercom.errors import InvalidFrame
from libintercom.wire.answers import parse_answer
from libintercom.wire.frames import encode_json, frame
from tests.support import sayings as say
from tests.support.daemon import ROOT, running_daemon
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.report import Report
from tests.trials.load.stage import Stage, stage
from tests.trials.load.vitals import MIB
from tests.trials.mutation import mutations

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.trials.load.stage import Latency

# Attackers at once; the broker takes 64 unregistered connections.
_AT_ONCE = 24
# Until the broker has ended a connection that said everything; on any machine more is a hang.
_HANG_S = 30.0
# Frames of one connection at most; only the last one may end it, so that every frame is looked at.
_FRAMES_AT_ONCE = 12
# Connections between two looks into the log; what they said is kept until then.
_BETWEEN = 500
# What remembers by design is kept small, so that growth is a leak.
_SMALL = {"dedupe_total": 1_000, "letters": 100, "stage_keys": 50, "max_asks_per_recipient": 100}
# Growth of resident memory in the second half; the first warms the allocator.
GROWTH_BYTES = 8 * MIB
# Between two messages of the others.
_PAUSE_MS = 2.0
_SHOWN_BYTES = 400


@dataclasses.dataclass
class Siege:
    """What was said and seen."""

    plant: str = ""
    frames: int = 0
    connections: int = 0
    kinds: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    passed_on: int = 0
    growth_bytes: int = 0
    others: list[Latency] = dataclasses.field(default_factory=list)
    violations: list[str] = dataclasses.field(default_factory=list)
    # What each connection since the last look into the log said.
    recent: list[list[bytes]] = dataclasses.field(default_factory=list)

    @property
    def exchanges(self) -> int:
        """Messages that the others exchanged meanwhile."""
        return sum(latency.count for latency in self.others)


@dataclasses.dataclass
class _Attacker:
    peer: Peer
    said: list[bytes]
    deadline_s: float
    has_finished: bool = False


def besiege(
    count: int, dice: random.Random, tell: Callable[[str], None] = lambda _line: None, plant: str = ""
) -> Siege:
    """Say ``count`` mutated frames to a broker of its own; ``plant`` is a folder with a fault in it."""
    siege, report = Siege(plant=plant), Report("mutation", plant)
    try:
        _besiege(siege, report, count, dice, tell)
    except (AssertionError, OSError) as error:
        siege.violations.append(f"the siege could not go on: {type(error).__name__} {error}")
    siege.violations += report.violations
    return siege


def _besiege(siege: Siege, report: Report, count: int, dice: random.Random, tell: Callable[[str], None]) -> None:
    with stage(report, "--limits", "bench", **_SMALL) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        registration = say.register("witness", id=mutations.WITNESS, ext=1, status="idle")
        (witness,) = peers.join(at.path, [registration], on_frame=lambda _peer, value: _judge_passed_on(siege, value))
        residents: list[int] = []
        with at.pair.going_on(_PAUSE_MS, siege.others):
            for goal in (count // 2, count):
                _attack(at, peers, siege, goal, dice)
                residents.append(at.vitals.resident_bytes)
                tell(f"{siege.frames:,} frames on {siege.connections:,} connections")
        siege.growth_bytes = residents[1] - residents[0]
        peers.drop(witness)
        _judge(at, siege, descriptors)


def _attack(at: Stage, peers: Peers, siege: Siege, goal: int, dice: random.Random) -> None:
    """Attackers at once and one after the other, until so many frames were said."""
    attackers: list[_Attacker] = []
    while attackers or (siege.frames < goal and not siege.violations):
        while len(attackers) < _AT_ONCE and siege.frames < goal and not siege.violations:
            attackers.append(_begin(at, peers, siege, dice))
        peers.turn(0.01)
        attackers = [attacker for attacker in attackers if not _is_over(peers, siege, attacker)]
        if len(siege.recent) >= _BETWEEN:
            _look_into_log(at, siege)
    _look_into_log(at, siege)


def _begin(at: Stage, peers: Peers, siege: Siege, dice: random.Random) -> _Attacker:
    kind, said = choose(dice)
    siege.frames += len(said)
    siege.kinds[kind] += len(said)
    siege.connections += 1
    if kind != "order" and dice.random() < 0.9:
        said = [frame(encode_json(say.register("attacker", ext=1))), *said]
    siege.recent.append(said)
    peer = peers.connect(at.path)
    peer.say_bytes(b"".join(said))
    return _Attacker(peer, said, time.monotonic() + _HANG_S)


def choose(dice: random.Random) -> tuple[str, list[bytes]]:
    """What one connection says: its kind, and frames of which only the last one may end it."""
    if dice.random() < 0.1:
        return "order", mutations.shuffle_order(dice)
    make = dice.choice((mutations.mutate_json, mutations.mutate_text))
    mutated = [make(dice) for _frame in range(dice.randint(1, _FRAMES_AT_ONCE))]
    going_on = [raw for raw in mutated if not mutations.is_last(raw)]
    last = dice.choice((mutations.mutate_bytes, mutations.splice, None))
    ending = [last(dice)] if last else [raw for raw in mutated if mutations.is_last(raw)][:1]
    return f"{make.__name__}, then {last.__name__ if last else 'one of them'}", going_on + ending


def _is_over(peers: Peers, siege: Siege, attacker: _Attacker) -> bool:
    """Whether the broker ended the connection, which it must once the attacker has said everything."""
    peer = attacker.peer
    if not peer.is_writing and not attacker.has_finished and not peer.has_ended:
        attacker.has_finished = True
        _half_close(peer)
    if peer.has_ended:
        peers.drop(peer)
        return True
    if time.monotonic() > attacker.deadline_s:
        siege.violations.append(f"no end within {_HANG_S:g} s after {_show(attacker.said)}")
        peers.drop(peer)
        return True
    return False


def _half_close(peer: Peer) -> None:
    try:
        peer.socket.shutdown(socket.SHUT_WR)
    except OSError:
        # The broker was faster.
        pass


def _judge_passed_on(siege: Siege, value: say.Object) -> None:
    """What reaches a session must be what its client accepts."""
    siege.passed_on += 1
    try:
        parse_answer(value)
    except InvalidFrame as error:
        siege.violations.append(f"passed on what a client rejects ({error.reason}): {str(value)[:_SHOWN_BYTES]}")


def _look_into_log(at: Stage, siege: Siege) -> None:
    bugs = at.bugs()
    if bugs and not siege.violations:
        culprits = trace(siege.recent, lambda connections: causes_bug(connections, siege.plant))
        siege.violations += [f"a bug of the broker: {bug}" for bug in bugs[:3]]
        siege.violations.append(f"caused by {' || '.join(map(_show, culprits)) or 'nothing that happens again'}")
    siege.recent.clear()


def trace(connections: list[list[bytes]], is_guilty: Callable[[list[list[bytes]]], bool]) -> list[list[bytes]]:
    """The part of these connections that is guilty, halved as long as a half is; none when not even all are."""
    if not is_guilty(connections):
        return []
    while len(connections) > 1:
        middle = len(connections) // 2
        half = next((half for half in (connections[:middle], connections[middle:]) if is_guilty(half)), None)
        if half is None:
            break
        connections = half
    return connections


def causes_bug(connections: Sequence[Sequence[bytes]], plant: str = "") -> bool:
    """Whether a fresh broker confesses a bug when these connections say what they say, one after the other."""
    environment = {"PYTHONPATH": f"{plant}:{ROOT}"} if plant else {}
    arguments = ("--limits", "bench", "--idle-exit-s", "60")
    with running_daemon(*arguments, environment=environment) as daemon, Peers() as peers:
        peers.join(daemon.socket_path, [say.register("witness", id=mutations.WITNESS, ext=1, status="idle")])
        for said in connections:
            peer = peers.connect(daemon.socket_path)
            peer.say_bytes(b"".join(said))
            peers.turn_until(lambda peer=peer: not peer.is_writing or peer.has_ended, "the frames to be written")
            _half_close(peer)
            peers.turn_until(lambda peer=peer: peer.has_ended, "the end of a connection")
        daemon.stop()
        return any(record["what"] == "bug" for record in daemon.log_records())


def _show(said: Sequence[bytes]) -> str:
    return " | ".join(repr(raw[:_SHOWN_BYTES]) for raw in said)


def _judge(at: Stage, siege: Siege, descriptors: int) -> None:
    at.judge_settled(descriptors)
    at.judge_balance()
    at.judge_log()
    for latency in siege.others:
        at.report.say(f"the others: {latency}")
        at.report.expect(not latency.lost, f"the others lost {latency.lost}")
    at.report.expect(siege.passed_on, "nothing of it was passed on")
    at.report.figure("growth in the second half", siege.growth_bytes / MIB, "MiB", bar=GROWTH_BYTES / MIB)
