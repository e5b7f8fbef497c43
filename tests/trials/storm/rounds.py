"""One round of the storm: release the starters, kill at random moments, wait for every answer, judge.

Owns the order of a round, the kills and what a starter may be told. Who owned the namespace is the witnesses' word
(``tests.trials.witness``); what a broker or a starter logged plays no part.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libintercom.client import Client
from libintercom.errors import IntercomError
from libintercom.member import RETRIES
from libintercom.ownership.readings import read_stat
from libintercom.profile import Profile
from tests.support.executables import ROOT
from tests.trials.namespaces import Namespace, hurry, namespace
from tests.trials.storm.starters import COMMAND
from tests.trials.witness.eyes import watching
from tests.trials.witness.judgement import LONGEST_GAP_S, Seen, Service, find_overlaps, serves_through

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

# bars.md section 4; the acceptance of the stage.
STARTERS = 100
ANSWER_S = 10.0
IDLE_EXIT_S = 0.05
# How long programs are killed after the release: a starter's own deadline (5 s) goes on well beyond it.
_KILL_FOR_S = 3.0
# Mean pauses between two kills, one for each round: from "no candidate ever gets through" to "now and then one".
_KILL_PAUSES_S = (0.02, 0.06, 0.15, 0.4)
# One of so many kills takes a starter (who may hold the gate), as long as so many of them are left alone.
_STARTER_SHARE, _SPARED_SHARE = 0.1, 0.9
# Between a starter's last try and its word about it, on a machine where a hundred programs want two processors.
_LAST_TRY_S = 0.05
# What a command that became no broker may say: 0 a broker serves already, 1 another one holds the start.
_COMMAND_STATUSES = (0, 1)


@dataclasses.dataclass
class Tally:
    """What was tried and seen, over all rounds."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    slowest_s: float = 0.0
    longest_gap_s: float = 0.0
    violations: list[str] = dataclasses.field(default_factory=list)


class Round:
    """One storm in a namespace of its own."""

    def __init__(self, number: int, dice: random.Random, tally: Tally, starters: int = STARTERS) -> None:
        self.number, self.dice, self.tally, self.count = number, dice, tally, starters
        self.kill_pause_s = _KILL_PAUSES_S[number % len(_KILL_PAUSES_S)]
        self.answers: list[dict[str, Any]] = []
        # When each was killed, in seconds of the monotonic clock.
        self.killed: dict[int, float] = {}

    def run(self) -> None:
        with contextlib.ExitStack() as stack:
            own = stack.enter_context(namespace(self._variables()))
            self._choose_broker(own)
            # Left before the namespace, so that nothing is killed under the witnesses' eyes that no starter started.
            with watching(own, Path(own.parent), self.dice.randrange(1 << 32)) as seen, self._starters(own) as starters:
                self._storm(own, starters)
                self._require_end(own, "after the storm")
                self._start_once_more(own)
                self._require_end(own, "after the round")
        self._judge(seen)

    # ------------------------------------------------------------------ the namespace

    def _variables(self) -> dict[str, str]:
        # Every other round by the setting, whose reader makes a start slower, else by the command line.
        return {"PI_INTERCOM_IDLE_EXIT_S": str(IDLE_EXIT_S)} if self.number % 2 else {}

    def _choose_broker(self, own: Namespace) -> None:
        if self.number % 2:
            self.program = os.path.join(os.path.dirname(sys.executable), "intercomd")
        else:
            self.program = own.use_executable(options=f"--idle-exit-s {IDLE_EXIT_S}")

    @contextlib.contextmanager
    def _starters(self, own: Namespace) -> Iterator[subprocess.Popen[bytes]]:
        arguments = [str(self.count), str(self.dice.randrange(1 << 32)), self.program]
        command = [sys.executable, "-m", "tests.trials.storm.starters", *arguments]
        with subprocess.Popen(
            command, cwd=ROOT, env=own.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as parent:
            assert parent.stdout is not None
            self.starters = dict(json.loads(parent.stdout.readline())["starters"])
            own.others |= {str(pid) for pid in self.starters}
            yield parent

    # ------------------------------------------------------------------ the storm

    def _storm(self, own: Namespace, parent: subprocess.Popen[bytes]) -> None:
        """Release, kill for a while, and read answers until the last starter has ended or is late."""
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(b"go\n")
        parent.stdin.flush()
        nice = hurry()
        next_kill = released = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(parent.stdout, selectors.EVENT_READ)
            os.set_blocking(parent.stdout.fileno(), False)
            received = b""
            while (now := time.monotonic()) < released + _KILL_FOR_S + 3 * ANSWER_S:
                if now >= next_kill and now < released + _KILL_FOR_S:
                    self._kill_one(own)
                    next_kill = now + self.dice.expovariate(1 / self.kill_pause_s)
                if selector.select(max(0.0, min(next_kill - now, 0.05))):
                    chunk = parent.stdout.read()
                    received += chunk
                    if not chunk:
                        break
                if now >= released + _KILL_FOR_S and not parent.stdin.closed:
                    parent.stdin.close()
            else:
                self._violate(f"starters were still at it {now - released:.0f} s after the release")
                parent.kill()
        hurry(nice)
        self.answers += [json.loads(line) for line in received.splitlines()]

    def _kill_one(self, own: Namespace) -> None:
        if self.dice.random() < _STARTER_SHARE:
            self._kill_starter()
            return
        programs = own.programs(is_hasty=True)
        victim = self.dice.choice(programs) if programs else 0
        if victim and own.kill(victim):
            self.killed[victim] = time.monotonic()

    def _kill_starter(self) -> None:
        """Only children of our own parent program, which collects them at the end: no pid is reused before."""
        living = [pid for pid in self.starters if pid not in self.killed and read_stat(pid)[0] not in (None, "Z")]
        if len(self.starters) - len(self.killed.keys() & self.starters.keys()) > _SPARED_SHARE * self.count and living:
            victim = self.dice.choice(living)
            self.killed[victim] = time.monotonic()
            os.kill(victim, signal.SIGKILL)

    def _require_end(self, own: Namespace, when: str) -> None:
        left = own.wait_empty()
        if left:
            self._violate(f"{when}: pids {left} did not leave though nobody was connected")

    def _start_once_more(self, own: Namespace) -> None:
        """What the killed ones left behind must not stand in anybody's way."""
        begun = time.monotonic()
        try:
            with own.entered(), Client.join(Profile(cwd="/", model="none"), places=own.places):
                self.tally.counts["joined after the storm"] += 1
        except IntercomError as error:
            self._violate(f"after the storm nobody could start a broker: {error}")
        self.tally.slowest_s = max(self.tally.slowest_s, time.monotonic() - begun)

    # ------------------------------------------------------------------ the judgement

    def _violate(self, what: str) -> None:
        self.tally.violations.append(f"round {self.number}: {what}")

    def _judge(self, seen: Seen) -> None:
        seen.services += [
            Service(answer["incarnation"], answer["broker"], answer["begun"], answer["ended"], is_at_path=False)
            for answer in self.answers
            if "incarnation" in answer
        ]
        for violation in find_overlaps(seen):
            self._violate(violation)
        self._judge_answers(seen)
        self._count(seen)

    def _judge_answers(self, seen: Seen) -> None:
        ends = [hold.last for hold in seen.holds if hold.pid not in self.killed]
        ends += [at for pid, at in self.killed.items() if pid not in self.starters]
        heard = {answer["pid"] for answer in self.answers if "answer" in answer}
        for pid in sorted(self.starters.keys() - self.killed.keys() - heard):
            self._violate(f"a starter ({self.starters[pid]}) ended without an answer")
        for answer in self.answers:
            if "answer" not in answer:
                continue
            took_s = answer["ended"] - answer["begun"]
            is_broker = answer["kind"] == COMMAND and answer["status"] == 0
            if took_s > ANSWER_S and not is_broker:
                self._violate(f"a starter ({answer['kind']}) was answered after {took_s:.1f} s: {answer}")
            if not is_broker:
                self.tally.slowest_s = max(self.tally.slowest_s, took_s)
            if not _is_true(answer, seen, ends):
                self._violate(f"a starter was told what is not true, or nothing clear: {answer}")

    def _count(self, seen: Seen) -> None:
        counts, killed, owners = self.tally.counts, self.killed.keys(), {hold.pid for hold in seen.holds}
        counts["rounds"] += 1
        counts["starters"] += len(self.starters)
        counts["killed starters"] += len(killed & self.starters.keys())
        counts["killed brokers"] += len(killed & owners)
        counts["killed candidates"] += len(killed - owners - self.starters.keys())
        counts["brokers that left by themselves"] += len(owners - killed)
        counts["lives seen"] += seen.owners
        counts["brokers that answered"] += seen.brokers
        counts["looks at life"] += seen.looks
        for found, number in seen.attempts.items():
            counts[f"witness: {found}"] += number
        for answer in self.answers:
            if "answer" in answer:
                counts[f"{answer['kind']}: {answer['answer']}{answer.get('status', '')}"] += 1
        self.tally.longest_gap_s = max(self.tally.longest_gap_s, seen.longest_gap_s)
        if seen.longest_gap_s > LONGEST_GAP_S:
            self._violate(f"the witness was blind for {seen.longest_gap_s:.1f} s: the machine is too busy to tell")


def _is_true(answer: dict[str, Any], seen: Seen, ends: list[float]) -> bool:
    """Joined, or a refusal that says what was the case. ``ends``: when programs of the namespace ended."""
    said = answer["answer"]
    if said in ("joined", "ensured"):
        return True
    if said == "ended":
        # Killed by us, or one of the two words of a candidate that lost.
        return bool(answer["status"] in _COMMAND_STATUSES or answer["status"] < 0)
    begun, ended = float(answer["begun"]), float(answer["ended"])
    if said == "NotStarted":
        # "No broker came up": then nobody may have been answered in that time.
        return not any(begun < one.begun and one.ended < ended for one in seen.services)
    if said == "NotRegistered":
        # The connection broke off each time: then so many programs that may have listened ended in that time.
        return sum(begun < end < ended for end in ends) > RETRIES
    if said == "NotRunning":
        # Nobody listened at the last try, just before the end; so nobody may have served through that moment.
        return not serves_through(seen.services, ended - _LAST_TRY_S, ended)
    return False
