"""Idle exit, stopping in order, the end: what defers each, and that nothing keeps the broker for ever."""

from __future__ import annotations

import itertools

import pytest

from intercomd.core import effects, events
from tests.support.conversation import Conversation
from tests.support.sayings import ask, list_sessions, register, replace, send

OBSERVER = {"ext": 1, "observer": 1}


def decided(talk: Conversation) -> list[effects.Effect]:
    """Watch what the broker asks for; the list grows as the conversation goes on."""
    seen: list[effects.Effect] = []
    carry_out = talk.carry_out

    def watch(effect: effects.Effect) -> None:
        seen.append(effect)
        carry_out(effect)

    talk.carry_out = watch  # type: ignore[method-assign]
    return seen


def has_ended(talk: Conversation) -> bool:
    return talk.exit is not None


# -- idle ----------------------------------------------------------------------------------------------------


def test_a_broker_that_nobody_joins_leaves_after_five_seconds() -> None:
    talk = Conversation().after(4.999)
    assert not has_ended(talk)
    talk.after(0.001)
    assert talk.exit == effects.Exit(0, "idle")


def test_a_session_keeps_it_and_its_end_begins_the_time_anew() -> None:
    talk = Conversation().after(3).joins("a").after(3_600)
    assert not has_ended(talk)
    talk.hangs_up("a").after(4.999)
    assert not has_ended(talk)
    talk.after(0.001)
    assert has_ended(talk)


def test_one_that_comes_in_time_cancels_it() -> None:
    talk = Conversation().joins("a").hangs_up("a").after(4.9).joins("b").after(100)
    assert not has_ended(talk)


def test_a_supervised_broker_never_leaves_by_itself() -> None:
    talk = Conversation(idle_exit_s=None).joins("a").hangs_up("a").after(100_000)
    assert not has_ended(talk)
    assert talk.router.next_deadline() is None


def test_whoever_is_about_to_register_is_waited_for() -> None:
    talk = Conversation().after(4).connects("a").after(4)
    assert not has_ended(talk)
    talk.joins("a").after(100)
    assert not has_ended(talk)


def test_whoever_never_registers_is_not_waited_for_longer() -> None:
    talk = Conversation().after(4).connects("a").after(4.999)
    assert not has_ended(talk)
    talk.after(0.001)
    assert has_ended(talk)


def test_an_observer_does_not_keep_it() -> None:
    talk = Conversation().joins("o", **OBSERVER).after(5)
    assert has_ended(talk)


def test_an_observer_that_registers_late_does_not_keep_it() -> None:
    talk = Conversation().after(4).connects("o").after(2).says("o", register("watch", **OBSERVER))
    assert has_ended(talk)


def test_an_observer_is_answered_before_the_broker_leaves_and_no_longer_kept() -> None:
    """A list that is owed defers the exit; once it is answered nothing else must."""
    talk = Conversation(input_burst_bytes=300, input_bytes_per_s=40.0).joins("o", **OBSERVER).after(4.5)
    talk.says("o", {"type": "health", "requestId": "h" * 400}, list_sessions())
    assert talk.router.flow.late
    talk.after(0.6)
    assert not has_ended(talk)
    talk.after(2.5)
    assert has_ended(talk)
    assert [frame["type"] for frame in talk.receives("o")] == ["health_ok", "sessions"]


def test_nobody_defers_it_for_more_than_a_minute() -> None:
    talk = Conversation()
    for at in range(16):
        talk.connects(f"c{at}").after(4)
    assert not has_ended(talk)
    talk.connects("last").after(1)
    assert has_ended(talk)


def test_a_client_in_the_backlog_cancels_it() -> None:
    talk = Conversation()
    talk.endpoint = "waits"
    talk.after(5)
    talk.connects("a").happens(events.StopCancelled()).joins("a").after(100)
    assert not has_ended(talk)
    talk.hangs_up("a").after(5).happens(events.EndpointReleased())
    assert has_ended(talk)


def test_a_client_in_the_backlog_that_goes_again_only_defers_it() -> None:
    talk = Conversation()
    talk.endpoint = "waits"
    talk.after(5).connects("a").happens(events.StopCancelled()).hangs_up("a").after(5)
    talk.happens(events.EndpointReleased())
    assert has_ended(talk)


def test_idle_exit_can_be_cancelled_and_a_stop_cannot() -> None:
    idle, stop = Conversation(), Conversation().joins("a")
    seen = decided(idle), decided(stop)
    idle.after(5)
    stop.happens(events.StopRequested("SIGTERM"))
    asked = [next(effect for effect in each if isinstance(effect, effects.StopAccepting)) for each in seen]
    assert asked == [effects.StopAccepting("idle", is_cancellable=True), effects.StopAccepting("SIGTERM")]


# -- leaving idle, with observers connected -------------------------------------------------------------------


def leaving_with_a_slow_observer() -> Conversation:
    talk = Conversation().joins("o", **OBSERVER).holds("o").says("o", list_sessions())
    talk.after(5)
    assert not has_ended(talk)
    return talk


def test_the_end_of_the_last_slow_observer_is_the_end() -> None:
    talk = leaving_with_a_slow_observer().hangs_up("o")
    assert has_ended(talk)


def test_a_slow_observer_that_reads_gets_its_answer_first() -> None:
    talk = leaving_with_a_slow_observer().reads("o")
    assert has_ended(talk)
    assert [frame["type"] for frame in talk.receives("o")] == ["sessions"]


def test_a_slow_observer_is_waited_for_five_seconds_at_most() -> None:
    talk = leaving_with_a_slow_observer().after(4.999)
    assert not has_ended(talk)
    talk.after(0.001)
    assert has_ended(talk)


# -- stopping ------------------------------------------------------------------------------------------------


def test_a_stop_ends_every_connection_after_what_was_written() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").joins("o", **OBSERVER).connects("u")
    talk.says("a", send("bob", "m1")).happens(events.StopRequested("SIGTERM"))
    talk.expects_closed("a", "b", "o", "u").expects("a", {"type": "delivered", "messageId": "m1"})
    assert talk.exit == effects.Exit(0, "SIGTERM")
    assert talk.router.next_deadline() is None


def test_nothing_is_decided_after_the_end() -> None:
    talk = Conversation().joins("a", "alice").happens(events.StopRequested("SIGTERM"))
    number = talk.number("a")
    assert talk.router.handle(events.ConnectionClosed(number, "x"), talk.now) == []
    assert talk.router.handle_deadline(talk.now + 1_000) == []


def test_a_stop_waits_for_what_a_slow_recipient_has_not_taken() -> None:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob").holds("b").says("a", send("bob", "m1"))
    talk.happens(events.StopRequested("SIGTERM"))
    assert not has_ended(talk)
    talk.expects_open("a", "b").reads("b").expects("b", {"type": "message", "...": True})
    assert has_ended(talk)


def test_a_stop_waits_for_staged_messages_that_find_no_room_at_once() -> None:
    """The endpoint is often given up before the flushed messages met the recipient's full socket."""
    talk = Conversation().joins("a", "alice").joins("b", "bob", status="idle").says("a", replace("bob", "m1", "t"))
    talk.holds("b").happens(events.StopRequested("SIGTERM"))
    assert not has_ended(talk)
    talk.reads("b").expects("b", {"type": "message", "...": True})
    assert has_ended(talk)


def test_a_stop_waits_five_seconds_at_most() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").holds("b").says("a", send("bob", "m1"))
    talk.happens(events.StopRequested("SIGTERM")).after(4.999)
    assert not has_ended(talk)
    talk.after(0.001)
    assert has_ended(talk)


def test_a_stop_waits_five_seconds_at_most_for_the_endpoint() -> None:
    talk = Conversation()
    talk.endpoint = "waits"
    talk.happens(events.StopRequested("SIGTERM")).after(5)
    assert has_ended(talk)


def test_the_end_of_a_slow_recipient_is_not_waited_for_any_longer() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").holds("b").says("a", send("bob", "m1"))
    talk.happens(events.StopRequested("SIGTERM")).hangs_up("b")
    assert has_ended(talk)


def test_what_is_staged_while_it_leaves_goes_out_too() -> None:
    """Acceptance is a promise until the end: the quiet time of a late update is cut short."""
    talk = Conversation().joins("a", "alice").joins("b", "bob", status="idle").joins("c", "carol").holds("c")
    talk.says("a", send("carol", "m0")).happens(events.StopRequested("SIGTERM"))
    talk.says("a", replace("bob", "m1", "t"))
    assert [frame["type"] for frame in talk.receives("a")] == ["delivery_queued", "delivery_queued"]
    talk.reads("c")
    assert has_ended(talk)
    talk.expects("b", {"type": "message", "from": "<any>", "message": {"id": "m1", "...": True}})


def test_what_is_staged_while_it_leaves_is_waited_for_like_anything_else() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob", status="idle").joins("c", "carol").holds("c")
    talk.says("a", send("carol", "m0")).happens(events.StopRequested("SIGTERM")).holds("b")
    talk.says("a", replace("bob", "m1", "t")).reads("c")
    assert not has_ended(talk)
    talk.reads("b").expects("b", {"type": "message", "...": True})
    assert has_ended(talk)


def test_a_stop_during_an_idle_exit_takes_over() -> None:
    talk = Conversation()
    talk.endpoint = "waits"
    talk.after(5).happens(events.StopRequested("SIGTERM"), events.EndpointReleased())
    assert talk.exit == effects.Exit(0, "SIGTERM")


def test_a_stop_during_an_idle_exit_that_is_cancelled_stops_again() -> None:
    talk = Conversation()
    talk.endpoint = "waits"
    talk.after(5).happens(events.StopRequested("SIGTERM"))
    seen = decided(talk)
    talk.connects("a").happens(events.StopCancelled())
    assert effects.StopAccepting("SIGTERM") in seen
    talk.happens(events.EndpointReleased())
    assert has_ended(talk)


def test_a_second_stop_changes_nothing() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").holds("b").says("a", send("bob", "m1"))
    talk.happens(events.StopRequested("SIGTERM")).after(4).happens(events.StopRequested("SIGINT")).after(1)
    assert talk.exit == effects.Exit(0, "SIGTERM")


def test_a_connection_that_ends_in_the_same_turn_is_closed_once() -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob")
    talk.endpoint = "waits"
    talk.happens(events.StopRequested("SIGTERM"))
    talk.happens(events.FrameRejected(talk.number("a"), "bad"), events.EndpointReleased())
    talk.expects_closed("a", "b")
    assert has_ended(talk)


STEPS = ("joins", "leaves", "waits", "stop", "cancel", "release", "connects")


def test_every_short_history_ends_or_waits_for_something() -> None:
    """It never leaves a connected session unasked, and without one it always leaves in the end."""
    for history in itertools.product(STEPS, repeat=4):
        talk = Conversation(register_timeout_s=3.0)
        talk.endpoint = "waits"
        asked = decided(talk)
        for at, step in enumerate(history):
            _happens(talk, step, f"c{at}", asked)
        has_session = bool(talk.router.state.roster.sessions)
        if "stop" not in history and has_session and not has_ended(talk):
            talk.after(1_000)
            assert not has_ended(talk), history
        elif not has_session:
            for _round in range(3):
                talk.after(20)
                _happens(talk, "release", "", asked)
            assert has_ended(talk), history


def _happens(talk: Conversation, step: str, conn: str, asked: list[effects.Effect]) -> None:
    if has_ended(talk):
        return
    if step == "connects":
        talk.connects(conn)
    elif step == "joins" and not talk.router.lifetime.is_leaving:
        talk.joins(conn)
    elif step == "leaves" and talk.router.state.roster.sessions:
        number = next(iter(talk.router.state.roster.sessions.values())).conn
        talk.listener.drop(number)
        talk.happens(events.ConnectionClosed(number, "left"))
    elif step == "waits":
        talk.after(5)
    elif step == "stop":
        talk.happens(events.StopRequested("SIGTERM"))
    elif step in {"cancel", "release"}:
        _endpoint_answers(talk, step, asked)


def _endpoint_answers(talk: Conversation, step: str, asked: list[effects.Effect]) -> None:
    """The edge answers what it was asked for, and only that: a stop for good is not cancelled."""
    stops = [effect for effect in asked if isinstance(effect, effects.StopAccepting)]
    if not stops:
        return
    asked.remove(stops[0])
    is_cancelled = step == "cancel" and stops[0].is_cancellable
    talk.happens(events.StopCancelled() if is_cancelled else events.EndpointReleased())


@pytest.mark.parametrize("who", ["a", "b"])
def test_an_idle_exit_is_not_armed_while_asks_or_messages_wait_for_a_session(who: str) -> None:
    talk = Conversation().joins("a", "alice").joins("b", "bob").holds("b").says("a", ask("bob", "q1")).hangs_up(who)
    talk.after(15)
    assert not has_ended(talk)
