"""The contract of ``intercomd.ports.Listener``, which the real listener and the fake keep alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core import effects
from intercomd.core.events import ConnectionClosed, DeliveriesHeld, DeliveriesTaken, OutputProgressed
from libintercom.wire import codec
from libintercom.wire.answers import Delivered
from libintercom.wire.codec import join_incoming
from libintercom.wire.frames import HEADER_BYTES

if TYPE_CHECKING:
    from intercomd.core.events import Event
    from tests.integration.listener.rigs import Rig

ROW = b'{"id":"a"}'


def message(number: int, size: int = 10) -> bytes:
    return b'{"id":"%d","x":"%s"}' % (number, b"y" * size)


def deliver(rig: Rig, conn: int, token: int, size: int = 10) -> None:
    rig.listener.apply(effects.Deliver(conn, token, ROW, message(token, size)))


def kinds(observed: list[Event]) -> list[type]:
    return [type(event) for event in observed]


def test_nothing_queued_is_nothing_observed(rig: Rig) -> None:
    rig.connect()
    assert rig.listener.flush() == []


def test_what_the_kernel_takes_is_taken_in_the_same_flush(rig: Rig) -> None:
    conn = rig.connect()
    deliver(rig, conn, 1)
    deliver(rig, conn, 2)
    assert rig.listener.flush() == [DeliveriesTaken((1, 2))]
    assert rig.arrived(conn) == [join_incoming(ROW, message(1)), join_incoming(ROW, message(2))]
    assert rig.listener.flush() == []


def test_nothing_is_written_before_the_flush(rig: Rig) -> None:
    conn = rig.connect()
    deliver(rig, conn, 1)
    assert rig.arrived(conn) == []


def test_one_connections_output_keeps_the_order_of_effects(rig: Rig) -> None:
    conn = rig.connect()
    rig.listener.apply(effects.Write(conn, Delivered(message_id="first")))
    deliver(rig, conn, 1)
    rig.listener.apply(effects.WriteRows(conn, "l", [ROW, ROW], more=False))
    rig.listener.flush()
    assert rig.arrived(conn) == [
        codec.encode(Delivered(message_id="first")),
        join_incoming(ROW, message(1)),
        b'{"type":"sessions","requestId":"l","sessions":[%s,%s],"more":false}' % (ROW, ROW),
    ]


def test_what_the_kernel_does_not_take_is_held_and_taken_later(rig: Rig) -> None:
    conn = rig.connect()
    rig.block(conn)
    deliver(rig, conn, 1)
    held = rig.listener.flush()
    assert kinds(held) == [DeliveriesHeld, OutputProgressed]
    assert held[0] == DeliveriesHeld((1,))
    waiting = len(join_incoming(ROW, message(1))) + 4
    assert held[1] == OutputProgressed(conn, waiting, has_moved=False)
    observed = rig.unblock(conn)
    assert DeliveriesTaken((1,)) in observed
    assert observed[-1] == OutputProgressed(conn, 0, has_moved=True)
    assert rig.arrived(conn) == [join_incoming(ROW, message(1))]


def test_more_for_a_blocked_connection_is_held_and_counted_and_no_sign_of_life(rig: Rig) -> None:
    conn = rig.connect()
    rig.block(conn)
    deliver(rig, conn, 1)
    first = [event for event in rig.listener.flush() if isinstance(event, OutputProgressed)]
    deliver(rig, conn, 2)
    size_bytes = HEADER_BYTES + len(join_incoming(ROW, message(2)))
    grown = OutputProgressed(conn, first[0].waiting_bytes + size_bytes, has_moved=False)
    assert rig.listener.flush() == [DeliveriesHeld((2,)), grown]
    observed = rig.unblock(conn)
    taken = [token for event in observed if isinstance(event, DeliveriesTaken) for token in event.tokens]
    assert taken == [1, 2]


def test_a_blocked_connection_holds_up_no_other(rig: Rig) -> None:
    slow, quick = rig.connect(), rig.connect()
    rig.block(slow)
    deliver(rig, slow, 1)
    deliver(rig, quick, 2)
    observed = rig.listener.flush()
    assert DeliveriesTaken((2,)) in observed
    assert DeliveriesHeld((1,)) in observed


def test_a_peer_that_is_gone_takes_nothing(rig: Rig) -> None:
    conn = rig.connect()
    rig.reset(conn)
    deliver(rig, conn, 1)
    observed = rig.listener.flush()
    assert kinds(observed) == [ConnectionClosed]
    assert observed[0].conn == conn  # type: ignore[union-attr]


def test_close_discards_what_was_queued(rig: Rig) -> None:
    conn = rig.connect()
    deliver(rig, conn, 1)
    rig.listener.apply(effects.Close(conn, "enough"))
    assert rig.listener.flush() == [ConnectionClosed(conn, "enough")]
    assert rig.arrived(conn) == []


def test_close_after_flush_writes_first(rig: Rig) -> None:
    conn = rig.connect()
    deliver(rig, conn, 1)
    rig.listener.apply(effects.Close(conn, "bye", is_after_flush=True))
    assert rig.listener.flush() == [DeliveriesTaken((1,)), ConnectionClosed(conn, "bye")]
    assert rig.arrived(conn) == [join_incoming(ROW, message(1))]


def test_a_connection_is_closed_once(rig: Rig) -> None:
    conn = rig.connect()
    rig.reset(conn)
    deliver(rig, conn, 1)
    rig.listener.apply(effects.Close(conn, "enough", is_after_flush=True))
    assert kinds(rig.listener.flush()) == [ConnectionClosed]
    assert rig.listener.flush() == []
