"""One client connection without its socket: what may be said, what an answer settles, what comes unasked.

Owns the client's side of the protocol: the state table, correlation by request and message ID, streamed lists,
the waiting ask, what the broker told about itself. Does not own the order of steps of one request (``flows``),
nor bytes' way to a socket, time and randomness (``client``, ``aio``).
"""

from __future__ import annotations

from libintercom.errors import Disconnected, InvalidFrame
from libintercom.inbound import (
    AskEnded,
    ConnectionEnded,
    Inbound,
    LetterDied,
    Mailroom,
    PeerLeft,
    ReadAsked,
    WakeAsked,
    WakeFailed,
)
from libintercom.outcomes import Listing
from libintercom.pending import PendingAsks
from libintercom.wire.answers import ReadRequest, parse_answer, parse_rows
from libintercom.wire.codec import encode
from libintercom.wire.connection import CLOSED, JOINED, OPEN, next_client_state
from libintercom.wire.frames import FrameReader, decode_object, frame
from libintercom.wire.reads import ReadError
from libintercom.wire.requests import ReadResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar

    from libintercom.asking import Waiter
    from libintercom.profile import Profile
    from libintercom.wire.answers import Answer, Incoming, Registered, Sessions
    from libintercom.wire.messages import BrokerHello
    from libintercom.wire.record import Record
    from libintercom.wire.requests import Request

# The kinds of call, so that a request ID never meets an equal message ID.
REGISTRATION = "registration"
REQUEST = "request"
RECEIPT = "receipt"
REPLY = "reply"
PARKING = "parking"
END = "end"


# Reads of this session that wait for its answer; the broker gave up on the oldest of more (5 s, wire.md 9.4).
MAX_READS_ASKED = 1_000
_NOT_SERVED = ReadError(code="unsupported", reason="that session answers no reads; ask it with a message")


class Call:
    """Something that waits for one answer: settled by it, or with None by the end of the connection.

    ``on_settled`` is called once, if set. ``ends_at`` is the position in the connection's output behind its frame.
    """

    __slots__ = ("answer", "ends_at", "is_settled", "on_settled")

    def __init__(self) -> None:
        self.answer: Any = None
        self.ends_at = 0
        self.is_settled = False
        self.on_settled: Callable[[], object] | None = None

    def settle(self, answer: object) -> None:
        """End the wait; only the first answer counts."""
        if self.is_settled:
            return
        self.answer, self.is_settled = answer, True
        if self.on_settled is not None:
            self.on_settled()


class Exchange:
    """One connection's conversation with a broker. Feed it bytes, take its output, look at its calls.

    ``make_id`` returns a fresh UUID, ``now_ms`` Unix milliseconds; both are given, so tests decide them.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        make_id: Callable[[], str],
        now_ms: Callable[[], int],
        mailroom: Mailroom | None = None,
    ) -> None:
        self.profile = profile
        self.make_id, self.now_ms = make_id, now_ms
        self.mailroom = mailroom if mailroom is not None else Mailroom()
        self.pending = PendingAsks()
        self.session_id = ""
        self.broker: BrokerHello | None = None
        self.limits: Any = None
        self.has_ext = False
        self.is_observer = False
        # What else was negotiated: guarded delivery, and reads of receipts.
        self.has_guard = self.has_receipts = False
        # Reads of this session that nobody answered yet: token -> kind.
        self.reads_asked: dict[str, str] = {}
        # Why the connection ended, "" while it lives; ``is_lost`` when it broke off instead of being refused.
        self.end_reason = ""
        self.is_lost = False
        self.waiter: Waiter | None = None
        self._state = OPEN
        # Who never joined is told by an error instead of an event.
        self._has_joined = False
        self._reader = FrameReader()
        self._output: list[bytes] = []
        self._said_bytes = 0
        self._written_bytes = 0
        self._calls: dict[tuple[str, str], Call] = {}
        self._rows: dict[str, dict[str, dict[str, Any]]] = {}
        self._last_error = ""

    # ------------------------------------------------------------------ what a shell looks at

    @property
    def is_ended(self) -> bool:
        """The connection is over: the shell closes its socket."""
        return self._state == CLOSED

    @property
    def is_joined(self) -> bool:
        return self._state == JOINED

    @property
    def has_output(self) -> bool:
        return bool(self._output)

    @property
    def wants_input(self) -> bool:
        """Whether the shell may read more now (the bounds of ``inbound``)."""
        return not self.is_joined or self.mailroom.has_room(is_call_waiting=bool(self._calls))

    def take_output(self) -> bytes:
        """Everything said and not taken yet. Report with ``note_written`` what the kernel took of it."""
        taken = b"".join(self._output)
        self._output.clear()
        return taken

    def note_written(self, size_bytes: int) -> None:
        """So many more bytes of the output left this program, or may have."""
        self._written_bytes += size_bytes

    def has_left(self, call: Call) -> bool:
        """Whether the whole frame of a call may have left this program; False is certain."""
        return call.ends_at <= self._written_bytes

    # ------------------------------------------------------------------ saying

    def say(self, request: Request, call: Call | None = None) -> None:
        """Put a request out.

        Raises:
            Disconnected: this connection's state does not allow it.
            TooLarge: the frame would pass the limit; nothing was put out.
        """
        state = next_client_state(self._state, f">{request.type}")
        if state == CLOSED:
            raise Disconnected(request.type, self.end_reason or "this session is not registered")
        framed = frame(encode(request))
        self._state = state
        self._output.append(framed)
        self._said_bytes += len(framed)
        if call is not None:
            call.ends_at = self._said_bytes

    def open_call(self, kind: str, key: str) -> Call:
        """Begin to wait for the answer with this key."""
        call = self._calls[kind, key] = Call()
        return call

    def has_call(self, kind: str, key: str) -> bool:
        return (kind, key) in self._calls

    def drop_call(self, kind: str, key: str) -> None:
        """Nobody waits for it any more; a late answer is ignored."""
        self._calls.pop((kind, key), None)
        self._rows.pop(key, None)

    def settle_call(self, kind: str, key: str, answer: object) -> None:
        """Settle the call with this key, if there is one."""
        call = self._calls.get((kind, key))
        if call is not None:
            call.settle(answer)

    # ------------------------------------------------------------------ hearing

    def receive(self, received: bytes) -> None:
        """Take bytes from the socket, whatever their split. A violation ends the connection."""
        try:
            for payload in self._reader.feed(received):
                self._take(decode_object(payload), len(payload))
        except InvalidFrame as error:
            self.end(str(error))

    def end(self, reason: str, *, is_lost: bool = False) -> None:
        """The connection is over: calls are settled with None, ``ConnectionEnded`` is a session's last event."""
        if self.is_ended:
            return
        self._state = CLOSED
        self.is_lost = is_lost
        self.end_reason = f"{self._last_error} ({reason})" if self._last_error else reason
        self._output.clear()
        if self._has_joined:
            self.mailroom.add(ConnectionEnded(reason=self.end_reason))
        for call in list(self._calls.values()):
            call.settle(None)

    def _take(self, value: dict[str, Any], size_bytes: int) -> None:
        kind = value["type"]
        was_joined = self.is_joined
        state = next_client_state(self._state, f"<{kind}")
        if state == CLOSED and kind != "error":
            raise InvalidFrame(f"the broker said {kind[:40]!r} to a client that is {self._state}")
        answer = parse_answer(value)
        if state != CLOSED:
            self._state = state
        taker = self._TAKERS.get(kind)
        if taker is not None:
            taker(self, answer)
        elif was_joined:
            self._take_event(answer, value, size_bytes)

    def _take_event(self, answer: Answer, value: dict[str, Any], size_bytes: int) -> None:
        if answer.type == "message":
            self._take_message(answer, {"from": value["from"], "message": value["message"]}, size_bytes)
            return
        if answer.type == ReadRequest.type:
            self._take_read(answer)
            return
        event = _EVENTS.get(answer.type)
        if event is None:
            return
        self.mailroom.add(event(answer))
        self._settle_pending(answer)

    def _take_message(self, answer: Any, raw: dict[str, Any], size_bytes: int) -> None:
        incoming: Incoming = answer
        inbound = Inbound(row=incoming.from_, message=incoming.message, raw=raw)
        if self.waiter is not None and self.waiter.is_answered_by(inbound):
            self.waiter.reply.settle(inbound)
            self.settle_call(RECEIPT, self.waiter.message_id, inbound)
            return
        evicted = self.pending.admit(inbound, self.now_ms())
        self.mailroom.add(inbound, size_bytes)
        if evicted is not None:
            self.mailroom.add(AskEnded(message_id=evicted.message_id, asker_id=evicted.sender_id, reason="evicted"))

    def _take_read(self, asked: Any) -> None:
        if not self.profile.serves_reads:
            self.say(ReadResponse(token=asked.token, kind=asked.kind, error=_NOT_SERVED))
            return
        self.reads_asked[asked.token] = asked.kind
        if len(self.reads_asked) > MAX_READS_ASKED:
            del self.reads_asked[next(iter(self.reads_asked))]
        self.mailroom.add(ReadAsked(**asked.present()))

    def _settle_pending(self, answer: Any) -> None:
        if answer.type == "ask_retired":
            self.pending.settle(answer.message_id)
        elif answer.type == "wake_failed" and self.waiter is not None and self.waiter.message_id == answer.message_id:
            self.waiter.reply.settle(WakeFailed(message_id=answer.message_id, reason=answer.reason))
        elif answer.type == "session_left":
            self.pending.forget_sender(answer.session_id)
            if self.waiter is not None and self.waiter.recipient_id == answer.session_id:
                self.waiter.reply.settle(PeerLeft(session_id=answer.session_id))

    def _take_registered(self, answer: Registered) -> None:
        self.session_id, self._has_joined = answer.session_id, True
        self.broker, self.limits = answer.broker, answer.limits
        # Whoever asked an earlier registration on this socket waits no more.
        self.pending = PendingAsks()
        self.has_ext = answer.ext == 1
        self.is_observer = answer.observer == 1
        self.has_guard, self.has_receipts = answer.guarded_delivery == 1, answer.receipt_reads == 1
        self.reads_asked.clear()
        self.settle_call(REGISTRATION, "", answer)

    def _take_rows(self, answer: Sessions) -> None:
        key = answer.request_id
        if not self.has_call(REQUEST, key):
            return
        rows = self._rows.setdefault(key, {})
        for row in answer.sessions:
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                # A streamed row may come in fragments (wire.md section 4).
                rows.setdefault(row["id"], {}).update(row)
        if answer.more is not True:
            del self._rows[key]
            listing = Listing(rows=tuple(parse_rows(list(rows.values()))), omitted=answer.omitted or 0)
            self.settle_call(REQUEST, key, listing)

    def _take_receipt(self, answer: Any) -> None:
        self.settle_call(RECEIPT, answer.message_id, answer)

    def _take_result(self, answer: Any) -> None:
        self.settle_call(REQUEST, answer.request_id, answer)

    def _take_parking(self, answer: Any) -> None:
        self.settle_call(PARKING, answer.child_id, answer)

    def _take_error(self, answer: Any) -> None:
        self._last_error = answer.error
        if not self.is_joined:
            self.end("the broker refused the registration")

    # Frame -> what takes it; frames that are events for the program stand in ``_EVENTS``.
    _TAKERS: ClassVar[dict[str, Callable[[Exchange, Any], None]]] = {
        "registered": _take_registered,
        "sessions": _take_rows,
        "delivered": _take_receipt,
        "delivery_queued": _take_receipt,
        "delivery_failed": _take_receipt,
        "health_ok": _take_result,
        "stats_result": _take_result,
        "dead_letters_result": _take_result,
        "fetched_reply": _take_result,
        "parked": _take_parking,
        "park_failed": _take_parking,
        "unparked": _take_parking,
        "read_result": _take_result,
        "error": _take_error,
    }


_EVENTS: dict[str, Callable[[Any], Record]] = {
    "wake_request": lambda answer: WakeAsked(
        child_id=answer.child_id, message_id=answer.message_id, attempt=answer.attempt
    ),
    "wake_failed": lambda answer: WakeFailed(message_id=answer.message_id, reason=answer.reason),
    "session_left": lambda answer: PeerLeft(session_id=answer.session_id),
    "ask_retired": lambda answer: AskEnded(
        message_id=answer.message_id, asker_id=answer.asker_id, reason=answer.reason
    ),
    "dead_letter": lambda answer: LetterDied(
        message_id=answer.message_id, recipient_id=answer.recipient_id, reason=answer.reason, at_ms=answer.at_ms
    ),
}
