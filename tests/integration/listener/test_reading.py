"""The real listener's input: what is reported when peers speak, stop in the middle, close, or are paused."""

from __future__ import annotations

import itertools
import socket
from typing import TYPE_CHECKING

import pytest

from intercomd.core import effects
from intercomd.core.events import (
    ConnectionClosed,
    DeliveriesTaken,
    FrameBegun,
    FrameReceived,
    FrameRejected,
    OutputProgressed,
)
from intercomd.edges.listener.connection import READ_BYTES, SHORT_READ_BYTES
from libintercom.endpoint import PROBE_NONCE_BYTES, PROBE_PREAMBLE
from libintercom.wire.answers import Delivered, ErrorAnswer
from libintercom.wire.frames import encode_json, frame
from libintercom.wire.requests import Health, Register
from tests.integration.listener.rigs import AT_MS, IDS, PARTIAL_BYTES
from tests.support import sayings as say

if TYPE_CHECKING:
    from intercomd.core.events import Event
    from tests.integration.listener.rigs import RealRig

ROW = b'{"id":"a"}'


def health(request_id: str) -> bytes:
    return frame(encode_json({"type": "health", "requestId": request_id}))


def heard(conn: int, request_id: str) -> FrameReceived:
    return FrameReceived(conn, Health(request_id=request_id), len(health(request_id)) - 4, AT_MS)


def test_the_frames_of_one_read_are_one_report(real: RealRig) -> None:
    conn = real.connect()
    reports: list[int] = []
    real.listener.start(lambda events: (reports.append(len(list(events))), None)[1])
    real.peers[conn].theirs.send(health("a") + health("b") + health("c"))
    real.run_until(lambda: reports, "a report")
    assert reports == [3]


def test_a_registration_comes_with_fresh_ids(real: RealRig) -> None:
    conn = real.connect()
    real.peers[conn].theirs.send(frame(encode_json(say.register("ann"))))
    (event,) = real.await_events(1)
    assert isinstance(event, FrameReceived)
    assert isinstance(event.frame, Register)
    assert event.ids == IDS


def test_a_large_frame_comes_in_steps_and_whole(real: RealRig) -> None:
    conn = real.connect()
    payload = health("x" * 300_000)
    peer = real.peers[conn].theirs
    sent = 0
    while sent < len(payload):
        try:
            sent += peer.send(payload[sent : sent + 100_000])
        except BlockingIOError:
            seen = len(real.observed)
            real.run_until(lambda seen=seen: len(real.observed) > seen, "the listener to read")
    real.run_until(lambda: any(isinstance(event, FrameReceived) for event in real.observed), "the frame")
    begun = [event.held_bytes for event in real.observed if isinstance(event, FrameBegun)]
    assert begun[-1] == 0
    assert begun[:-1] == sorted(begun[:-1])
    # No turn brings more than one read.
    assert all(later - earlier <= READ_BYTES for earlier, later in itertools.pairwise(begun))


def test_without_room_for_half_frames_everybody_is_read_in_short_pieces(real: RealRig) -> None:
    large = health("x" * 900_000)
    holders = [real.connect() for _ in range(PARTIAL_BYTES // len(large) + 1)]
    for conn in holders:
        fill(real, conn, large[:-1])
    held = sum(event.held_bytes for event in last_of_each(real.observed).values())
    assert held > PARTIAL_BYTES
    real.pop_observed()
    late = real.connect()
    real.peers[late].theirs.send(large[:60_000])
    real.run_until(lambda: real.observed, "the first piece")
    assert real.observed[0] == FrameBegun(late, SHORT_READ_BYTES)
    # An ordinary frame comes whole, and when there is room again, so do the others.
    modest = real.connect()
    real.peers[modest].theirs.send(health("m"))
    real.run_until(lambda: heard(modest, "m") in real.observed, "a modest frame")
    for conn in holders:
        real.peers[conn].theirs.close()
    real.run_until(lambda: sum(isinstance(e, ConnectionClosed) for e in real.observed) == len(holders), "room")
    seen = real.connect()
    real.peers[seen].theirs.send(large[:60_000])
    real.run_until(lambda: FrameBegun(seen, 60_000) in real.observed, "a long piece")


def fill(real: RealRig, conn: int, raw: bytes) -> None:
    """Send all of it, while the listener reads."""
    sent = 0
    while sent < len(raw):
        try:
            sent += real.peers[conn].theirs.send(raw[sent : sent + 100_000])
        except BlockingIOError:
            seen = len(real.observed)
            real.run_until(lambda seen=seen: len(real.observed) > seen, "the listener to read")
    real.run_until(lambda: last_of_each(real.observed)[conn].held_bytes >= sent - READ_BYTES, "the last piece")


def last_of_each(observed: list[Event]) -> dict[int, FrameBegun]:
    return {event.conn: event for event in observed if isinstance(event, FrameBegun)}


def test_nothing_behind_a_bad_frame_is_heard_until_the_core_closes(real: RealRig) -> None:
    conn = real.connect()
    peer = real.peers[conn].theirs
    peer.send(health("a") + frame(b"[]") + health("b"))
    observed = real.await_events(2)
    assert observed[0] == heard(conn, "a")
    assert isinstance(observed[1], FrameRejected)
    peer.send(health("c"))
    other = real.connect()
    real.peers[other].theirs.send(health("d"))
    assert real.await_events(1) == [heard(other, "d")]
    real.listener.apply(effects.Write(conn, ErrorAnswer(error="bad frame")))
    real.listener.apply(effects.Close(conn, "bad frame", is_after_flush=True))
    assert real.listener.flush() == [ConnectionClosed(conn, "bad frame")]
    assert len(real.arrived(conn)) == 1
    assert real.peers[conn].is_ended


def test_a_closing_peer_is_reported_behind_its_last_frame(real: RealRig) -> None:
    conn = real.connect()
    real.peers[conn].theirs.send(health("a"))
    real.peers[conn].theirs.close()
    assert real.await_events(2) == [heard(conn, "a"), ConnectionClosed(conn, "closed by its peer")]


def test_a_half_closed_connection_gets_what_waits_as_far_as_the_kernel_takes_it(real: RealRig) -> None:
    conn = real.connect()
    real.block(conn)
    real.listener.apply(effects.Deliver(conn, 1, ROW, b'{"id":"m"}'))
    real.listener.flush()
    peer = real.peers[conn]
    real.listener.apply(effects.PauseReading(conn))
    peer.theirs.shutdown(socket.SHUT_WR)
    # The peer makes room; before the loop hears of it, reading is resumed and finds the end.
    peer.read()
    real.listener.apply(effects.ResumeReading(conn))
    real.run_until(lambda: any(isinstance(e, ConnectionClosed) for e in real.observed), "the end")
    assert DeliveriesTaken((1,)) in real.observed
    assert len(real.arrived(conn)) == 1
    assert peer.is_ended


def test_what_a_half_closed_connection_does_not_take_is_lost_and_never_called_taken(real: RealRig) -> None:
    conn = real.connect()
    real.block(conn)
    real.listener.apply(effects.Deliver(conn, 1, ROW, b'{"id":"m"}'))
    real.listener.flush()
    real.peers[conn].theirs.shutdown(socket.SHUT_WR)
    assert real.await_events(1) == [ConnectionClosed(conn, "closed by its peer")]
    assert real.arrived(conn) == []


def test_a_paused_connection_is_not_read_and_its_end_is_noticed_when_resumed(real: RealRig) -> None:
    conn, other = real.connect(), real.connect()
    real.listener.apply(effects.PauseReading(conn))
    real.listener.apply(effects.PauseReading(conn))
    real.peers[conn].theirs.send(health("a"))
    real.peers[conn].theirs.close()
    real.peers[other].theirs.send(health("b"))
    assert real.await_events(1) == [heard(other, "b")]
    real.listener.apply(effects.ResumeReading(conn))
    real.listener.apply(effects.ResumeReading(conn))
    assert real.await_events(2) == [heard(conn, "a"), ConnectionClosed(conn, "closed by its peer")]


def test_a_paused_connections_end_is_noticed_by_writing(real: RealRig) -> None:
    conn = real.connect()
    real.listener.apply(effects.PauseReading(conn))
    real.peers[conn].theirs.close()
    real.listener.apply(effects.Write(conn, Delivered(message_id="m")))
    (event,) = real.listener.flush()
    assert isinstance(event, ConnectionClosed)


@pytest.mark.parametrize("kind", ["deliver", "write", "rows", "close", "pause", "resume"])
def test_an_effect_for_a_connection_that_ended_is_nothing(real: RealRig, kind: str) -> None:
    conn = real.connect()
    real.reset(conn)
    real.await_events(1)
    made: dict[str, effects.Effect] = {
        "deliver": effects.Deliver(conn, 1, ROW, b"{}"),
        "write": effects.Write(conn, Delivered(message_id="m")),
        "rows": effects.WriteRows(conn, "r", []),
        "close": effects.Close(conn, "x"),
        "pause": effects.PauseReading(conn),
        "resume": effects.ResumeReading(conn),
    }
    real.listener.apply(made[kind])
    assert real.listener.flush() == []


def test_a_closed_connection_is_written_to_no_more(real: RealRig) -> None:
    conn = real.connect()
    real.listener.apply(effects.Close(conn, "x"))
    real.listener.apply(effects.Write(conn, Delivered(message_id="m")))
    assert real.listener.flush() == [ConnectionClosed(conn, "x")]
    assert real.arrived(conn) == []


def test_progress_is_told_while_some_waits(real: RealRig) -> None:
    conn = real.connect()
    body = b'{"x":"' + b"y" * 500_000 + b'"}'
    for token in (1, 2):
        real.listener.apply(effects.Deliver(conn, token, ROW, body))
    real.listener.flush()
    observed = real.unblock(conn)
    waiting = [event.waiting_bytes for event in observed if isinstance(event, OutputProgressed)]
    assert waiting == sorted(waiting, reverse=True)
    assert len(waiting) > 1
    assert waiting[-1] == 0
    assert [event.tokens for event in observed if isinstance(event, DeliveriesTaken)] == [(1,), (2,)]
    assert [len(payload) > len(body) for payload in real.arrived(conn)] == [True, True]


def test_recipients_are_written_before_those_who_are_only_answered(real: RealRig) -> None:
    """The peer of both sockets is one program: what it can read first was written first."""
    answered, recipient = real.connect(), real.connect()
    order: list[int] = []
    for conn in (answered, recipient):
        output = real.listener._connections[conn].output
        output._socket = _Spy(output._socket, conn, order)  # type: ignore[assignment]
    real.listener.apply(effects.Write(answered, Delivered(message_id="m")))
    real.listener.apply(effects.Deliver(recipient, 1, ROW, b"{}"))
    real.listener.flush()
    assert order == [recipient, answered]


class _Spy:
    """A socket that remembers when it was written to."""

    def __init__(self, watched: socket.socket, conn: int, order: list[int]) -> None:
        self._watched, self._conn, self._order = watched, conn, order

    def send(self, piece: bytes) -> int:
        self._order.append(self._conn)
        return self._watched.send(piece)


def test_one_answer_for_many_is_encoded_once(real: RealRig) -> None:
    conns = [real.connect() for _ in range(3)]
    answer = Delivered(message_id="m")
    for conn in conns:
        real.listener.apply(effects.Write(conn, answer))
    pieces = [real.listener._connections[conn].output._pieces for conn in conns]
    assert real.listener._last_answer.answer is answer
    assert pieces[0] == pieces[1] == pieces[2]


def test_a_probe_is_seen_and_is_no_frame(real: RealRig) -> None:
    nonce = bytes(range(PROBE_NONCE_BYTES))
    seen: list[bool] = []
    real.listener.expect(nonce, lambda: seen.append(True))
    conn = real.connect()
    real.peers[conn].theirs.send(PROBE_PREAMBLE + nonce)
    assert real.await_events(1) == [ConnectionClosed(conn, "a self-check's probe")]
    assert seen == [True]
    stranger = real.connect()
    real.peers[stranger].theirs.send(PROBE_PREAMBLE + nonce)
    (event,) = real.await_events(1)
    assert isinstance(event, FrameRejected)


def test_a_probe_behind_a_frame_is_none(real: RealRig) -> None:
    nonce = bytes(range(PROBE_NONCE_BYTES))
    real.listener.expect(nonce, lambda: pytest.fail("a late probe was seen"))
    conn = real.connect()
    real.peers[conn].theirs.send(health("a"))
    real.await_events(1)
    real.peers[conn].theirs.send(PROBE_PREAMBLE + nonce)
    assert isinstance(real.await_events(1)[0], FrameRejected)
    real.listener.forget(nonce)


def test_what_a_peer_sent_before_it_left_with_unread_messages_is_heard(real: RealRig) -> None:
    """The kernel then reports an error beside the bytes, at which some loops forget the socket."""
    conn = real.connect()
    real.listener.apply(effects.Write(conn, Delivered(message_id="unread")))
    real.listener.flush()
    peer = real.peers[conn].theirs
    peer.send(health("x" * 150_000))
    peer.close()
    real.run_until(lambda: any(isinstance(event, ConnectionClosed) for event in real.observed), "the end")
    kinds = [type(event) for event in real.observed if not isinstance(event, FrameBegun)]
    assert kinds == [FrameReceived, ConnectionClosed]


def test_what_a_peer_said_is_heard_though_writing_to_it_fails_first(real: RealRig) -> None:
    conn = real.connect()
    peer = real.peers[conn].theirs
    peer.send(health("x" * 100_000) + health("last"))
    peer.close()
    real.listener.apply(effects.Deliver(conn, 1, ROW, b"{}"))
    observed = real.listener.flush()
    assert [type(event) for event in observed if not isinstance(event, FrameBegun)] == [
        FrameReceived,
        FrameReceived,
        ConnectionClosed,
    ]


def test_a_connection_that_the_core_closed_is_heard_no_more(real: RealRig) -> None:
    conn = real.connect()
    peer = real.peers[conn].theirs
    peer.send(health("late"))
    peer.close()
    real.listener.apply(effects.Write(conn, Delivered(message_id="m")))
    real.listener.apply(effects.Close(conn, "enough", is_after_flush=True))
    assert [type(event) for event in real.listener.flush()] == [ConnectionClosed]
