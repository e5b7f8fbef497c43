"""Running the generator against a broker: its options, its samples, its own share of the processor.

Owns one run. Does not own the generator itself (``load``).
"""

from __future__ import annotations

import array
import itertools
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import machine, watching
from bench.spreads import percentile

if TYPE_CHECKING:
    from bench.brokers import Broker
    from bench.building import Programs
    from bench.machine import Placement

# A run takes seconds; beyond this something hangs.
_DEADLINE_S = 300.0
# Peer IDs of one run never meet those of another at the same broker, so no message counts as sent twice.
_tags = itertools.count(1)


class Failed(RuntimeError):
    """The generator could not measure: what it said."""


@dataclass(frozen=True)
class Run:
    """What one run found. Times in nanoseconds; ``broker_cpu_ns`` is what the broker used during all of it."""

    samples: array.array[int]
    messages: int
    all_messages: int
    elapsed_ns: int
    lifetime_ns: int
    cpu_ns: int
    broker_cpu_ns: int
    queued: int

    def at_us(self, share: float) -> float:
        return percentile(self.samples, share) / 1000

    @property
    def rate_per_s(self) -> float:
        return self.messages / self.elapsed_ns * 1e9

    @property
    def generator_share(self) -> float:
        """Of the run's time, in percent."""
        return 100 * self.cpu_ns / self.lifetime_ns

    @property
    def broker_us_per_message(self) -> float:
        return self.broker_cpu_ns / self.all_messages / 1000


def generate(programs: Programs, broker: Broker, placement: Placement, what: str, **options: int) -> Run:
    """One run of the generator.

    Raises:
        Failed: the broker refused, closed or fell silent, or the program failed.
    """
    process, samples_path = begin(programs, broker, placement, what, **options)
    return finish(process, samples_path, broker)


@dataclass(frozen=True)
class Started:
    """A generator that runs, and what the broker had used before."""

    process: subprocess.Popen[str]
    broker_cpu_ns: int


def begin(programs: Programs, broker: Broker, placement: Placement, what: str, **options: int) -> tuple[Started, str]:
    """Start a run; ``finish`` waits for it."""
    handle, samples_path = tempfile.mkstemp(prefix="icb-samples-")
    os.close(handle)
    words = [f"{name}={value}" for name, value in options.items()]
    words += [f"path={broker.path}", f"samples={samples_path}", f"tag={next(_tags)}"]
    used = watching.cpu_ns(broker.pid)
    with machine.pinned(placement.generator):
        process = subprocess.Popen(
            [*programs.generator, what, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    return Started(process, used), samples_path


def finish(started: Started, samples_path: str, broker: Broker) -> Run:
    """Wait for a run. Raises as ``generate``."""
    try:
        said, complaint = started.process.communicate(timeout=_DEADLINE_S)
        if started.process.returncode:
            raise Failed(complaint.strip()[-300:])
        found = json.loads(said)
        samples = array.array("I")
        with open(samples_path, "rb") as file:
            samples.frombytes(file.read())
    except subprocess.TimeoutExpired as error:
        started.process.kill()
        raise Failed(f"the generator did not end within {_DEADLINE_S:g} s") from error
    finally:
        os.unlink(samples_path)
    return Run(
        samples,
        found["messages"],
        found["all"],
        found["elapsed_ns"],
        found["lifetime_ns"],
        found["cpu_ns"],
        watching.cpu_ns(broker.pid) - started.broker_cpu_ns,
        found["queued"],
    )
