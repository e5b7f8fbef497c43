"""Slow and greedy connections: what pauses them, what is answered late, who is stalled, and that all of it ends."""

from __future__ import annotations

from typing import Any

import pytest

from intercomd.core import effects, events
from tests.support.conversation import Conversation
from tests.support.sayings import list_sessions, register, send

_KIB = 1024


def health(size_bytes: int, request_id: str = "h") -> dict[str, Any]:
    """A frame of so many bytes that costs nothing but its size."""
    return {"type": "health", "requestId": request_id, "padding": "x" * (size_bytes - 60)}


def types(talk: Conversation, conn: str) -> list[str]:
    return [frame["type"] for frame in talk.receives(conn)]


def waiting(talk: Conversation) -> set[str | int]:
    """The kinds of deadlines there are."""
    deadlines = talk.router.state.deadlines.keys()
    return {key[0] for key in deadlines}


def watched(talk: Conversation) -> list[effects.Effect]:
    """What the broker asks for from now on, without what it writes."""
    seen: list[effects.Effect] = []
    carry_out = talk.carry_out

    def watch(effect: effects.Effect) -> None:
        if not isinstance(effect, effects.Write | effects.WriteRows | effects.Log):
            seen.append(effect)
        carry_out(effect)

    talk.carry_out = watch  # type: ignore[method-assign]
    return seen


# -- registering in time -------------------------------------------------------------------------------------


def test_a_connection_registers_within_five_seconds_or_is_closed() -> None:
    Conversation().connects("a").after(4.999).expects_open("a").after(0.001).expects_closed("a")


def test_health_does_not_extend_the_time_to_register() -> None:
    talk = Conversation().connects("a").after(4).says("a", health(100)).after(0.999).expects_open("a")
    talk.after(0.001).expects_closed("a")


def test_a_session_that_unregistered_has_the_time_anew() -> None:
    talk = Conversation().joins("a").after(100).says("a", {"type": "unregister"}).after(4.999).expects_open("a")
    talk.after(0.001).expects_closed("a")


def test_exactly_so_many_unregistered_connections_are_let_in_and_nobody_is_closed() -> None:
    talk = Conversation(max_unregistered=3).connects("a", "b", "c", "d", "e")
    assert [talk.is_accepted(conn) for conn in "abcde"] == [True, True, True, False, False]
    talk.expects_open("a", "b", "c").joins("b")
    assert [talk.is_accepted(conn) for conn in "abcde"] == [True, True, True, True, False]
    talk.hangs_up("a")
    assert talk.is_accepted("e")
    talk.joins("c").joins("d").joins("e")


def test_those_who_never_register_make_room_in_time() -> None:
    talk = Conversation(max_unregistered=2, idle_exit_s=None).connects("a", "b", "c").after(5)
    talk.expects_closed("a", "b")
    talk.joins("c")


def test_sessions_that_unregister_count_as_unregistered() -> None:
    talk = Conversation(max_unregistered=2).joins("a").joins("b").says("a", {"type": "unregister"})
    talk.says("b", {"type": "unregister"}).connects("c")
    assert not talk.is_accepted("c")
    talk.receives("a")
    talk.joins("a")
    assert talk.is_accepted("c")


def test_a_lack_of_descriptors_pauses_accepting_until_one_is_free() -> None:
    talk = Conversation().joins("a").joins("b").happens(events.DescriptorsExhausted()).connects("c")
    assert not talk.is_accepted("c")
    talk.hangs_up("b")
    assert talk.is_accepted("c")


def test_a_lack_of_descriptors_elsewhere_does_not_close_the_door_for_ever() -> None:
    """The system may have run out of them for a moment, and none of ours ever closes."""
    talk = Conversation().joins("a").happens(events.DescriptorsExhausted()).connects("c").after(0.999)
    assert not talk.is_accepted("c")
    talk.after(0.001)
    assert talk.is_accepted("c")
    assert "accept" not in waiting(talk)


def test_both_reasons_must_be_gone_before_accepting_goes_on() -> None:
    talk = (
        Conversation(max_unregistered=1).joins("a").connects("b").happens(events.DescriptorsExhausted()).connects("c")
    )
    talk.joins("b")
    assert not talk.is_accepted("c")
    talk.after(1)
    assert talk.is_accepted("c")


# -- half-received frames ------------------------------------------------------------------------------------


def begins(talk: Conversation, conn: str, held_bytes: int) -> Conversation:
    return talk.happens(events.FrameBegun(talk.number(conn), held_bytes))


def test_a_frame_is_completed_within_thirty_seconds_or_its_connection_is_closed() -> None:
    talk = Conversation().joins("a").joins("b")
    begins(talk, "a", 100).after(20)
    begins(talk, "a", 200).after(9.999).expects_open("a").after(0.001).expects_closed("a").expects_open("b")


def test_a_frame_completed_in_time_is_no_frame_begun() -> None:
    talk = Conversation().joins("a")
    begins(talk, "a", 100).after(29)
    begins(talk, "a", 0).after(100).expects_open("a")


def test_the_frame_behind_a_completed_one_has_its_own_time() -> None:
    talk = Conversation().joins("a")
    begins(talk, "a", 100).after(29).says("a", health(100)).after(29).expects_open("a").after(1).expects_closed("a")


def test_too_much_half_received_pauses_whoever_would_add_to_it() -> None:
    talk = Conversation(partial_bytes=1_000).joins("a").joins("b").joins("c")
    begins(talk, "a", 600)
    begins(talk, "b", 400)
    assert talk.is_reading("b")
    begins(talk, "b", 401)
    assert (talk.is_reading("a"), talk.is_reading("b"), talk.is_reading("c")) == (False, False, True)
    begins(talk, "c", 1)
    assert not talk.is_reading("c")
    talk.hangs_up("a")
    assert talk.is_reading("b")
    assert talk.is_reading("c")


@pytest.mark.parametrize("end", ["completes", "hangs up", "is closed"])
def test_the_paused_go_on_when_there_is_room(end: str) -> None:
    talk = Conversation(partial_bytes=1_000).joins("a").joins("b")
    begins(talk, "a", 900)
    talk.after(10)
    begins(talk, "b", 200)
    assert not talk.is_reading("b")
    if end == "completes":
        begins(talk, "a", 0)
    elif end == "hangs up":
        talk.hangs_up("a")
    else:
        talk.after(20).expects_closed("a")
    assert talk.is_reading("b")


def test_whoever_was_paused_for_others_has_its_time_anew() -> None:
    talk = Conversation(partial_bytes=1_000).joins("a").joins("b")
    begins(talk, "a", 900)
    talk.after(0.5)
    begins(talk, "b", 200).after(29.5).expects_closed("a").expects_open("b")
    assert talk.is_reading("b")
    talk.after(29.999).expects_open("b").after(0.001).expects_closed("b")


def test_whoever_waits_for_room_with_less_than_its_share_is_not_late() -> None:
    talk = Conversation(partial_bytes=1_000).joins("a").joins("b").joins("c")
    # Everybody is read no further, and only c holds less than a third.
    begins(talk, "a", 600)
    begins(talk, "b", 500)
    begins(talk, "a", 700)
    begins(talk, "c", 300)
    assert not any(talk.is_reading(conn) for conn in "abc")
    talk.after(30).expects_closed("a").expects_closed("b").expects_open("c")
    assert talk.is_reading("c")
    begins(talk, "c", 900)
    talk.after(29.999).expects_open("c").after(0.001).expects_closed("c")


def test_a_share_that_is_not_read_for_long_stays_a_share() -> None:
    talk = Conversation(partial_bytes=1_000).joins("a").joins("b").joins("c")
    begins(talk, "a", 900)
    talk.after(20)
    begins(talk, "b", 950)
    talk.after(5)
    begins(talk, "c", 100)
    # The end of a makes no room: b holds all of it.
    talk.after(5).expects_closed("a")
    assert not talk.is_reading("c")
    talk.after(19.999).expects_open("b").after(0.001).expects_closed("b").expects_open("c")
    assert talk.is_reading("c")


@pytest.mark.parametrize("count", [1, 2, 7])
def test_when_there_is_no_room_somebodys_time_is_over(count: int) -> None:
    talk = Conversation(partial_bytes=1_000)
    conns = [f"c{number}" for number in range(count)]
    for conn in conns:
        talk.joins(conn)
    for conn in conns:
        begins(talk, conn, 1_000 // count)
    for conn in conns:
        begins(talk, conn, 1_000 // count + 1)
    assert not all(talk.is_reading(conn) for conn in conns)
    talk.after(30)
    assert any(talk.is_closed(conn) for conn in conns)
    assert all(talk.is_reading(conn) for conn in conns if not talk.is_closed(conn))


def test_half_received_bytes_are_forgotten_with_their_connection() -> None:
    talk = Conversation(partial_bytes=1_000).joins("a")
    begins(talk, "a", 1_000).hangs_up("a").joins("b")
    begins(talk, "b", 1_000)
    assert talk.is_reading("b")


# -- stalled -------------------------------------------------------------------------------------------------


def row_of(talk: Conversation, conn: str, name: str) -> dict[str, Any]:
    (answer,) = talk.says(conn, list_sessions()).receives(conn)
    return next(row for row in answer["sessions"] if row.get("name") == name)


def stuck() -> Conversation:
    talk = Conversation().joins("a", "alice", ext=1).joins("b", "bob").holds("b").says("a", send("bob", "m1"))
    talk.receives("a")
    return talk


def test_a_recipient_that_takes_nothing_for_twenty_seconds_is_stalled() -> None:
    talk = stuck().after(19.999)
    assert "stalled" not in row_of(talk, "a", "bob")
    talk.says("a", send("bob", "m2")).expects("a", {"type": "delivery_queued", "messageId": "m2", "reason": "<string>"})
    talk.after(0.001)
    assert row_of(talk, "a", "bob")["stalled"] is True
    told = {"messageId": "m3", "code": "recipient_stalled", "retryable": True, "outcomeKnown": True, "...": True}
    talk.says("a", send("bob", "m3")).expects("a", {"type": "delivery_failed", **told})


def test_older_clients_are_not_shown_that_it_is_stalled() -> None:
    talk = stuck().joins("c", "carol").after(20)
    assert "stalled" not in row_of(talk, "c", "bob")


def test_a_stalled_recipient_that_takes_bytes_again_is_a_recipient_again() -> None:
    talk = stuck().after(20).holds("b", 10)
    assert "stalled" not in row_of(talk, "a", "bob")
    talk.after(19.9).holds("b", 10).after(19.9)
    assert "stalled" not in row_of(talk, "a", "bob")
    talk.after(0.2)
    assert row_of(talk, "a", "bob")["stalled"] is True
    talk.reads("b").expects("b", {"type": "message", "...": True})
    talk.says("a", send("bob", "m2")).expects("a", {"type": "delivered", "messageId": "m2"})


def test_a_stalled_recipient_is_disconnected_after_two_minutes_and_its_messages_are_dead() -> None:
    talk = stuck().after(119.999).expects_open("b").expects_nothing("a").after(0.001).expects_closed("b")
    talk.expects(
        "a",
        {"type": "session_left", "sessionId": "session-b"},
        {"type": "dead_letter", "messageId": "m1", "reason": "recipient_left", "...": True},
    )


def test_whoever_has_nothing_waiting_is_never_stalled() -> None:
    Conversation().joins("a", "alice").joins("b", "bob").holds("b").after(1_000).expects_open("a", "b")


def test_registering_anew_does_not_hide_that_a_connection_is_stalled() -> None:
    talk = stuck().after(20).says("b", {"type": "unregister"}, register("bob", id="session-b"))
    talk.receives("a")
    assert row_of(talk, "a", "bob")["stalled"] is True
    talk.says("a", send("bob", "m2")).expects(
        "a", {"type": "delivery_failed", "code": "recipient_stalled", "...": True}
    )


def test_an_observer_or_a_newcomer_may_stall_too() -> None:
    talk = Conversation().joins("o", observer=1).joins("a").holds("o").says("o", list_sessions()).after(120)
    talk.expects_closed("o")


def test_deadlines_that_meet_close_a_connection_once() -> None:
    talk = Conversation(disconnect_after_s=40.0, frame_timeout_s=40.0).joins("a").joins("b", "bob").holds("b")
    begins(talk, "b", 10).says("a", send("bob", "m1")).after(40).expects_closed("b")


# -- output --------------------------------------------------------------------------------------------------


def test_a_connection_that_does_not_take_its_answers_is_read_no_further() -> None:
    talk = Conversation(recipient_bytes=4_000).joins("a", "alice").holds("a")
    number = talk.number("a")
    talk.happens(events.OutputProgressed(number, 4_000, has_moved=False))
    assert talk.is_reading("a")
    talk.happens(events.OutputProgressed(number, 4_001, has_moved=True))
    assert not talk.is_reading("a")
    talk.happens(events.OutputProgressed(number, 2_001, has_moved=True))
    assert not talk.is_reading("a")
    talk.happens(events.OutputProgressed(number, 2_000, has_moved=True))
    assert talk.is_reading("a")


def test_when_too_much_waits_in_all_whoever_has_some_waiting_is_read_no_further() -> None:
    talk = Conversation(recipient_bytes=1_000, outbound_bytes=1_500).joins("a").joins("b").joins("c")
    a, b, c = (talk.number(conn) for conn in "abc")
    talk.happens(events.OutputProgressed(a, 900, has_moved=False), events.OutputProgressed(b, 600, has_moved=False))
    assert all(map(talk.is_reading, "abc"))
    talk.happens(events.OutputProgressed(b, 601, has_moved=False))
    assert [talk.is_reading(conn) for conn in "abc"] == [True, False, True]
    talk.happens(events.OutputProgressed(c, 10, has_moved=False))
    assert [talk.is_reading(conn) for conn in "abc"] == [True, False, False]
    talk.happens(events.OutputProgressed(c, 5, has_moved=True), events.OutputProgressed(b, 400, has_moved=True))
    assert all(map(talk.is_reading, "abc"))


def test_the_end_of_one_makes_room_for_the_others() -> None:
    talk = Conversation(recipient_bytes=1_000, outbound_bytes=1_500).joins("a").joins("b").joins("c")
    a, b, c = (talk.number(conn) for conn in "abc")
    talk.happens(
        events.OutputProgressed(a, 1_000, has_moved=False),
        events.OutputProgressed(b, 501, has_moved=False),
        events.OutputProgressed(c, 499, has_moved=False),
    )
    assert [talk.is_reading(conn) for conn in "abc"] == [True, False, False]
    talk.hangs_up("a")
    # Half its own limit is where a paused connection goes on.
    assert [talk.is_reading(conn) for conn in "bc"] == [False, True]


def test_more_waiting_bytes_are_no_sign_of_life() -> None:
    talk = stuck().after(19).happens(events.OutputProgressed(2, 10_000, has_moved=False)).after(1)
    assert row_of(talk, "a", "bob")["stalled"] is True


def test_events_of_a_connection_that_is_gone_are_nothing() -> None:
    talk = Conversation().joins("a").hangs_up("a")
    for event in (
        events.OutputProgressed(1, 10, has_moved=False),
        events.FrameBegun(1, 10),
        events.ConnectionClosed(1, "again"),
        events.FrameRejected(1, "again"),
    ):
        talk.happens(event)
    assert waiting(talk) == {"idle"}


@pytest.mark.parametrize("reason", ["input", "output", "both", "partial"])
def test_nothing_is_asked_for_on_a_connection_that_is_gone(reason: str) -> None:
    talk = Conversation(input_burst_bytes=1_000, input_bytes_per_s=10.0, recipient_bytes=100, partial_bytes=10)
    talk.joins("a")
    if reason in {"input", "both"}:
        talk.says("a", *[health(400)] * 8)
    if reason in {"output", "both"}:
        talk.happens(events.OutputProgressed(1, 1_000, has_moved=False))
    if reason == "partial":
        begins(talk, "a", 11)
    assert not talk.is_reading("a")
    seen = watched(talk)
    talk.hangs_up("a").after(100)
    assert [effect for effect in seen if getattr(effect, "conn", None) == 1] == []
