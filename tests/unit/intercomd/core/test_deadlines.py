"""One deadline a key: every short sequence against a plain dictionary."""

from __future__ import annotations

import itertools

from intercomd.core.deadlines import Deadlines, Key

A: Key = ("a",)
B: Key = ("b", 1)
STEPS = (("set", A, 1.0), ("set", A, 2.0), ("set", B, 1.0), ("set", B, 3.0), ("clear", A, 0.0), ("clear", B, 0.0))


def test_every_short_sequence_follows_a_dictionary() -> None:
    for sequence in itertools.product(STEPS, repeat=4):
        deadlines: Deadlines = Deadlines()
        model: dict[Key, float] = {}
        for step, key, at in sequence:
            if step == "set":
                deadlines.set(key, at)
                model[key] = at
            else:
                deadlines.clear(key)
                model.pop(key, None)
            assert deadlines.next_at() == min(model.values(), default=None)
            assert deadlines.keys() == set(model)
            assert len(deadlines) == len(model)
        _drain(deadlines, model)


def _drain(deadlines: Deadlines, model: dict[Key, float]) -> None:
    for now in (0.5, 1.0, 2.5, 9.0):
        taken = []
        while (key := deadlines.take_due(now)) is not None:
            taken.append(key)
            assert key not in deadlines
        due = {key for key, at in model.items() if at <= now}
        assert set(taken) == due
        assert len(taken) == len(due)
        assert [model[key] for key in taken] == sorted(model[key] for key in taken)
        model = {key: at for key, at in model.items() if key not in due}
    assert deadlines.next_at() is None


def test_equal_times_are_taken_in_the_order_they_were_set() -> None:
    deadlines = Deadlines()
    for number in (3, 1, 2):
        deadlines.set(("n", number), 5.0)
    assert [deadlines.take_due(5.0) for _ in range(4)] == [("n", 3), ("n", 1), ("n", 2), None]


def test_a_deadline_that_is_put_off_for_ever_costs_no_memory() -> None:
    deadlines = Deadlines()
    deadlines.set(B, 0.5)
    for number in range(10_000):
        deadlines.set(A, 1.0 + number)
    assert len(deadlines._heap) < 200
    assert deadlines.take_due(9.0) == B
    assert deadlines.take_due(9_999.0) is None
    assert deadlines.take_due(10_000.0) == A


def test_cleared_deadlines_cost_no_memory() -> None:
    deadlines = Deadlines()
    for number in range(10_000):
        deadlines.set(("n", number), float(number))
        deadlines.clear(("n", number))
    assert len(deadlines._heap) < 200
    assert len(deadlines) == 0
    assert deadlines.next_at() is None
