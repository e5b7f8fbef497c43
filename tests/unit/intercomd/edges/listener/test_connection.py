"""Bytes in, events out: frames in order, nothing behind a bad one, and how much of an incomplete one is held."""

from __future__ import annotations

from typing import Any, cast

import pytest

from intercomd.core.events import FrameBegun, FrameReceived, FrameRejected, SendsReceived
from intercomd.edges.listener.connection import FRAMES_PER_TURN, READ_BYTES, Connection
from libintercom.wire.frames import encode_json, frame
from libintercom.wire.requests import Health, Register
from tests.support import sayings as say

AT_MS = 5


def health(request_id: str) -> bytes:
    return frame(encode_json({"type": "health", "requestId": request_id}))


class Socket:
    """A socket with scripted reads."""

    def __init__(self, *reads: bytes | OSError) -> None:
        self.reads = list(reads)

    def fileno(self) -> int:
        return 9

    def recv(self, size: int) -> bytes:
        assert size == READ_BYTES
        read = self.reads.pop(0)
        if isinstance(read, OSError):
            raise read
        return read


def connect(*reads: bytes | OSError) -> Connection:
    return Connection(3, cast("Any", Socket(*reads)))


def cut(connection: Connection, received: bytes) -> list[Any]:
    return connection.cut(received, AT_MS, lambda: ("one", "two"))


def test_frames_come_in_order_with_their_size() -> None:
    observed = cut(connect(), health("a") + health("b"))
    assert observed == [FrameReceived(3, Health(request_id=name), len(health(name)) - 4, AT_MS) for name in ("a", "b")]


def test_a_send_carries_its_bytes_and_a_registration_two_ids() -> None:
    sent, registered = cut(connect(), frame(encode_json(say.send("b", "m"))) + frame(encode_json(say.register("a"))))
    assert isinstance(sent, SendsReceived)
    ((to, message, raw, size_bytes),) = sent.sends
    assert (to, message.id, raw) == ("b", "m", encode_json(say.message("m")))
    assert size_bytes == len(encode_json(say.send("b", "m")))
    assert isinstance(registered.frame, Register)
    assert registered.ids == ("one", "two")


@pytest.mark.parametrize("bad", [frame(b"[]"), b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", frame(b'{"type":"x"}')])
def test_nothing_behind_a_bad_frame_is_looked_at(bad: bytes) -> None:
    connection = connect()
    observed = cut(connection, health("a") + bad + health("b"))
    assert [type(event) for event in observed] == [FrameReceived, FrameRejected]
    assert connection.is_rejected
    assert connection.ended.startswith("invalid frame")


def test_a_partial_frame_is_reported_when_it_begins_grows_and_ends() -> None:
    connection = connect()
    large = frame(encode_json({"type": "health", "requestId": "x" * 200_000}))
    assert cut(connection, large[:10]) == [FrameBegun(3, 10)]
    # Growth is told in steps, so that the core is never more than one step behind.
    assert cut(connection, large[10:1_000]) == []
    assert cut(connection, large[1_000:60_000]) == [FrameBegun(3, 60_000)]
    assert cut(connection, large[60_000:120_000]) == [FrameBegun(3, 120_000)]
    ended = cut(connection, large[120_000:])
    assert [type(event) for event in ended] == [FrameReceived, FrameBegun]
    assert ended[1] == FrameBegun(3, 0)
    assert cut(connection, health("a"))[0] == FrameReceived(3, Health(request_id="a"), len(health("a")) - 4, AT_MS)


def test_a_frame_that_is_completed_while_another_begins_is_followed_by_what_is_held() -> None:
    connection = connect()
    whole = health("a")
    assert cut(connection, whole[:5]) == [FrameBegun(3, 5)]
    observed = cut(connection, whole[5:] + whole[:7])
    # The core gives the new frame its own time at FrameReceived; the small difference is not worth an event.
    assert [type(event) for event in observed] == [FrameReceived]
    assert [type(event) for event in cut(connection, whole[7:])] == [FrameReceived, FrameBegun]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 7])
def test_any_split_gives_the_same_frames(size: int) -> None:
    connection = connect()
    whole = health("a") + health("bb") + health("ccc")
    observed = [event for at in range(0, len(whole), size) for event in cut(connection, whole[at : at + size])]
    received = [event.frame.request_id for event in observed if isinstance(event, FrameReceived)]
    assert received == ["a", "bb", "ccc"]


@pytest.mark.parametrize("count", [FRAMES_PER_TURN - 1, FRAMES_PER_TURN, FRAMES_PER_TURN + 1, 3 * FRAMES_PER_TURN])
def test_one_turn_looks_at_some_frames_and_the_next_ones_at_the_rest(count: int) -> None:
    connection = connect()
    turns = [cut(connection, b"".join(health(str(number)) for number in range(count)) + health("x")[:7])]
    while connection.has_more:
        turns.append(connection.cut_on(AT_MS, lambda: ("one", "two")))
    assert [len(turn) for turn in turns[:-1]] == [FRAMES_PER_TURN] * (count // FRAMES_PER_TURN)
    observed = [event for turn in turns for event in turn]
    assert [event.frame.request_id for event in observed[:-1]] == [str(number) for number in range(count)]
    # What is held of an incomplete frame is known when the whole ones were looked at.
    assert observed[-1] == FrameBegun(3, 7)


def test_a_bad_frame_in_a_later_turn_ends_it() -> None:
    connection = connect()
    cut(connection, health("a") * FRAMES_PER_TURN + frame(b"[]") + health("b"))
    assert connection.has_more
    assert [type(event) for event in connection.cut_on(AT_MS, lambda: ("one", "two"))] == [FrameRejected]
    assert connection.is_rejected
    assert not connection.has_more


def test_reading_ends_with_the_peer_or_an_error() -> None:
    nothing_yet = connect(BlockingIOError())
    assert (nothing_yet.receive(), nothing_yet.ended) == (b"", "")
    closed = connect(b"")
    assert (closed.receive(), closed.ended) == (b"", "closed by its peer")
    reset = connect(ConnectionResetError(104, "Connection reset by peer"))
    assert (reset.receive(), reset.ended) == (b"", "reading failed (Connection reset by peer)")


def test_a_connection_is_new_until_something_was_cut() -> None:
    connection = connect(health("a"))
    received = connection.receive()
    assert connection.is_new
    cut(connection, received)
    assert not connection.is_new
