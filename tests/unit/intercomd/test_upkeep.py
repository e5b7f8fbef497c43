"""Staying the owner: what each look leads to, with a scripted ownership, endpoint and loop."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from intercomd import upkeep as upkeep_module
from intercomd.edges.ownership import selfcheck
from intercomd.edges.ownership.holding import LEAVE_DEADLINE_S, TOUCH_INTERVAL_S
from intercomd.edges.ownership.outcomes import already, claimed, uncertain
from intercomd.upkeep import Upkeep
from libintercom import endpoint
from libintercom.endpoint import Attempt
from tests.support.fakes import FakeClock, FakeLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.fakes import FakeTimer

PATH = "/run/broker.sock"
# Above any pid of this system.
OTHER_PID = 5_000_000


class Loop:
    """The part of an event loop that upkeep uses, on a clock moved by hand."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.time = self.clock.now

    def call_later(self, delay_s: float, action: Callable[[], None]) -> FakeTimer:
        return self.clock.call_at(self.clock.now() + delay_s, action)


@dataclass
class Ownership:
    """What is held, as a script."""

    sight: selfcheck.Sight = field(
        default_factory=lambda: selfcheck.Sight(is_directory_current=True, socket="ours", record="ours")
    )
    republished: list[Any] = field(default_factory=lambda: [None])
    restored: list[bool] = field(default_factory=lambda: [True])
    withdrawals: list[bool | OSError] = field(default_factory=lambda: [True])
    calls: list[str] = field(default_factory=list)
    places: Any = field(default_factory=lambda: SimpleNamespace(socket=PATH))
    listening: str = "another socket"

    def check(self) -> selfcheck.Sight:
        return self.sight

    def republish(self) -> Any:
        self.calls.append("republish")
        return self.republished.pop(0)

    def restore_record(self) -> bool:
        self.calls.append("restore")
        return self.restored.pop(0)

    def touch(self) -> None:
        self.calls.append("touch")

    def withdraw(self) -> bool:
        self.calls.append("withdraw")
        outcome = self.withdrawals.pop(0) if len(self.withdrawals) > 1 else self.withdrawals[0]
        if isinstance(outcome, OSError):
            raise outcome
        return outcome


class Endpoint:
    """The listener's part: ``arrives`` is whether a probe comes to it."""

    def __init__(self) -> None:
        self.is_accepting = True
        self.awaited: dict[bytes, Callable[[], None]] = {}
        self.replaced: list[object] = []

    def expect(self, nonce: bytes, seen: Callable[[], None]) -> None:
        self.awaited[nonce] = seen

    def forget(self, nonce: bytes) -> None:
        self.awaited.pop(nonce, None)

    def replace(self, listening: object) -> None:
        self.replaced.append(listening)


class Post:
    """An upkeep at its post. ``outcome`` is what a probe finds, ``is_ours`` whether it arrives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop, self.ownership, self.endpoint, self.log = Loop(), Ownership(), Endpoint(), FakeLog()
        self.outcome, self.is_ours, self.probes = endpoint.CONNECTED, True, 0
        self.peer_pid: int | None = None
        self.left: list[str] = []
        monkeypatch.setattr(upkeep_module, "probe", self._probe)
        self.upkeep = Upkeep(
            cast("Any", self.ownership), cast("Any", self.endpoint), cast("Any", self.loop), self.log, self.left.append
        )

    def _probe(self, path: str, nonce: bytes) -> Attempt:
        assert path == PATH
        self.probes += 1
        if self.is_ours and self.outcome == endpoint.CONNECTED:
            self.loop.clock.call_at(self.loop.time(), self.endpoint.awaited[nonce])
        return Attempt(outcome=self.outcome, found="", path=path, peer_pid=self.peer_pid)

    def look(self) -> None:
        """Look now, and let the probe arrive."""
        self.upkeep.look()
        self.loop.clock.advance(0.0)


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Post:
    return Post(monkeypatch)


def test_it_looks_every_minute_and_keeps_what_is_in_its_place(post: Post) -> None:
    post.upkeep.start()
    post.loop.clock.advance(5 * selfcheck.CHECK_INTERVAL_S + 1)
    assert post.probes == 5
    assert (post.ownership.calls, post.left, post.log.records) == ([], [], [])
    assert len(post.loop.clock.timers) == 1
    assert post.endpoint.awaited == {}


def test_a_second_look_waits_for_the_first(post: Post) -> None:
    post.upkeep.look()
    post.upkeep.look()
    assert post.probes == 1


def test_a_probe_that_does_not_come_back_means_somebody_else(post: Post) -> None:
    post.is_ours = False
    post.look()
    assert post.left == []
    post.loop.clock.advance(selfcheck.NONCE_TIMEOUT_S)
    assert post.left == ["somebody else serves the path"]
    assert post.ownership.calls == []


def test_another_program_that_is_known_by_its_pid_is_not_waited_for(post: Post) -> None:
    post.is_ours, post.peer_pid = False, OTHER_PID
    post.look()
    assert post.left == ["somebody else serves the path"]


def test_our_own_pid_is_proof_though_the_nonce_is_late(post: Post) -> None:
    post.is_ours, post.peer_pid = False, os.getpid()
    post.look()
    post.loop.clock.advance(selfcheck.NONCE_TIMEOUT_S)
    assert post.left == []


def test_while_nothing_is_accepted_a_missing_probe_proves_nothing(post: Post) -> None:
    post.is_ours, post.endpoint.is_accepting = False, False
    post.look()
    post.loop.clock.advance(selfcheck.NONCE_TIMEOUT_S)
    assert post.left == []
    post.is_ours = post.endpoint.is_accepting = True
    post.loop.clock.advance(1.0)
    assert post.probes == 2
    assert post.left == []


@pytest.mark.parametrize("outcome", [endpoint.ABSENT, endpoint.REFUSED])
def test_a_lost_path_is_published_again_and_served(post: Post, outcome: str) -> None:
    post.outcome = outcome
    post.look()
    assert post.ownership.calls == ["republish"]
    assert post.endpoint.replaced == ["another socket"]
    assert [what for _level, what, _parts in post.log.records] == ["self-check", "published again"]


def test_who_lost_the_path_to_another_broker_leaves(post: Post) -> None:
    post.outcome = endpoint.ABSENT
    post.ownership.republished = [already("a broker listens")]
    post.look()
    assert post.left == ["a broker listens"]
    assert post.endpoint.replaced == []
    assert post.loop.clock.timers == []


@pytest.mark.parametrize(("outcome", "delay_s"), [(claimed("busy"), 1.0), (uncertain("who knows"), 60.0)])
def test_what_cannot_be_published_now_is_tried_again(post: Post, outcome: object, delay_s: float) -> None:
    post.outcome = endpoint.ABSENT
    post.ownership.republished = [outcome, None]
    post.look()
    assert post.endpoint.replaced == []
    post.loop.clock.advance(delay_s - 0.1)
    assert post.ownership.calls == ["republish"]
    post.loop.clock.advance(0.2)
    assert post.endpoint.replaced == ["another socket"]


def test_a_missing_record_is_restored(post: Post) -> None:
    post.ownership.sight = post.ownership.sight.replace(record="missing")
    post.ownership.restored = [False, True]
    post.look()
    post.loop.clock.advance(1.0)
    assert post.ownership.calls == ["restore", "restore"]


def test_what_stays_in_the_way_is_looked_at_less_and_less_and_told_once(post: Post) -> None:
    """A living foreign program's record may stay for days: no look every second, no line in the log for each."""
    post.ownership.sight = post.ownership.sight.replace(record="other")
    post.ownership.restored = [False] * 60
    post.look()
    post.loop.clock.advance(20 * selfcheck.CHECK_INTERVAL_S)
    assert 20 <= post.probes <= 30
    assert [what for _level, what, _parts in post.log.records] == ["self-check"]
    for record in ("ours", "other"):
        post.ownership.sight = post.ownership.sight.replace(record=record)
        post.look()
    assert [what for _level, what, _parts in post.log.records] == ["self-check"] * 2
    before = post.probes
    post.loop.clock.advance(1.0)
    assert post.probes == before + 1


def test_a_claim_that_stays_in_the_way_is_told_once(post: Post) -> None:
    post.outcome = endpoint.ABSENT
    post.ownership.republished = [claimed("somebody's claim")] * 30
    post.look()
    post.loop.clock.advance(10 * selfcheck.CHECK_INTERVAL_S)
    assert 10 <= post.probes <= 20
    assert [what for _level, what, _parts in post.log.records] == ["self-check", "not published again"]


def test_files_are_touched_before_a_cleaner_thinks_them_old(post: Post) -> None:
    post.upkeep.start()
    post.loop.clock.advance(TOUCH_INTERVAL_S - 1)
    assert post.ownership.calls == []
    post.loop.clock.advance(2 * selfcheck.CHECK_INTERVAL_S)
    assert post.ownership.calls == ["touch"]


def test_withdrawing_waits_for_the_lock_without_blocking(post: Post) -> None:
    post.upkeep.start()
    post.ownership.withdrawals = [False, False, True]
    done: list[float] = []
    post.upkeep.withdraw(lambda: done.append(post.loop.time()))
    assert done == []
    post.loop.clock.advance(1.0)
    assert len(done) == 1
    assert post.ownership.calls == ["withdraw"] * 3
    post.loop.clock.advance(10 * selfcheck.CHECK_INTERVAL_S)
    assert post.probes == 0


def test_a_lock_that_stays_held_leaves_the_files(post: Post) -> None:
    post.ownership.withdrawals = [False]
    done: list[float] = []
    start = post.loop.time()
    post.upkeep.withdraw(lambda: done.append(post.loop.time() - start))
    post.loop.clock.advance(2 * LEAVE_DEADLINE_S)
    assert len(done) == 1
    assert LEAVE_DEADLINE_S <= done[0] < LEAVE_DEADLINE_S + 0.1


def test_files_that_cannot_be_removed_are_left_and_said(post: Post) -> None:
    post.ownership.withdrawals = [OSError(5, "Input/output error")]
    done: list[bool] = []
    post.upkeep.withdraw(lambda: done.append(True))
    assert done == [True]
    assert post.log.records[0][1] == "files left behind"


def test_nothing_follows_from_a_look_that_ends_after_leaving_began(post: Post) -> None:
    post.outcome, post.is_ours = endpoint.CONNECTED, False
    post.upkeep.look()
    post.upkeep.withdraw(lambda: None)
    post.loop.clock.advance(selfcheck.NONCE_TIMEOUT_S + 1)
    assert post.left == []


@pytest.mark.parametrize("step", ["check", "republish", "restore_record"])
def test_a_look_that_fails_is_told_and_followed_by_another(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that somebody closed to us, a full disk: the next look may find it mended."""

    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    post = Post(monkeypatch)
    post.ownership.sight = selfcheck.Sight(is_directory_current=True, socket="ours", record="missing")
    if step == "republish":
        post.outcome = endpoint.ABSENT
    monkeypatch.setattr(post.ownership, step, refuse)
    post.look()
    assert any("Permission denied" in str(parts) for _level, _what, parts in post.log.records)
    before = post.probes
    post.loop.clock.advance(2.0)
    assert post.probes > before
