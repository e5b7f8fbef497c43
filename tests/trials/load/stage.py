"""A broker under observation and a pair beside it, each on a processor of its own, and a load under the pair.

Owns starting and ending them, and running a load in a thread that steps aside for the pair. Does not own the loads.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tests.support import sayings as say
from tests.support.daemon import ROOT, running_daemon
from tests.support.raw_peer import RawPeer
from tests.support.waiting import wait_until
from tests.trials.load.vitals import Vitals, pin, processors, step_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.support.daemon import Daemon
    from tests.trials.load.report import Report

Found = TypeVar("Found")

# What of the daemon's state is bounded by a count of its own and no quota of bytes: kept small where bytes are counted.
SMALL_MEMORY = {"PI_INTERCOM_DEDUPE_PER_SENDER": "16"}
# bars.md: another pair's p99 is at most twice its unloaded p99. A processor shared with other programs, or a host
# that takes a processor away for a moment, makes a p99 ten times larger by itself, and 25 ms long: beyond both it is
# not noise.
P99_BAR, P99_MARGIN, P99_NOISE_US = 2.0, 10.0, 25_000.0
# Until ten thousand have gone on a machine that is busy with others; on a quiet one it takes a second.
_SETTLED_S = 60.0
# The first messages warm caches.
_WARM = 200


@dataclass(frozen=True)
class Latency:
    """One run of the pair, in microseconds."""

    count: int
    p50: float
    p99: float
    most: float
    lost: list[str]

    def __str__(self) -> str:
        return f"p50 {self.p50:.0f}, p99 {self.p99:.0f}, most {self.most:.0f} us of {self.count:,}"


class Pair:
    """The others (``tests.trials.load.pair``), in a program of their own."""

    def __init__(self, path: str) -> None:
        command = [sys.executable, "-m", "tests.trials.load.pair", path]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.program = subprocess.Popen(command, env=environment, text=True, **pipes)
        self.size = int(self._read()["joined"])

    def measure(self, count: int) -> Latency:
        """So many messages, one after the other without a pause."""
        self._say(f"0 {count}")
        return Latency(**self._read())

    @contextlib.contextmanager
    def going_on(self, pause_ms: float, found: list[Latency]) -> Iterator[None]:
        """Messages all the time, with a pause between them; ``found`` gets one run at the end."""
        self._say(f"{pause_ms} 0")
        yield
        self._say("end")
        found.append(Latency(**self._read()))

    def end(self) -> None:
        with self.program:
            self.program.kill()

    def _say(self, line: str) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write(line + "\n")
        self.program.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.program.stdout is not None
        line = self.program.stdout.readline()
        assert line, "the pair's program ended"
        found: dict[str, Any] = json.loads(line)
        return found


class Load:
    """A load while it runs. It sets ``has_begun`` when it presses, and goes on until ``is_over``."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.is_over = threading.Event()


@dataclass
class Stage:
    """A broker and the others beside it."""

    daemon: Daemon
    pair: Pair
    vitals: Vitals
    report: Report
    observer: RawPeer

    @property
    def path(self) -> str:
        return self.daemon.socket_path

    def observe(self) -> say.Object:
        """The broker's counters and gauges now."""
        self.observer.say(say.stats())
        return self.observer.hear_type("stats_result")

    @property
    def sessions(self) -> int:
        """Everybody but the others."""
        return self.observe()["gauges"]["sessions"] - self.pair.size

    def judge_balance(self) -> say.Object:
        """Accepted = terminals + gauges, by what the broker tells."""
        stats = self.observe()
        counters, gauges = stats["counters"], stats["gauges"]
        ends = ("delivered", "replaced", "drained", "fetched")
        ended = sum(count for name, count in counters.items() if name in ends or name.startswith("dead_"))
        waiting = sum(gauges[name] for name in ("buffered", "staged", "parked", "kept"))
        claim = f"accepted {counters['accepted']:,} = ended {ended:,} + waiting {waiting:,}"
        self.report.say(claim)
        self.report.expect(counters["accepted"] == ended + waiting, f"does not hold: {claim}")
        return stats

    def bugs(self) -> list[dict[str, Any]]:
        """What the broker confessed lately: its log and the one before it."""
        records = self.daemon.log_records()
        former = Path(self.daemon.directory) / "broker.log.1"
        if former.exists():
            records += [json.loads(line) for line in former.read_text().splitlines() if line.startswith("{")]
        return [record for record in records if record["what"] == "bug"]

    def judge_log(self) -> None:
        """The broker lives, and confessed no bug."""
        self.report.expect(self.daemon.is_running, f"the broker ended: {self.daemon.stderr_tail()}")
        for record in self.bugs():
            self.report.violate(f"a bug of the broker: {record}")

    def judge_settled(self, descriptors: int) -> None:
        """Everybody but the others is gone, and so are their descriptors."""
        wait_until(lambda: not self.sessions, "everybody else to be gone", _SETTLED_S)
        what = f"{descriptors} descriptors of the broker again"
        wait_until(lambda: self.vitals.descriptors <= descriptors, what, _SETTLED_S)

    def press(self, work: Callable[[Load], Found], meanwhile: Callable[[], None]) -> Found:
        """Run ``work``, and ``meanwhile`` once it presses; what it found.

        Where times count it runs on the pair's processor, behind the pair.
        """
        load = Load()

        def run() -> Found:
            try:
                return work(load)
            finally:
                # Whoever waits for it must not wait for ever when it failed.
                load.has_begun.set()

        with ThreadPoolExecutor(1, initializer=_prepare if self.report.is_timed else None) as pool:
            running = pool.submit(run)
            try:
                load.has_begun.wait()
                meanwhile()
            finally:
                load.is_over.set()
            return running.result()

    def judge_pair(self, calm: Sequence[Latency], pressed: Latency, what: str) -> None:
        """The others lost nothing and hardly noticed."""
        # The quietest of them: the strictest floor.
        unloaded = min(calm, key=lambda one: one.p99)
        for latency in (*calm, pressed):
            self.report.expect(not latency.lost, f"{what}: another pair lost {latency.lost}")
        self.report.say(f"{what}: another pair {pressed}; unloaded {unloaded}")
        margin = max(P99_MARGIN, P99_NOISE_US / unloaded.p99 / P99_BAR)
        unit = "x its unloaded p99"
        self.report.time(f"{what}: another pair's p99", pressed.p99 / unloaded.p99, unit, bar=P99_BAR, margin=margin)


@contextlib.contextmanager
def stage(report: Report, *arguments: str, prefix: Sequence[str] = (), **settings: object) -> Iterator[Stage]:
    """A broker with ``settings`` (attribute names of its limits) and the others, who have joined and are warm."""
    chosen = {f"PI_INTERCOM_{name.upper()}": str(value) for name, value in settings.items()}
    if report.plant:
        chosen["PYTHONPATH"] = f"{report.plant}:{ROOT}"
    with running_daemon("--idle-exit-s", "60", *arguments, environment=chosen, prefix=prefix) as daemon:
        # From here on its log is open, and no descriptor more is its own.
        wait_until(daemon.log_records, "the broker's first records")
        pair = Pair(daemon.socket_path)
        try:
            if report.is_timed:
                for program, processor in zip((daemon, pair.program), processors(), strict=True):
                    pin(program.pid, processor)
            report.expect(not pair.measure(_WARM).lost, "the others lost messages without any load")
            with RawPeer(daemon.socket_path) as observer:
                observer.join(say.register(observer=1))
                yield Stage(daemon, pair, Vitals(daemon.pid), report, observer)
        finally:
            pair.end()


def _prepare() -> None:
    os.sched_setaffinity(0, {processors()[1]})
    step_aside()
