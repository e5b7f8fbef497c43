"""What a broker makes of the limits that it inherits; detaching is in tests/integration/ownership."""

from __future__ import annotations

import os
import resource
import signal

import pytest

from intercomd import settling

HUGE = resource.RLIM_INFINITY


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Made-up limits of this process, by kind."""
    held: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: held.get(kind, (HUGE, HUGE)))
    monkeypatch.setattr(resource, "setrlimit", held.__setitem__)
    return held


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, 524_288), (65_536, 524_288)),
        ((1024, 4096), (4096, 4096)),
        ((1024, HUGE), (65_536, HUGE)),
        ((100_000, 524_288), (100_000, 524_288)),
        ((1024, 1 << 30), (65_536, 1 << 30)),
    ],
)
def test_descriptors_are_raised_as_far_as_they_are_of_use(
    limits: dict[int, tuple[int, int]], before: tuple[int, int], after: tuple[int, int]
) -> None:
    limits[resource.RLIMIT_NOFILE] = before
    settling._raise_fds()
    assert limits[resource.RLIMIT_NOFILE] == after


def test_unlimited_descriptors_stay(limits: dict[int, tuple[int, int]]) -> None:
    settling._raise_fds()
    assert resource.RLIMIT_NOFILE not in limits


def test_the_limits_of_an_agents_shell_are_lifted(limits: dict[int, tuple[int, int]]) -> None:
    before = os.umask(0o022)
    try:
        limits[resource.RLIMIT_CPU] = (60, HUGE)
        limits[resource.RLIMIT_AS] = (1 << 28, 1 << 33)
        settling.settle()
        assert limits[resource.RLIMIT_CPU] == (HUGE, HUGE)
        assert limits[resource.RLIMIT_AS] == (1 << 33, 1 << 33)
        # A core of the broker would hold message bodies.
        assert limits[resource.RLIMIT_CORE] == (0, HUGE)
        assert os.umask(0o022) == 0o077
    finally:
        os.umask(before)


def test_room_is_counted_and_given_back() -> None:
    before = os.listdir("/proc/self/fd")
    assert settling.count_free_fds(7) == 7
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("error", [OSError(1, "Operation not permitted"), ValueError("not allowed to raise")])
def test_a_limit_that_cannot_be_set_stays(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(_kind: int, _limits: tuple[int, int]) -> None:
        raise error

    monkeypatch.setattr(resource, "setrlimit", refuse)
    settling._raise_fds()
    settling._set_soft_limit(resource.RLIMIT_STACK, HUGE)


def test_signals_wait_while_nobody_answers_them() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        settling.hold_signals()
        assert set(settling.ANSWERED_SIGNALS) <= signal.pthread_sigmask(signal.SIG_BLOCK, ())
        settling.take_signals()
        assert not set(settling.ANSWERED_SIGNALS) & signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
