"""Every vector on everything it can run on: codecs, router under both codecs, a live broker, the client.

Owns which vector runs where and the live brokers that are started for it. Does not own judging one
(``codec_runs``, ``broker_runs``, ``client_runs``).
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Self

from tests.conformance.broker_runs import play
from tests.conformance.catalogue import Vector, cases, vectors
from tests.conformance.client_runs import play_client, play_stream
from tests.conformance.codec_runs import CODECS, check_answers, check_case
from tests.conformance.live_target import LiveTarget
from tests.conformance.targets import RouterTarget
from tests.support.daemon import Daemon, running_daemon

if TYPE_CHECKING:
    from types import TracebackType

TARGETS = ("codecs", "router, stdlib", "router, msgspec", "router, usual", "live", "client")
# A live broker must not leave between two vectors, and nobody likes to wait 1.5 s twenty times.
_LIVE_LIMITS = {"idle_exit_s": None, "stage_delay_s": 0.7}
_ON_BROKERS = ("member", "payload", "conversation")


def targets_of(vector: Vector) -> tuple[str, ...]:
    """Where a vector runs. ``runs_on: ["router"]`` keeps scripted kernels and long times from a live broker."""
    if vector.kind in ("client", "stream"):
        return ("client",)
    codecs = ("codecs",) if vector.kind != "conversation" else ()
    if vector.kind not in _ON_BROKERS:
        return codecs
    live = () if vector.body.get("runs_on") == ["router"] else ("live",)
    return (*codecs, *(f"router, {codec}" for codec in CODECS), *live)


def pairs() -> list[tuple[Vector, str]]:
    return [(vector, target) for vector in vectors() for target in targets_of(vector)]


class LiveBrokers:
    """Live brokers, one for each set of limits, started when first needed and stopped together."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self.daemons: dict[str, Daemon] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def with_limits(self, limits: dict[str, Any]) -> Daemon:
        key = json.dumps(limits, sort_keys=True)
        if key not in self.daemons:
            chosen = {**_LIVE_LIMITS, **limits}
            environment = {f"PI_INTERCOM_{name.upper()}": _word(value) for name, value in chosen.items()}
            self.daemons[key] = self._stack.enter_context(running_daemon(environment=environment))
        return self.daemons[key]


def _word(value: object) -> str:
    return "none" if value is None else str(value)


def run(vector: Vector, target: str, brokers: LiveBrokers) -> int:
    """Run one vector on one target; returns how many single judgements that were.

    Raises:
        AssertionError: something else was observed than the vector says.

    """
    limits = vector.body.get("limits", {})
    if target == "live":
        return play(LiveTarget(brokers.with_limits(limits)), vector)
    if target == "client":
        return play_client(vector) if vector.kind == "client" else play_stream(vector)
    if target == "codecs":
        return _run_codecs(vector)
    codec = target.removeprefix("router, ")
    return play(RouterTarget(codec, CODECS[codec], limits), vector)


def _run_codecs(vector: Vector) -> int:
    if vector.kind == "answer":
        return check_answers(vector)
    table = cases(vector)
    for case in table:
        check_case(case)
    return len(table)
