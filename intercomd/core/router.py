"""The broker's decisions: one event in, the effects it asks for out (house.md section 4).

Owns which part of the core answers which event, frame and deadline. The parts own the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from intercomd.core import events
from intercomd.core.bursts import Bursts
from intercomd.core.deliveries import Deliveries
from intercomd.core.effects import Close
from intercomd.core.flow import Flow
from intercomd.core.kept import Kept
from intercomd.core.lifetime import Lifetime
from intercomd.core.membership import Membership
from intercomd.core.obligations import Obligations
from intercomd.core.parking import Parking
from intercomd.core.queries import Queries, Query
from intercomd.core.reads import Reads
from intercomd.core.receipts import Receipts
from intercomd.core.roster import Connection
from intercomd.core.sends import Sends
from intercomd.core.spooled import Spooled
from intercomd.core.staging import Staging
from intercomd.core.state import State
from intercomd.core.waking import Waking
from libintercom.wire import requests
from libintercom.wire.answers import HealthOk
from libintercom.wire.connection import BROKER_TABLE, OBSERVING, REGISTERED, UNREGISTERED
from libintercom.wire.values import size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.core.effects import Effect
    from intercomd.core.events import Event, FrameReceived
    from intercomd.core.limits import Limits
    from intercomd.core.roster import Session
    from libintercom.wire.messages import BrokerHello

F = TypeVar("F", bound="requests.Request")

# What ``health_ok`` names, for every client of the lineage (wire.md section 4).
PROTOCOL = "pi-intercom"
PROTOCOL_VERSION = 1
# The longest id that an answer repeats: with every character escaped it still leaves room in a frame.
_MAX_ECHOED_BYTES = 65_536
# Requests of ours, allowed to those who negotiated them; anyone else said something unknown.
_EXTENDED = (
    *("stats", "dead_letters", "read", "read_response"),
    *("park", "unpark", "wake_outcome", "fetch_reply", "ack_reply"),
)
_READS = ("read", "read_response")


class Router:
    """The whole core. ``now`` is monotonic seconds and never runs backwards."""

    def __init__(self, limits: Limits, hello: BrokerHello, started_at_ms: int, now: float) -> None:
        self.state = State(limits, hello, started_at_ms, now)
        self.obligations = Obligations(self.state)
        self.deliveries = Deliveries(self.state, self.obligations)
        self.staging = Staging(self.state, self.obligations, self.deliveries)
        self.receipts = Receipts(self.state)
        self.parking = Parking(self.state, self.obligations, self.deliveries, Waking(self.state, self.obligations))
        self.kept = Kept(self.state, self.obligations)
        self.spooled = Spooled(self.state, self.parking, self.kept)
        self.obligations.on_kept_end = self.kept.ask_ended
        self.sends = Sends(
            self.state, self.obligations, self.deliveries, self.staging, self.receipts, self.parking, self.kept
        )
        self.membership = Membership(self.state, self.parking, self._settle_left)
        self.queries = Queries(self.state, self.obligations, self.kept)
        self.flow = Flow(self.state, self.membership, self.queries)
        self.bursts = Bursts(self.state, self.flow, self.sends, self.deliveries)
        self.reads = Reads(self.state, self.flow.charge_input)
        self.lifetime = Lifetime(self.state, self.flow, self.staging, self.parking)
        self.lifetime.consider_idle()

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Decide on one event."""
        turn, lifetime = self.state.turn, self.lifetime
        # ``turn.begin`` without a call: this is the way of every message.
        turn.now = now
        effects: list[Effect] = []
        turn.effects = effects
        if not lifetime.is_over:
            self._ON_EVENT[type(event)](self, event)
            if lifetime.is_leaving:
                lifetime.consider_end()
        return effects

    def next_deadline(self) -> float | None:
        """When ``handle_deadline`` is due; None when nothing waits."""
        return None if self.lifetime.is_over else self.state.deadlines.next_at()

    def handle_deadline(self, now: float) -> list[Effect]:
        """Decide on everything that is due."""
        turn = self.state.turn
        turn.begin(now)
        while not self.lifetime.is_over and (key := self.state.deadlines.take_due(now)) is not None:
            self._ON_DEADLINE[str(key[0])](self, *key[1:])
        return turn.effects

    # -- connections ---------------------------------------------------------------------------------

    def _accept(self, event: events.ConnectionAccepted) -> None:
        self.state.turn.learn_wall_time(event.at_ms)
        connection = self.state.roster.connections[event.conn] = Connection(event.conn)
        self.flow.count_unregistered(connection)

    def _receive(self, event: FrameReceived) -> None:
        connection = self.state.roster.connections.get(event.conn)
        if connection is None or connection.is_closing:
            return
        self.state.turn.learn_wall_time(event.at_ms)
        frame = event.frame
        kind = frame.type
        is_allowed = (connection.state, kind) in BROKER_TABLE
        if not is_allowed or (kind in _EXTENDED and not self._is_negotiated(connection, frame)):
            self._violate(event.conn, f"{kind} is not allowed while {connection.state}")
            return
        self.flow.charge_input(connection, event.size_bytes)
        if connection.session is not None:
            connection.session.row.seen(event.at_ms)
        action = self._ON_FRAME.get(type(frame)) or self._action_for(type(frame))
        action(self, connection, event)

    def _receive_sends(self, event: events.SendsReceived) -> None:
        connection = self.state.roster.connections.get(event.conn)
        if connection is None or connection.is_closing:
            return
        self.state.turn.learn_wall_time(event.at_ms)
        if (connection.state, "send") not in BROKER_TABLE:
            self._violate(event.conn, f"send is not allowed while {connection.state}")
            return
        if connection.session is not None:
            connection.session.row.seen(event.at_ms)
        self.bursts.send(connection, event.sends)

    def _is_negotiated(self, connection: Connection, frame: requests.Request) -> bool:
        if frame.type in _READS:
            return self.reads.is_allowed(connection)
        return connection.has_ext or (connection.is_observer and frame.type == "stats")

    def _violate(self, conn: int, reason: str) -> None:
        connection = self.state.roster.connections.get(conn)
        if connection is not None and not connection.is_closing:
            connection.is_closing = True
            self.state.turn.log("info", "connection ended", conn=conn, reason=reason)
            self.state.turn.add(Close(conn, reason))

    def _close(self, event: events.ConnectionClosed) -> None:
        connection = self.state.roster.connections.get(event.conn)
        if connection is None:
            return
        self.deliveries.lose(connection)
        self.membership.leave(connection)
        self.flow.drop(connection)
        del self.state.roster.connections[event.conn]
        self.lifetime.consider_idle()

    def _lose(self, event: events.ConnectionsLost) -> None:
        """Thousands may go at once: whoever is gone is not told of the others."""
        for conn in event.conns:
            session = self.state.roster.session_of(conn)
            if session is not None:
                self.state.roster.deafen(session)

    def _hold_partial(self, event: events.FrameBegun) -> None:
        connection = self.state.roster.connections.get(event.conn)
        if connection is not None:
            self.flow.hold_partial(connection, event.held_bytes)

    def _progress(self, event: events.OutputProgressed) -> None:
        connection = self.state.roster.connections.get(event.conn)
        if connection is not None:
            self.flow.progress(connection, event.waiting_bytes, has_moved=event.has_moved)

    # -- frames --------------------------------------------------------------------------------------

    def _register(self, connection: Connection, event: FrameReceived) -> None:
        if not self.membership.register(connection, _as(event, requests.Register), event.ids):
            return
        connection.state = OBSERVING if connection.observer is not None else REGISTERED
        self.flow.count_registered(connection)
        self.lifetime.consider_idle()

    def _unregister(self, connection: Connection, _event: FrameReceived) -> None:
        self.membership.leave(connection)
        self.flow.drop_session(connection)
        connection.state, connection.has_ext, connection.has_guard = UNREGISTERED, False, False
        self.flow.count_unregistered(connection)
        self.lifetime.consider_idle()

    def _query(self, connection: Connection, event: FrameReceived) -> None:
        frame = event.frame
        if not isinstance(frame, Query):
            raise TypeError(f"{frame!r} is no query")
        if self._is_echoable(connection, frame.request_id):
            self.flow.query(connection, frame)

    def _is_echoable(self, connection: Connection, text: str) -> bool:
        """Whether an answer can carry this text; an id as long as a frame could never come back in one."""
        if size_of(text) <= _MAX_ECHOED_BYTES:
            return True
        self._violate(connection.conn, f"an id of {size_of(text)} bytes (limit {_MAX_ECHOED_BYTES})")
        return False

    def _send(self, connection: Connection, event: FrameReceived) -> None:
        # The table gives this action to sends alone; asking again costs on every message.
        frame = cast("requests.Send", event.frame)
        self.sends.send(connection, frame.to, frame.message, event.message, event.size_bytes)

    def _refuse_invalid(self, connection: Connection, event: FrameReceived) -> None:
        self.sends.refuse_invalid(connection, _as(event, requests.BadSend).message_id, event.size_bytes)

    def _change_presence(self, connection: Connection, event: FrameReceived) -> None:
        if not self.flow.change_presence(connection, _as(event, requests.Presence)):
            self._violate(event.conn, "presence makes the row invalid")

    def _answer_health(self, connection: Connection, event: FrameReceived) -> None:
        request_id = _as(event, requests.Health).request_id
        if self._is_echoable(connection, request_id):
            answer = HealthOk(request_id=request_id, protocol=PROTOCOL, version=PROTOCOL_VERSION)
            self.state.turn.write(connection.conn, answer)

    def _forward_receipt(self, connection: Connection, event: FrameReceived) -> None:
        self.receipts.forward(connection, _as(event, requests.SendReceipt))

    def _cancel_message(self, connection: Connection, event: FrameReceived) -> None:
        message_id = _as(event, requests.CancelMessage).message_id
        if connection.session is not None and self._is_echoable(connection, message_id):
            self.staging.cancel(connection.session, message_id)

    def _cancel_ask(self, connection: Connection, event: FrameReceived) -> None:
        if connection.session is not None:
            self.obligations.cancel(connection.session.peer_id, _as(event, requests.CancelAsk).message_id)

    def _hear_main(self, connection: Connection, event: FrameReceived) -> None:
        self.parking.hear(connection, event.frame)

    def _acknowledge_reply(self, _connection: Connection, event: FrameReceived) -> None:
        self.kept.acknowledge(_as(event, requests.AckReply))

    def _read(self, connection: Connection, event: FrameReceived) -> None:
        frame = _as(event, requests.Read)
        if self._is_echoable(connection, frame.request_id):
            self.reads.read(connection, frame, event.ids[0])

    def _respond_read(self, connection: Connection, event: FrameReceived) -> None:
        self.reads.respond(connection, _as(event, requests.ReadResponse))

    def _ignore(self, connection: Connection, event: FrameReceived) -> None:
        """A sibling's extension frame: heard, charged, of no effect."""

    # -- settled and due -----------------------------------------------------------------------------

    def _settle_left(self, session: Session) -> None:
        """What a leaving session asked, owes, staged and read ends, its questions first."""
        self.obligations.leave(session.peer_id, is_parked=self.parking.expects(session))
        self.staging.leave(session.peer_id)
        self.reads.leave(session.peer_id)

    def _reject(self, event: events.FrameRejected) -> None:
        self._violate(event.conn, event.reason)

    def _take(self, event: events.DeliveriesTaken) -> None:
        self.deliveries.taken_all(event.tokens)

    def _hold(self, event: events.DeliveriesHeld) -> None:
        for token in event.tokens:
            self.deliveries.held(token)

    def _hear_spool(self, event: events.Stored | events.StoreFailed | events.Forgotten) -> None:
        self.spooled.hear(event)
        self.lifetime.consider_idle()

    def _recover(self, event: events.Recovered) -> None:
        self.spooled.recover(event)
        self.lifetime.consider_idle()

    def _exhausted(self, _event: events.DescriptorsExhausted) -> None:
        self.flow.descriptors_exhausted()

    def _stop(self, event: events.StopRequested) -> None:
        self.lifetime.stop(event.reason)

    def _stay(self, _event: events.StopCancelled) -> None:
        self.lifetime.stay()

    def _released(self, _event: events.EndpointReleased) -> None:
        self.lifetime.released()

    def _register_late(self, conn: int) -> None:
        self._violate(conn, "did not register in time")

    def _frame_late(self, conn: int) -> None:
        connection = self._open_connection(conn)
        if connection is not None and self.flow.is_frame_late(connection):
            self._violate(conn, "did not complete a frame in time")

    def _stalled(self, conn: int) -> None:
        connection = self._open_connection(conn)
        if connection is not None:
            self.flow.stall(connection)

    def _settle_late(self, conn: int) -> None:
        connection = self._open_connection(conn)
        if connection is not None:
            self.flow.settle_late(connection)
            self.lifetime.consider_idle()

    def _open_connection(self, conn: int) -> Connection | None:
        connection = self.state.roster.connections.get(conn)
        return None if connection is None or connection.is_closing else connection

    def _stage_late(self, *key: str) -> None:
        self.staging.release((key[0], key[1], key[2]))

    def _parked_late(self, child_id: str) -> None:
        self.parking.expire(child_id)
        self.lifetime.consider_idle()

    @classmethod
    def _action_for(cls, kind: type) -> Callable[[Router, Connection, FrameReceived], None]:
        """The action for a frame's class; a decoder's twin of a class acts as the class it stands for."""
        table = cls._ON_FRAME
        if kind not in table:
            table[kind] = next(table[base] for base in kind.__mro__ if base in table)
        return table[kind]

    _ON_EVENT: ClassVar[dict[type, Callable[[Router, Any], None]]] = {
        events.ConnectionAccepted: _accept,
        events.FrameReceived: _receive,
        events.SendsReceived: _receive_sends,
        events.FrameRejected: _reject,
        events.FrameBegun: _hold_partial,
        events.ConnectionClosed: _close,
        events.ConnectionsLost: _lose,
        events.DeliveriesTaken: _take,
        events.DeliveriesHeld: _hold,
        events.OutputProgressed: _progress,
        **dict.fromkeys((events.Stored, events.StoreFailed, events.Forgotten), _hear_spool),
        events.Recovered: _recover,
        events.DescriptorsExhausted: _exhausted,
        events.StopRequested: _stop,
        events.StopCancelled: _stay,
        events.EndpointReleased: _released,
    }
    _ON_FRAME: ClassVar[dict[type, Callable[[Router, Connection, FrameReceived], None]]] = {
        requests.Register: _register,
        requests.Unregister: _unregister,
        requests.ListSessions: _query,
        requests.Send: _send,
        requests.BadSend: _refuse_invalid,
        requests.Presence: _change_presence,
        requests.Health: _answer_health,
        requests.SendReceipt: _forward_receipt,
        requests.CancelMessage: _cancel_message,
        requests.CancelAsk: _cancel_ask,
        requests.Ignored: _ignore,
        requests.Stats: _query,
        requests.ListDeadLetters: _query,
        **dict.fromkeys((requests.Park, requests.Unpark, requests.WakeOutcome), _hear_main),
        requests.FetchReply: _query,
        requests.AckReply: _acknowledge_reply,
        requests.Read: _read,
        requests.ReadResponse: _respond_read,
    }
    _ON_DEADLINE: ClassVar[dict[str, Callable[..., None]]] = {
        "register": _register_late,
        "frame": _frame_late,
        "stall": _stalled,
        "late": _settle_late,
        "ask": lambda self, asker_id, message_id: self.obligations.time_out(asker_id, message_id),
        "stage": _stage_late,
        "parked": _parked_late,
        "drain": lambda self, child_id: self.parking.retry_drain(child_id),
        "kept": lambda self, asker_id, message_id: self.kept.expire(asker_id, message_id),
        "read": lambda self, token: self.reads.time_out(token),
        "accept": lambda self: self.flow.retry_accepting(),
        "idle": lambda self: self.lifetime.meet_idle(),
        "stop": lambda self: self.lifetime.end(),
    }


def _as(event: FrameReceived, kind: type[F]) -> F:
    """The frame as the class its table entry promises."""
    if not isinstance(event.frame, kind):
        raise TypeError(f"{event.frame!r} is no {kind.__name__}")
    return event.frame
