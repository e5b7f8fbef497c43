"""Unread events: their order, their count and the bounds at which reading pauses."""

from __future__ import annotations

from libintercom.inbound import HARD_BYTES, HARD_EVENTS, SOFT_BYTES, SOFT_EVENTS, Mailroom, PeerLeft


def left(number: int) -> PeerLeft:
    return PeerLeft(session_id=str(number))


def test_events_come_out_as_they_went_in() -> None:
    room = Mailroom()
    assert room.take() is None
    for number in range(3):
        room.add(left(number))
    assert [room.take() for _ in range(4)] == [left(0), left(1), left(2), None]


def test_room_ends_at_the_soft_bound_and_with_a_call_at_the_hard_one() -> None:
    room = Mailroom()
    for number in range(HARD_EVENTS):
        assert room.has_room(is_call_waiting=False) == (number < SOFT_EVENTS)
        assert room.has_room(is_call_waiting=True)
        room.add(left(number))
    assert not room.has_room(is_call_waiting=True)
    room.take()
    assert room.has_room(is_call_waiting=True)


def test_bytes_count_as_much_as_events() -> None:
    room = Mailroom()
    room.add(left(0), SOFT_BYTES)
    assert not room.has_room(is_call_waiting=False)
    assert room.has_room(is_call_waiting=True)
    room.add(left(1), HARD_BYTES - SOFT_BYTES)
    assert not room.has_room(is_call_waiting=True)
    room.take()
    room.take()
    assert room.has_room(is_call_waiting=False)


def test_nothing_is_dropped_beyond_the_bounds() -> None:
    room = Mailroom()
    for number in range(HARD_EVENTS + 10):
        room.add(left(number))
    assert len(room) == HARD_EVENTS + 10
