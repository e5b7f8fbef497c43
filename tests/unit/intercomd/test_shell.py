"""The one loop: order, flushing until quiet, the timer, bugs and the end, with scripted core and edges."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.core import effects, events
from intercomd.core.items import Item
from intercomd.shell import LAG_S, Shell
from tests.support.fakes import FakeClock, FakeLog, FakeSpool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from intercomd.core.effects import Effect
    from intercomd.core.events import Event

ITEM = Item(key="d1", kind="letter", facts=b"{}")


class Core:
    """Answers each event by its script; remembers what it was told and when."""

    def __init__(self) -> None:
        self.answers: dict[type, Callable[[Any], list[Effect]]] = {}
        self.heard: list[tuple[Event, float]] = []
        self.deadline: float | None = None
        self.met: list[float] = []
        self.on_deadline: Callable[[], list[Effect]] = list

    def handle(self, event: Event, now: float) -> list[Effect]:
        self.heard.append((event, now))
        return self.answers.get(type(event), lambda _event: [])(event)

    def next_deadline(self) -> float | None:
        return self.deadline

    def handle_deadline(self, now: float) -> list[Effect]:
        self.met.append(now)
        self.deadline = None
        return self.on_deadline()

    @property
    def events(self) -> list[Event]:
        return [event for event, _now in self.heard]


class Edge:
    """A listener whose observations are scripted, one list a flush."""

    def __init__(self) -> None:
        self.applied: list[Effect] = []
        self.flushes: deque[list[Event]] = deque()
        self.flush_count = 0
        self.breaks_on: type | None = None
        self.is_closed = False

    def start(self, report: Callable[[Iterable[Event]], None]) -> None:
        self.report = report

    def apply(self, effect: Effect) -> None:
        if type(effect) is self.breaks_on:
            raise ValueError("planted")
        self.applied.append(effect)

    def flush(self) -> list[Event]:
        self.flush_count += 1
        return self.flushes.popleft() if self.flushes else []

    def close(self) -> None:
        self.is_closed = True


class Stage:
    """A shell on its scripted edges."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.core, self.edge, self.spool, self.log = Core(), Edge(), FakeSpool(), FakeLog()
        self.clock = clock or FakeClock()
        self.shell = Shell(self.core, self.edge, self.spool, self.log, self.clock)
        self.shell.start()

    def on(self, kind: type, *asked: Effect) -> None:
        self.core.answers[kind] = lambda _event: list(asked)


def closed(conn: int) -> events.ConnectionClosed:
    return events.ConnectionClosed(conn, "gone")


def test_a_log_that_breaks_while_it_tells_of_a_bug_does_not_stop_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_error: BaseException, _event: object) -> None:
        raise OSError(24, "Too many open files")

    stage = Stage()
    stage.edge.breaks_on = effects.PauseReading
    stage.on(events.ConnectionClosed, effects.PauseReading(1))
    with monkeypatch.context() as patch:
        patch.setattr(stage.log, "report_bug", refuse)
        with pytest.raises(OSError, match="Too many"):
            stage.edge.report([closed(1)])
    stage.on(events.ConnectionClosed, effects.Close(2, "heard"))
    stage.edge.report([closed(2)])
    assert effects.Close(2, "heard") in stage.edge.applied


def test_a_turn_given_up_for_its_bugs_is_taken_up_again() -> None:
    stage = Stage()
    stage.edge.breaks_on = effects.PauseReading
    stage.on(events.ConnectionClosed, *[effects.PauseReading(1)] * 150)
    stage.core.deadline = stage.clock.now() + 3.0
    stage.edge.report([closed(1)])
    assert len(stage.log.bugs) == 100
    stage.clock.advance(2.0)
    assert len(stage.log.bugs) == 150
    stage.clock.advance(1.0)
    assert stage.core.met


def test_effects_are_applied_in_order_before_the_next_event() -> None:
    stage = Stage()
    stage.core.answers[events.ConnectionClosed] = lambda event: [
        effects.Close(event.conn, "a"),
        effects.PauseReading(event.conn),
    ]
    stage.shell.push([closed(1), closed(2)])
    assert [effect.conn for effect in stage.edge.applied] == [1, 1, 2, 2]  # type: ignore[union-attr]
    assert [type(effect) for effect in stage.edge.applied[:2]] == [effects.Close, effects.PauseReading]


def test_a_turn_flushes_once_behind_all_its_events_and_until_nothing_is_observed() -> None:
    stage = Stage()
    stage.edge.flush_count = 0
    stage.edge.flushes.extend([[events.DeliveriesTaken((1, 2))], [events.DeliveriesHeld((3,))], []])
    stage.shell.push([closed(1), closed(2)])
    assert stage.core.events == [closed(1), closed(2), events.DeliveriesTaken((1, 2)), events.DeliveriesHeld((3,))]
    assert stage.edge.flush_count == 3


def test_events_pushed_within_a_turn_wait_for_their_place() -> None:
    stage = Stage()

    def push_back(event: events.ConnectionClosed) -> list[Effect]:
        if event.conn == 1:
            stage.edge.report([closed(9)])
            assert stage.core.events == [closed(1)]
        return []

    stage.core.answers[events.ConnectionClosed] = push_back
    stage.shell.push([closed(1), closed(2)])
    assert stage.core.events == [closed(1), closed(2), closed(9)]


def test_a_store_answers_within_the_turn() -> None:
    stage = Stage()
    stage.on(events.ConnectionClosed, effects.Store(ITEM))
    stage.shell.push([closed(1)])
    assert stage.core.events[-1] == events.Stored("d1")
    stage.spool.failure = "disk full"
    stage.shell.push([closed(1)])
    assert stage.core.events[-1] == events.StoreFailed("d1", "disk full")


def test_a_log_effect_reaches_the_log() -> None:
    stage = Stage()
    stage.on(events.ConnectionClosed, effects.Log("info", "left", {"conn": 1}))
    stage.shell.push([closed(1)])
    assert stage.log.records == [("info", "left", {"conn": 1})]


# -- bugs --------------------------------------------------------------------------------------------


def test_a_bug_costs_the_connection_that_caused_it_and_nothing_else() -> None:
    stage = Stage()

    def break_on_first(event: events.ConnectionClosed) -> list[Effect]:
        if event.conn == 1:
            raise KeyError("planted")
        return [effects.PauseReading(event.conn)]

    stage.core.answers[events.ConnectionClosed] = break_on_first
    stage.shell.push([closed(1), closed(2)])
    assert [(type(error), event) for error, event in stage.log.bugs] == [(KeyError, closed(1))]
    assert stage.edge.applied == [effects.Close(1, "a bug of the broker"), effects.PauseReading(2)]


def test_the_effects_behind_a_broken_one_are_applied() -> None:
    stage = Stage()
    stage.edge.breaks_on = effects.PauseReading
    stage.on(events.ConnectionClosed, effects.PauseReading(5), effects.ResumeReading(6))
    stage.shell.push([closed(1)])
    assert stage.edge.applied == [effects.ResumeReading(6), effects.Close(1, "a bug of the broker")]
    assert len(stage.log.bugs) == 1


def test_a_bug_of_an_event_without_a_connection_closes_none() -> None:
    stage = Stage()
    stage.core.answers[events.DeliveriesTaken] = lambda _event: [effects.Exit(0, "never"), object()][1:]  # type: ignore[list-item]
    stage.shell.push([events.DeliveriesTaken((1,))])
    assert [type(error) for error, _event in stage.log.bugs] == [KeyError]
    assert stage.edge.applied == []


def test_a_bug_at_every_step_ends_the_turn_and_not_the_broker() -> None:
    stage = Stage()

    def break_always() -> list[Event]:
        raise OSError("planted")

    stage.edge.flush = break_always  # type: ignore[method-assign]
    stage.shell.push([closed(1)])
    assert 1 < len(stage.log.bugs) < 1_000
    del stage.edge.flush
    stage.shell.push([closed(2)])
    assert stage.core.events == [closed(1), closed(2)]


def test_a_bug_in_a_deadline_is_not_met_again_at_once() -> None:
    stage = Stage()
    met = 0

    def break_and_stay() -> list[Effect]:
        nonlocal met
        met += 1
        stage.core.deadline = stage.clock.now()
        raise ZeroDivisionError

    stage.core.on_deadline = break_and_stay
    stage.core.deadline = stage.clock.now() + 1
    stage.shell.push([closed(1)])
    stage.clock.advance(5.5)
    assert 3 <= met <= 6
    assert all(event is None for _error, event in stage.log.bugs)


# -- the timer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("early_s", [0.0, 0.001])
def test_a_deadline_is_met_at_its_time_and_never_before(early_s: float) -> None:
    stage = Stage(FakeClock(early_s=early_s))
    at = stage.clock.now() + 3
    stage.core.deadline = at
    stage.shell.push([closed(1)])
    stage.clock.advance(2.99)
    assert stage.core.met == []
    stage.clock.advance(0.02)
    assert stage.core.met == [at]
    assert len(stage.clock.timers) == 0


def test_time_never_runs_backwards_for_the_core() -> None:
    stage = Stage(FakeClock(early_s=0.5))
    at = stage.clock.now() + 3
    stage.core.deadline = at
    stage.on(events.ConnectionClosed)
    stage.core.on_deadline = lambda: stage.edge.report([closed(7)]) or []  # type: ignore[func-returns-value]
    stage.shell.push([closed(1)])
    stage.clock.advance(3)
    times = [now for _event, now in stage.core.heard]
    assert stage.core.met == [at]
    assert times == sorted(times)
    assert times[-1] == at


def test_an_earlier_deadline_moves_the_one_timer() -> None:
    stage = Stage()
    start = stage.clock.now()
    stage.core.deadline = start + 10
    stage.shell.push([closed(1)])
    stage.core.deadline = start + 4
    stage.shell.push([closed(2)])
    assert [timer.when for timer in stage.clock.timers] == [start + 4]
    stage.clock.advance(4)
    assert stage.core.met == [start + 4]


def test_a_timer_whose_deadline_went_away_does_nothing() -> None:
    stage = Stage()
    stage.core.deadline = stage.clock.now() + 1
    stage.shell.push([closed(1)])
    stage.core.deadline = None
    stage.clock.advance(2)
    assert stage.core.met == []
    stage.core.deadline = stage.clock.now() + 5
    stage.shell.push([closed(1)])
    stage.core.deadline += 5
    stage.clock.advance(6)
    assert stage.core.met == []
    stage.clock.advance(4)
    assert len(stage.core.met) == 1


def test_after_standing_still_sockets_are_read_before_deadlines_are_met() -> None:
    stage = Stage()
    stage.core.deadline = stage.clock.now() + 1
    stage.shell.push([closed(1)])
    stage.clock.stand_still(1 + LAG_S + 0.1)
    assert stage.core.met == []
    # A round of the loop brings what came meanwhile; the next one is quiet.
    stage.shell.push([closed(2)])
    assert stage.clock.run_soon() == 1
    assert stage.core.met == []
    assert stage.clock.run_soon() == 1
    assert len(stage.core.met) == 1
    assert stage.core.events == [closed(1), closed(2)]


def test_catching_up_has_a_bound() -> None:
    stage = Stage()
    stage.core.deadline = stage.clock.now() + 1
    stage.shell.push([closed(1)])
    stage.clock.stand_still(60)
    rounds = 0
    while not stage.core.met:
        stage.shell.push([closed(2)])
        rounds += stage.clock.run_soon()
        assert rounds < 1_000
    assert rounds == 100


def test_a_small_delay_is_no_lag() -> None:
    stage = Stage()
    stage.core.deadline = stage.clock.now() + 1
    stage.shell.push([closed(1)])
    stage.clock.stand_still(1 + LAG_S / 2)
    assert stage.core.met == [stage.clock.now()]


# -- the end -----------------------------------------------------------------------------------------


def test_exit_flushes_closes_and_ends_run() -> None:
    stage = Stage()
    stage.on(events.StopRequested, effects.Close(1, "leaving", is_after_flush=True), effects.Exit(3, "SIGTERM"))

    async def run() -> int:
        # Called once run() waits.
        asyncio.get_running_loop().call_soon(stop)
        return await stage.shell.run()

    def stop() -> None:
        stage.edge.flushes.append([closed(1)])
        stage.shell.push([events.StopRequested("SIGTERM")])

    assert asyncio.run(run()) == 3
    assert stage.shell.exit_status == 3
    assert stage.edge.is_closed
    assert stage.core.events[-1] == closed(1)
    assert stage.log.records[-1] == ("info", "exiting", {"status": 3, "reason": "SIGTERM"})


def test_nothing_is_heard_after_the_end() -> None:
    stage = Stage()
    stage.core.deadline = stage.clock.now() + 1
    stage.on(events.StopRequested, effects.Exit(0, "idle"))
    stage.shell.push([events.StopRequested("idle")])
    stage.shell.push([closed(1)])
    stage.clock.advance(5)
    assert stage.core.events == [events.StopRequested("idle")]
    assert stage.core.met == []
