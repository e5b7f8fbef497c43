"""The judgement on made-up sights: what is an overlap, what only looks like one, and who was nobody's owner."""

from __future__ import annotations

import pytest

from tests.trials.witness.judgement import Hold, Seen, Service, find_overlaps, serves_through


def hold(pid: int, first: float, last: float) -> Hold:
    return Hold(pid, 1000 + pid, first, last)


def service(pid: int, begun: float, ended: float, *, is_at_path: bool = True) -> Service:
    return Service(f"incarnation {pid}", pid, begun, ended, is_at_path)


@pytest.mark.parametrize(
    ("holds", "is_overlap"),
    [
        ([hold(1, 0, 5), hold(2, 6, 9)], False),
        ([hold(1, 0, 5), hold(2, 4, 9)], True),
        ([hold(1, 0, 9), hold(2, 3, 4)], True),
        # Seen in one look only: at some moment of it, so nothing is certain.
        ([hold(1, 0, 9), hold(2, 4, 3)], False),
        # One program that publishes again holds two records for a moment.
        ([hold(1, 0, 5), Hold(1, 7, 4, 9)], False),
    ],
)
def test_two_programs_that_hold_life(holds: list[Hold], is_overlap: bool) -> None:
    assert ("held life at the same time" in str(find_overlaps(Seen(holds=holds)))) is is_overlap


@pytest.mark.parametrize(
    ("services", "is_overlap"),
    [
        ([service(1, 0, 1), service(1, 2, 3), service(2, 4, 5)], False),
        # The first answers again after the second did.
        ([service(1, 0, 1), service(2, 2, 3), service(1, 4, 5)], True),
        # Long answers that cross say nothing about which came first.
        ([service(1, 0, 9), service(2, 1, 8)], False),
        ([service(1, 0, 4), service(2, 3, 6), service(1, 5, 9)], False),
        ([service(1, 0, 1), service(1, 8, 9), service(2, 2, 3)], True),
    ],
)
def test_two_brokers_that_serve(services: list[Service], is_overlap: bool) -> None:
    assert ("served at the same time" in str(find_overlaps(Seen(services=services)))) is is_overlap


@pytest.mark.parametrize(
    ("owner", "is_stranger"), [(hold(2, 0, 9), True), (hold(1, 0, 9), False), (hold(2, 4.5, 9), False)]
)
def test_somebody_else_at_the_path(owner: Hold, is_stranger: bool) -> None:
    seen = Seen(holds=[owner], services=[service(1, 4, 5)])
    assert ("was reached at the path while" in str(find_overlaps(seen))) is is_stranger
    seen.services = [service(1, 4, 5, is_at_path=False)]
    assert find_overlaps(seen) == []


def test_an_owner_that_nobody_can_name() -> None:
    assert find_overlaps(Seen(nameless=[(7, 0.1)])) == []
    assert "nobody who could be named" in str(find_overlaps(Seen(nameless=[(7, 0.9)])))


def test_serving_through_a_moment() -> None:
    services = [service(1, 0, 1), service(1, 5, 6), service(2, 8, 9)]
    assert serves_through(services, 2, 3)
    assert not serves_through(services, 2, 5.5)
    assert not serves_through(services, 6.5, 7)
