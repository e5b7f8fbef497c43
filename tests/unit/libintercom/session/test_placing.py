"""Calling a host: in order, one at a time, and what each way of ending means."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session import happenings, host
from libintercom.session.placing import TOO_LONG, Placing
from tests.support.arrivals import host_input
from tests.support.fake_host import FakeHost
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Callable


def play(told: Callable[[Placing, FakeHost], object], timeout_s: float = 5.0) -> tuple[list[Any], list[str], FakeHost]:
    """What the inbox was told, what failed, and the host, once everything asked for has ended."""

    async def run() -> tuple[list[Any], list[str], FakeHost]:
        fake, heard, failures = FakeHost(), list[Any](), list[str]()
        placing = Placing(fake, heard.append, failures.append, timeout_s)
        told(placing, fake)
        await wait_until_async(lambda: placing.is_idle, "the host's calls to end")
        return heard, failures, fake

    return asyncio.run(run())


def raising(failure: Exception) -> Any:
    def place(_batch: Any) -> Any:
        raise failure

    return place


def test_batches_are_placed_in_order_and_confirmed() -> None:
    def told(placing: Placing, _fake: FakeHost) -> None:
        placing.place([host_input("m1"), host_input("m2")])
        placing.wake()
        placing.place([host_input("m3")])

    heard, failures, fake = play(told)
    assert fake.batches == [["m1", "m2"], ["m3"]]
    assert [one.placements for one in heard] == [{"m1": "e-m1", "m2": "e-m2"}, {"m3": "e-m3"}]
    assert (fake.wakes, failures) == (1, [])


def test_a_slow_host_is_waited_for_and_never_overtaken() -> None:
    order: list[str] = []

    async def slowly(batch: Any) -> host.Placement:
        order.append(f"begin {batch[0].message_id}")
        await asyncio.get_running_loop().run_in_executor(None, order.append, "work")
        order.append("end")
        return host.Placement(entries={})

    def told(placing: Placing, fake: FakeHost) -> None:
        fake.on_place = slowly
        placing.place([host_input("m1")])
        placing.place([host_input("m2")])

    heard, _failures, _fake = play(told)
    assert order == ["begin m1", "work", "end", "begin m2", "work", "end"]
    # Taken in and not placed: the host says later.
    assert heard == []


def test_only_messages_of_the_batch_are_confirmed() -> None:
    def told(placing: Placing, fake: FakeHost) -> None:
        fake.on_place = lambda _batch: host.Placement(entries={"m1": "e", "another": "e"})
        placing.place([host_input("m1")])

    (placed,), _failures, _fake = play(told)
    assert placed.placements == {"m1": "e"}


@pytest.mark.parametrize(
    ("failure", "kind", "word"),
    [
        (host.HostRefused("full"), happenings.HostRefused, "full"),
        (host.HostFailed("broke off"), happenings.HostUnsure, "broke off"),
        (ValueError("a bug"), happenings.HostUnsure, "ValueError: a bug"),
    ],
)
def test_a_host_that_raises(failure: Exception, kind: Any, word: str) -> None:
    def told(placing: Placing, fake: FakeHost) -> None:
        fake.on_place = raising(failure)
        placing.place([host_input("m1"), host_input("m2")])

    heard, failures, _fake = play(told)
    assert heard == [kind(message_ids=("m1", "m2"), reason=word)]
    assert failures == [word]


def test_a_host_that_hangs_is_given_up_and_the_next_call_comes() -> None:
    async def never(_batch: Any) -> None:
        await asyncio.get_running_loop().create_future()

    def told(placing: Placing, fake: FakeHost) -> None:
        fake.on_place = never
        placing.place([host_input("m1")])
        placing.wake()

    heard, failures, fake = play(told, timeout_s=0.05)
    assert heard == [happenings.HostUnsure(message_ids=("m1",), reason=TOO_LONG)]
    assert (failures, fake.wakes) == ([TOO_LONG], 1)


@pytest.mark.parametrize(
    ("finding", "happened"),
    [
        (host.Placed(entry_id="e"), happenings.PlacementFound(message_id="m", placement="e")),
        (host.Absent(), happenings.PlacementAbsent(message_id="m")),
        (host.CannotTell(reason="gone"), happenings.PlacementUnknown(message_id="m", reason="gone")),
        (None, happenings.PlacementUnknown(message_id="m", reason="")),
        (raising(host.HostFailed("no")), happenings.PlacementUnknown(message_id="m", reason="no")),
    ],
)
def test_what_a_host_finds(finding: Any, happened: Any) -> None:
    def told(placing: Placing, fake: FakeHost) -> None:
        fake.finding = finding
        placing.find("m")

    heard, _failures, _fake = play(told)
    assert heard == [happened]


def test_a_wake_that_fails_is_said() -> None:
    def told(placing: Placing, fake: FakeHost) -> None:
        fake.wake = lambda: raising(OSError("asleep"))(None)  # type: ignore[method-assign]
        placing.wake()

    _heard, failures, _fake = play(told)
    assert failures == ["OSError: asleep"]


def test_what_is_abandoned_is_told_nobody() -> None:
    async def run() -> list[Any]:
        fake, heard = FakeHost(), list[Any]()
        placing = Placing(fake, heard.append, heard.append)
        placing.place([host_input("m1")])
        placing.place([host_input("m2")])
        placing.abandon()
        await wait_until_async(lambda: placing.is_idle, "the end")
        return heard + fake.batches

    assert asyncio.run(run()) == []
