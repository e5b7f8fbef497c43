"""Connection after connection that says mutated frames, and two sessions that go on talking meanwhile.

Owns the siege and what must hold after it: no crash, no hang, no bug confessed, nothing lost between the two, no
memory and no descriptors kept.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import socket
from typing import TYPE_CHECKING

from libintercom.wire.frames import encode_json, frame
from tests.support.daemon import Daemon, running_daemon
from tests.support.raw_peer import RawPeer
from tests.support.waiting import DEADLINE_S, NotSeen, wait_until
from tests.trials.mutation.mutations import is_last, mutate_bytes, mutate_json

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

# Frames of one connection at most; the last one may end it, so that every frame before it is looked at.
_FRAMES_AT_ONCE = 12
# Connections between two exchanges of the others.
_BETWEEN = 50
# What remembers by design is kept small, so that growth is a leak.
_SMALL = {
    "PI_INTERCOM_DEDUPE_TOTAL": "1000",
    "PI_INTERCOM_LETTERS": "100",
    "PI_INTERCOM_STAGE_KEYS": "50",
    "PI_INTERCOM_MAX_ASKS_PER_RECIPIENT": "100",
}
# Growth of resident memory in the second half; the first warms the allocator.
_GROWTH_BYTES = 8 * 1024 * 1024
_PAGE_BYTES = 4096


@dataclasses.dataclass
class Siege:
    """What was said and seen."""

    frames: int = 0
    connections: int = 0
    exchanges: int = 0
    growth_bytes: int = 0
    kinds: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    violations: list[str] = dataclasses.field(default_factory=list)


def besiege(count: int, dice: random.Random, tell: Callable[[str], None] = lambda _line: None) -> Siege:
    """Say ``count`` mutated frames to a broker of its own."""
    siege = Siege()
    with (
        running_daemon("--limits", "bench", "--idle-exit-s", "60", environment=_SMALL) as daemon,
        RawPeer(daemon.socket_path) as one,
        RawPeer(daemon.socket_path) as other,
    ):
        _join(one, "healthy-a")
        _join(other, "healthy-b")
        descriptors = resident = 0
        while siege.frames < count and not siege.violations:
            _attack(daemon, siege, dice)
            if siege.connections % _BETWEEN == 0:
                _exchange(one, other, siege)
            if not resident and siege.frames >= count // 2:
                descriptors, resident = _descriptors(daemon), _resident(daemon)
                tell(f"{siege.frames:,} frames on {siege.connections:,} connections")
        siege.growth_bytes = _resident(daemon) - resident
        _judge(daemon, siege, descriptors)
    return siege


def _join(peer: RawPeer, name: str) -> None:
    peer.join({"type": "register", "ext": 1, "requestedId": name, "session": {"cwd": "/", "model": "m", "name": name}})


def _attack(daemon: Daemon, siege: Siege, dice: random.Random) -> None:
    """One connection: registered or not, some mutated frames, and the wait for its end."""
    said = []
    if dice.random() < 0.9:
        said.append(frame(encode_json({"type": "register", "ext": 1, "session": {"cwd": "/", "model": "m"}})))
    mutated = [mutate_json(dice) for _frame in range(dice.randint(1, _FRAMES_AT_ONCE))]
    # Only one that ends the connection, and it comes last, so that every frame is looked at.
    ending = [raw for raw in mutated if is_last(raw)][:1] if dice.random() < 0.5 else [mutate_bytes(dice)]
    going_on = [raw for raw in mutated if not is_last(raw)]
    said += going_on + ending
    siege.frames += len(going_on) + len(ending)
    siege.kinds.update({"went on": len(going_on), "came last": len(ending)})
    siege.connections += 1
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attacker:
        attacker.settimeout(DEADLINE_S)
        try:
            _say_and_wait(attacker, daemon.socket_path, b"".join(said))
        except TimeoutError:
            siege.violations.append(f"no end within {DEADLINE_S:g} s after {said[-1][:300]!r}")
        except OSError as error:
            siege.violations.append(f"the broker cannot be reached: {error}")


def _say_and_wait(attacker: socket.socket, path: str, said: bytes) -> None:
    attacker.connect(path)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        attacker.sendall(said)
        attacker.shutdown(socket.SHUT_WR)
        while attacker.recv(1 << 20):
            pass


def _exchange(one: RawPeer, other: RawPeer, siege: Siege) -> None:
    """A message each way: delivered, and there. Whatever the attackers managed to send to them is beside it."""
    for sender, recipient, to in ((one, other, "healthy-b"), (other, one, "healthy-a")):
        message_id = f"healthy-{siege.exchanges}-{to}"
        message = {"id": message_id, "timestamp": 1, "content": {"text": "are you there?"}}
        sender.say({"type": "send", "to": to, "message": message})
        try:
            while sender.hear_type("delivered")["messageId"] != message_id:
                pass
            while recipient.hear_type("message")["message"]["id"] != message_id:
                pass
        except (AssertionError, OSError) as error:
            siege.violations.append(f"{message_id} was lost: {error!r}")
    siege.exchanges += 1


def _judge(daemon: Daemon, siege: Siege, descriptors: int) -> None:
    if not daemon.is_running:
        siege.violations.append(f"the broker ended: {daemon.stderr_tail()}")
        return
    for record in daemon.log_records():
        if record["what"] == "bug":
            siege.violations.append(f"a bug of the broker: {record}")
    if siege.growth_bytes > _GROWTH_BYTES:
        siege.violations.append(f"memory grew by {siege.growth_bytes:,} bytes in the second half")
    try:
        wait_until(lambda: _descriptors(daemon) <= descriptors, f"no more than {descriptors} descriptors")
    except NotSeen as error:
        siege.violations.append(str(error))


def _descriptors(daemon: Daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def _resident(daemon: Daemon) -> int:
    with open(f"/proc/{daemon.pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * _PAGE_BYTES
