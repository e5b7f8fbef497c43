"""Whose turn it is among those whose frames are not over: one in each turn of the loop, in order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from intercomd.edges.listener.rounds import Rounds

if TYPE_CHECKING:
    from collections.abc import Callable


class Loop:
    """Collects what is called soon; ``turn`` calls it."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, action: Callable[[], None]) -> None:
        self.soon.append(action)

    def turn(self) -> None:
        called, self.soon = self.soon, []
        for action in called:
            action()


def make(go_on: Callable[[Any], None] | None = None) -> tuple[Rounds, Loop, list[int]]:
    loop, taken = Loop(), []

    def note(connection: Any) -> None:
        taken.append(connection.number)
        if go_on is not None:
            go_on(connection)

    return Rounds(loop, note), loop, taken  # type: ignore[arg-type]


def connection(number: int) -> Any:
    return SimpleNamespace(number=number)


def test_one_goes_on_in_each_turn_in_the_order_of_arrival() -> None:
    rounds, loop, taken = make()
    for number in (3, 1, 2):
        rounds.add(connection(number))
    seen = []
    for _turn in range(4):
        loop.turn()
        seen.append(list(taken))
    assert seen == [[3], [3, 1], [3, 1, 2], [3, 1, 2]]
    assert not loop.soon


def test_whoever_is_not_done_goes_behind_the_others() -> None:
    rounds, loop, taken = make(lambda one: rounds.add(one) if taken.count(one.number) < 3 else None)
    rounds.add(connection(1))
    rounds.add(connection(2))
    while loop.soon:
        loop.turn()
    assert taken == [1, 2, 1, 2, 1, 2]


def test_whoever_waits_already_keeps_its_place() -> None:
    rounds, loop, taken = make()
    for number in (1, 2, 1):
        rounds.add(connection(number))
    while loop.soon:
        loop.turn()
    assert taken == [1, 2]


def test_a_removed_one_does_not_go_on_and_the_others_do() -> None:
    rounds, loop, taken = make()
    rounds.add(connection(1))
    rounds.add(connection(2))
    rounds.remove(connection(1))
    rounds.remove(connection(9))
    while loop.soon:
        loop.turn()
    assert taken == [2]
    rounds.add(connection(1))
    while loop.soon:
        loop.turn()
    assert taken == [2, 1]


def test_one_that_fails_does_not_hold_up_the_others() -> None:
    def fail(one: Any) -> None:
        if one.number == 1:
            raise ValueError("planted")

    rounds, loop, taken = make(fail)
    rounds.add(connection(1))
    rounds.add(connection(2))
    try:
        loop.turn()
    except ValueError:
        pass
    loop.turn()
    assert taken == [1, 2]
