"""A living broker with a resident session, something that happens to its files, one check, and what became of all.

Owns the order: act, perhaps a newcomer before the check, the check, the settling, and the judgement. Does not own what
happens (``acts``). Seen from outside: the broker's process, who answers at the path, whether the resident is served.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from intercomd.edges.ownership.selfcheck import CHECK_INTERVAL_S
from libintercom.client import Client
from libintercom.errors import IntercomError
from libintercom.profile import Profile
from libintercom.starting import ensure_broker
from tests.support.daemon import Daemon
from tests.support.waiting import NotSeen, wait_until
from tests.trials.namespaces import Namespace, namespace
from tests.trials.witness.eyes import watching
from tests.trials.witness.judgement import Seen
from tests.trials.witness.life import RECORD_NAME, LifeWitness
from tests.trials.witness.path import REGISTERED, Peer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.trials.vanishing.acts import Act

# What becomes of the broker whose files vanished.
HEALED, LEFT, STAYED = "healed", "left", "stayed"

# From a check to its end: a nonce may take 5 s, a broker that leaves another 5 s to let go of its sessions.
SETTLE_S = 12.0
# A broker that looks by itself does so at its own time, a little after or before a minute from the act.
_NEAR_S = 5.0
# Of a broker that cannot heal it is only expected that nothing happens in this time.
STAY_S = 1.0
# How long somebody who comes before the check waits for a broker.
_NEWCOMER_S = 1.0
# Room for the files of a broker and not much more.
_SMALL_BYTES = 64 * 1024
# A broker answers in a millisecond; a foreign listener never does.
_ANSWER_S = 0.3
# No idle exit while something is tried.
_IDLE_EXIT_S = "600"


@dataclasses.dataclass
class Trial:
    """How one act ended: what was seen, in words, and what of it must not be."""

    name: str
    became: str = ""
    newcomer: str = ""
    took_s: float = 0.0
    violations: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        met = f"; who came before the check {self.newcomer}" if self.newcomer else ""
        return f"{self.name}: {self.became} after {self.took_s:.2f} s{met}"


class Stage:
    """One namespace with its first broker and a resident session of it."""

    def __init__(self, own: Namespace, before: str) -> None:
        self.own, self.places = own, own.places
        self._theirs: dict[str, tuple[int, int]] = {}
        # Another program in the place of "python -m intercomd".
        prefix = ["sh", "-c", 'shift 3; exec "$0" "$@"', own.use_executable(before=before)] if before else []
        self.broker = Daemon(own.directory, "--idle-exit-s", _IDLE_EXIT_S, prefix=prefix)
        self.broker.wait_ready()
        self.resident = self.join("resident", spawn=False)

    def keep(self, name: str) -> None:
        """Remember that a file is somebody else's, and must stay as it is."""
        self._theirs[name] = _mark(self.own, name)

    def find_changes(self) -> list[str]:
        return [name for name, mark in self._theirs.items() if _mark(self.own, name) != mark]

    def join(self, name: str, *, spawn: bool) -> Client:
        return Client.join(Profile(cwd="/", model="none", name=name), places=self.places, spawn=spawn)

    def check(self) -> None:
        """Ask the first broker to look."""
        self.broker.process.send_signal(signal.SIGUSR1)

    def answering(self) -> int:
        """The pid of the broker that answers at the path, 0 without one."""
        peer = Peer(_ANSWER_S)
        try:
            seen = peer.connect(self.places.socket)
        finally:
            peer.close()
        return int(seen["pid"]) if seen["found"] == REGISTERED else 0

    def is_on_record(self) -> bool:
        """Whether the file at ``broker.pid`` is one that the first broker holds locked, as the kernel says."""
        witness = LifeWitness(self.own.directory)
        witness.look()
        holds = {(pid, inode) for pid, inode, _first, _last in witness.report()["holds"]}
        return (self.broker.pid, _mark(self.own, RECORD_NAME)[0]) in holds

    def is_resident_served(self) -> bool:
        try:
            return self.resident.session_id in {row.id for row in self.resident.list_sessions().rows}
        except IntercomError:
            return False

    def close(self) -> None:
        self.resident.disconnect()
        self.broker.kill()


def _mark(own: Namespace, name: str) -> tuple[int, int]:
    try:
        seen = os.lstat(f"{own.directory}/{name}")
    except FileNotFoundError:
        return (0, 0)
    return (seen.st_ino, seen.st_mode)


@contextlib.contextmanager
def stage(*, before: str = "", is_small: bool = False) -> Iterator[Stage]:
    """A stage of its own; everything that serves its namespace is ended afterwards.

    ``before``: Python that runs in the broker's program first, to plant a fault.
    ``is_small``: the runtime directory is a filesystem of its own, small enough to be filled; needs root.
    """
    with namespace() as own, contextlib.ExitStack() as stack:
        os.mkdir(own.directory, 0o700)
        if is_small:
            command = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_BYTES},mode=0700", "tmpfs", own.directory]
            subprocess.run(command, check=True)
            stack.callback(subprocess.run, ["umount", "-l", own.directory], check=True)
        set_up = Stage(own, before)
        stack.callback(set_up.close)
        yield set_up


def perform(act: Act, *, has_newcomer: bool, waits: bool = False, before: str = "") -> Trial:
    """One act on a stage of its own; ``before`` may plant a fault. ``waits``: for the broker's own look, unasked.

    Somebody who waits has no witnesses: looking for a minute at many stages at once would take the whole machine.
    """
    trial = Trial(f"{act.name}{', somebody comes before the check' if has_newcomer else ''}")
    with stage(before=before, is_small=act.is_small) as set_up, contextlib.ExitStack() as stack:
        seen = Seen() if waits else stack.enter_context(watching(set_up.own, Path(set_up.own.parent), 0))
        begun = time.monotonic()
        act.happen(set_up, stack)
        if has_newcomer:
            trial.newcomer = _come(set_up, stack)
        if waits:
            _wait_for_look(begun)
        else:
            begun = time.monotonic()
            set_up.check()
        _settle(set_up, act.expected(has_newcomer=has_newcomer), SETTLE_S, trial)
        settled = time.monotonic()
        trial.took_s = settled - begun
        _judge_files(set_up, trial)
        if act.repair is not None:
            act.repair(set_up, stack)
            set_up.check()
            _settle(set_up, HEALED, SETTLE_S, trial)
        _judge_sessions(act, set_up, trial)
    _judge_owners(seen, settled, trial)
    return trial


def _come(set_up: Stage, stack: contextlib.ExitStack) -> str:
    """Somebody comes and, where a broker answers, stays."""
    try:
        ensure_broker(set_up.places, deadline_s=_NEWCOMER_S)
    except IntercomError as error:
        return f"was refused ({type(error).__name__})"
    pid = set_up.answering()
    if not pid:
        return "found somebody who does not answer"
    stack.enter_context(set_up.join("newcomer", spawn=False))
    return "found the same broker" if pid == set_up.broker.pid else "started another broker"


def _wait_for_look(begun: float) -> None:
    near = begun + CHECK_INTERVAL_S - _NEAR_S
    wait_until(lambda: time.monotonic() >= near, "the broker's own look to be near", CHECK_INTERVAL_S)


def _settle(set_up: Stage, expected: str, deadline_s: float, trial: Trial) -> None:
    """Wait for what is expected, and say what became of the broker."""
    try:
        if expected == STAYED:
            wait_until(lambda: _became(set_up) != STAYED, "anything to happen", STAY_S)
        else:
            wait_until(lambda: _became(set_up) == expected, f"the broker to be {expected}", deadline_s)
    except NotSeen:
        pass
    became = _became(set_up)
    trial.became = f"{trial.became}, then {became}" if trial.became else became
    if became != expected:
        trial.violations.append(f"{trial.name}: the broker {became}, expected: {expected}")


def _became(set_up: Stage) -> str:
    if not set_up.broker.is_running:
        return LEFT
    is_healed = set_up.answering() == set_up.broker.pid and set_up.is_on_record()
    return HEALED if is_healed else STAYED


def _judge_files(set_up: Stage, trial: Trial) -> None:
    changed = set_up.find_changes()
    if changed:
        trial.violations.append(f"{trial.name}: somebody else's {changed} was touched")


def _judge_sessions(act: Act, set_up: Stage, trial: Trial) -> None:
    """Served where the broker lives, told where it left; and then everybody meets in one broker."""
    is_served = set_up.is_resident_served()
    if is_served != set_up.broker.is_running:
        trial.violations.append(f"{trial.name}: the broker {trial.became}, the resident served: {is_served}")
    if not act.is_joinable:
        return
    try:
        other = set_up.join("other", spawn=True)
        if not is_served:
            set_up.resident = set_up.join("resident", spawn=True)
    except IntercomError as error:
        trial.violations.append(f"{trial.name}: afterwards nobody can join: {error}")
        return
    with other:
        met = {row.name for row in other.list_sessions().rows}
        if not {"resident", "other"} <= met:
            trial.violations.append(f"{trial.name}: the sessions do not meet, one sees only {met}")


def _judge_owners(seen: Seen, settled: float, trial: Trial) -> None:
    brokers = {service.pid for service in seen.services if service.begun > settled}
    if len(brokers) > 1:
        trial.violations.append(f"{trial.name}: {len(brokers)} brokers still served after the check")
