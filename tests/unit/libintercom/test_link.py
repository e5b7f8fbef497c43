"""Bytes between a socket and an exchange, with a socket that does exactly what the test says."""

from __future__ import annotations

import errno

import pytest

from libintercom import flows
from libintercom.inbound import ConnectionEnded, Inbound
from libintercom.link import Link
from libintercom.wire.frames import encode_json, frame
from tests.support.desk import Desk, incoming, row


class FakeSocket:
    """A non-blocking socket: ``room`` is what the kernel takes, ``arrived`` what it has, errors come when set."""

    def __init__(self) -> None:
        self.room = 1 << 20
        self.arrived: list[bytes] = []
        self.taken = b""
        self.write_error: OSError | None = None
        self.is_interrupted = False
        self.shut = -1
        self.is_closed = False

    def setblocking(self, is_blocking: bool) -> None:
        assert not is_blocking

    def fileno(self) -> int:
        return 5

    def send(self, unsent: bytearray) -> int:
        if self.write_error is not None:
            raise self.write_error
        if not self.room:
            raise BlockingIOError
        taken = bytes(unsent[: min(self.room, 7)])
        self.room -= len(taken)
        self.taken += taken
        self._interrupt()
        return len(taken)

    def _interrupt(self) -> None:
        """A signal arrives when the kernel has done its part and before anybody was told."""
        if self.is_interrupted:
            raise KeyboardInterrupt

    def recv(self, _size_bytes: int) -> bytes:
        if not self.arrived:
            raise BlockingIOError
        received = self.arrived.pop(0)
        self._interrupt()
        if received == b"RESET":
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        return received

    def shutdown(self, how: int) -> None:
        if self.write_error is not None:
            raise self.write_error
        self.shut = how

    def close(self) -> None:
        self.is_closed = True


def linked() -> tuple[Desk, FakeSocket, Link]:
    desk, fake = Desk().join(), FakeSocket()
    return desk, fake, Link(fake, desk.exchange)  # type: ignore[arg-type]


MESSAGE = frame(encode_json(incoming(row("pi-peer0001"), "m1")))


def test_output_is_written_piece_by_piece_as_the_kernel_takes_it() -> None:
    desk, fake, link = linked()
    fake.room = 10
    running = desk.run(flows.list_sessions(desk.exchange))
    link.write()
    assert len(fake.taken) == 10
    assert link.wants_write
    assert not desk.exchange.has_left(running.call)
    fake.room = 1 << 20
    link.write()
    assert not link.wants_write
    assert desk.exchange.has_left(running.call)
    assert fake.taken.endswith(b'"stream":true}')


def test_read_takes_what_is_there_once() -> None:
    desk, fake, link = linked()
    fake.arrived = [MESSAGE[:5], MESSAGE[5:]]
    assert [link.read(), link.read(), link.read()] == [True, True, False]
    assert [type(event) for event in desk.events()] == [Inbound]


def test_end_of_the_stream_ends_the_exchange() -> None:
    desk, fake, link = linked()
    fake.arrived = [b""]
    assert link.read() is False
    assert link.is_over
    assert desk.exchange.is_lost
    assert desk.events() == [ConnectionEnded(reason="the broker closed the connection")]


def test_reset_ends_the_exchange_as_lost() -> None:
    desk, fake, link = linked()
    fake.arrived = [b"RESET"]
    link.read()
    assert desk.exchange.is_lost
    assert desk.exchange.end_reason == "Connection reset by peer"


def test_violation_ends_the_exchange_but_is_no_loss() -> None:
    desk, fake, link = linked()
    fake.arrived = [b"\0\0\0\0"]
    link.read()
    assert link.is_over
    assert not desk.exchange.is_lost


@pytest.mark.parametrize("last", [b"", b"RESET", None])
def test_failed_write_still_reads_what_the_broker_said_before(last: bytes | None) -> None:
    desk, fake, link = linked()
    fake.arrived = [MESSAGE, *([] if last is None else [last])]
    fake.write_error = BrokenPipeError(errno.EPIPE, "Broken pipe")
    flows.publish_presence(desk.exchange, {"status": "idle"})
    link.write()
    assert [type(event) for event in desk.events()] == [Inbound, ConnectionEnded]
    assert desk.exchange.is_lost
    assert not link.wants_write
    assert not link.wants_read


def test_interrupted_write_ends_it_and_claims_nothing() -> None:
    """Bytes left that were not counted: to go on would send them twice, and "not sent" would be untrue."""
    desk, fake, link = linked()
    running = desk.run(flows.list_sessions(desk.exchange))
    fake.is_interrupted = True
    with pytest.raises(KeyboardInterrupt):
        link.write()
    assert link.is_over
    assert desk.exchange.has_left(running.call)
    assert not desk.exchange.is_lost
    taken = fake.taken
    link.write()
    assert fake.taken == taken


def test_interrupted_read_ends_it() -> None:
    desk, fake, link = linked()
    fake.arrived, fake.is_interrupted = [MESSAGE], True
    with pytest.raises(KeyboardInterrupt):
        link.read()
    assert desk.events() == [ConnectionEnded(reason="interrupted in the middle of the stream")]


def test_half_close_writes_first_and_then_says_that_nothing_follows() -> None:
    desk, fake, link = linked()
    flows.unregister(desk.exchange)
    link.half_close()
    assert b"unregister" in fake.taken
    assert fake.shut == 1


def test_half_close_of_a_dead_connection_is_silent() -> None:
    _desk, fake, link = linked()
    fake.write_error = OSError(errno.ENOTCONN, "not connected")
    link.half_close()
    assert not link.is_over


def test_socket_is_closed_only_when_told() -> None:
    desk, fake, link = linked()
    desk.exchange.end("over")
    assert not fake.is_closed
    link.close()
    assert fake.is_closed
