"""Client -> broker frames: one frozen type each, and the parser for a decoded object (wire.md section 3).

Owns what a client may say. Does not own when it may say it (``connection``).
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame
from libintercom.wire.messages import (
    NATIVE,
    SIBLING,
    WAKE_OUTCOMES,
    Message,
    ParkedRow,
    Receipt,
    Registration,
    leniently,
    nested,
)
from libintercom.wire.reads import KINDS, LAST, NativeReceipt, Page, ReadError
from libintercom.wire.record import ABSENT, Record, nullable, optional, parse_record, required
from libintercom.wire.values import (
    ANYTHING,
    BOOL,
    COUNT,
    HEX32,
    LABEL,
    NUMBER,
    POSITIVE,
    STRING,
    TEXT,
    is_number,
    js_trim,
    one_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Request(Record):
    """Base of every client -> broker frame; ``type`` is its name on the wire."""

    type = ""


class Register(Request):
    """Join as a session. ``requestedId`` (native) or ``sessionId`` (sibling) names the wanted peer ID."""

    type = "register"
    session: Registration = required(nested(Registration))
    requested_id: Any = optional(ANYTHING, default=None)
    session_id: Any = optional(ANYTHING, default=None)
    scope_id: Any = optional(ANYTHING, default=None)
    topic_frames: Any = optional(ANYTHING, default=None)
    ext: Any = optional(ANYTHING, default=None)
    observer: Any = optional(ANYTHING, default=None)
    guarded_delivery: Any = optional(ANYTHING, default=None)
    receipt_reads: Any = optional(ANYTHING, default=None)

    @property
    def dialect(self) -> str:
        """``SIBLING`` with numeric pid, startedAt and lastActivity and no requestedId (wire.md 8.1)."""
        session = self.session
        numbers = (session.pid, session.started_at, session.last_activity)
        is_sibling = self.requested_id is None and all(is_number(number) for number in numbers)
        return SIBLING if is_sibling else NATIVE

    def violation(self) -> str:
        """A sibling's own id must be a non-blank string, its scope a string (wire.md section 3)."""
        if self.dialect == NATIVE:
            return ""
        if self.session_id is not None and not (isinstance(self.session_id, str) and js_trim(self.session_id)):
            return "sessionId is blank"
        if self.scope_id is not None and not isinstance(self.scope_id, str):
            return "scopeId is not a string"
        return ""


class Unregister(Request):
    """Leave; the socket stays open and may register again."""

    type = "unregister"


class ListSessions(Request):
    """Ask for the rows the session may see."""

    type = "list"
    request_id: str = required(STRING)
    stream: Any = optional(ANYTHING, default=None)


class Send(Request):
    """Send a message. Invalid ones never drop the connection: see ``BadSend``."""

    type = "send"
    to: str = required(STRING)
    message: Message = required(nested(Message))


class BadSend(Request):
    """A ``send`` whose target or message is invalid; answered ``invalid_message`` under ``message_id``."""

    type = "send"
    message_id: str = required(STRING)


class Presence(Request):
    """Change what others see of this session; only these members can change, and never the group."""

    type = "presence"
    name: str | None = optional(STRING, default=None)
    status: str | None = optional(STRING, default=None)
    model: str | None = optional(STRING, default=None)
    pending_asks: int | None = optional(COUNT, default=None)
    accepts_asks: bool | None = optional(BOOL, default=None)
    last_intercom_activity: float | None = optional(NUMBER, default=None)
    runtime_fallback_alias: bool | None = optional(BOOL, default=None)
    context_pct: float | None = nullable(NUMBER, default=ABSENT)
    context_tokens: float | None = nullable(NUMBER, default=ABSENT)
    context_window: float | None = nullable(NUMBER, default=ABSENT)
    application_guard: str | None = nullable(LABEL, default=ABSENT)


class Health(Request):
    """Is the broker there? Allowed before registering."""

    type = "health"
    request_id: str = required(STRING)


class SendReceipt(Request):
    """A sibling's receipt for a message it got."""

    type = "message_receipt"
    receipt: Receipt = required(nested(Receipt))


class CancelMessage(Request):
    """Take back a message of one's own that is still staged."""

    type = "cancel_message"
    message_id: str = required(STRING)


class CancelAsk(Request):
    """Nobody waits for the reply to this ask any more."""

    type = "cancel_ask"
    message_id: str = required(STRING)


class Stats(Request):
    """Counters and gauges (``ext:1`` and observers)."""

    type = "stats"
    request_id: str = required(STRING)


class ListDeadLetters(Request):
    """One's own messages that could not arrive (``ext:1``)."""

    type = "dead_letters"
    request_id: str = required(STRING)
    since_ms: float | None = optional(NUMBER, default=None)


class Park(Request):
    """A main says that a child of its group goes away, or is away, and will come back (wire.md 9.5).

    ``run_id`` is the main's own name for the child's run: kept, never judged.
    """

    type = "park"
    child_id: str = required(LABEL)
    row: ParkedRow | None = optional(nested(ParkedRow), default=None)
    run_id: str | None = optional(LABEL, default=None)


class Unpark(Request):
    """A parked child will not come back; ``discard`` gives up the input that waits for it."""

    type = "unpark"
    child_id: str = required(LABEL)
    discard: bool = required(BOOL)


class WakeOutcome(Request):
    """What became of waking a child: the answer to ``wake_request``."""

    type = "wake_outcome"
    child_id: str = required(LABEL)
    attempt: int = required(COUNT)
    outcome: str = required(one_of(*WAKE_OUTCOMES))
    reason: str | None = optional(TEXT, default=None)


class FetchReply(Request):
    """Look whether the reply to a kept ask has come (wire.md 9.7); whoever has the token may."""

    type = "fetch_reply"
    request_id: str = required(LABEL)
    message_id: str = required(LABEL)
    reply_token: str = required(HEX32)


class AckReply(Request):
    """A fetched reply is where it belongs: the broker may forget it."""

    type = "ack_reply"
    message_id: str = required(LABEL)
    reply_token: str = required(HEX32)


class Read(Request):
    """Read a session's last response (``ext:1``) or its receipt for a message (``receiptReads:1``), wire.md 9.4.

    ``offset`` and ``limit`` count UTF-16 code units; a limit over ``reads.MAX_PAGE_UNITS`` means that.
    """

    type = "read"
    request_id: str = required(STRING)
    kind: str = required(one_of(*KINDS))
    to: str = required(STRING)
    entry_id: str | None = optional(LABEL, default=None)
    offset: int | None = optional(COUNT, default=None)
    limit: int | None = optional(POSITIVE, default=None)
    root_session_id: str | None = optional(LABEL, default=None)
    message_id: str | None = optional(LABEL, default=None)

    def violation(self) -> str:
        """A receipt is read by root and message."""
        if self.kind != LAST and (self.root_session_id is None or self.message_id is None):
            return "a receipt read needs rootSessionId and messageId"
        return ""


class ReadResponse(Request):
    """The owner's answer to a ``read_request``: one of page, receipt and error; what is none of them is no answer."""

    type = "read_response"
    token: str = required(STRING)
    kind: str = required(STRING)
    page: Any = optional(leniently(Page), default=None)
    receipt: Any = optional(leniently(NativeReceipt), default=None)
    error: Any = optional(leniently(ReadError), default=None)


class Ignored(Request):
    """A sibling's extension frame: accepted and ignored (wire.md 8.4)."""

    type = "extension"


_PARSED = (
    Register,
    Unregister,
    ListSessions,
    Send,
    Presence,
    Health,
    SendReceipt,
    CancelMessage,
    CancelAsk,
    Stats,
    ListDeadLetters,
    Park,
    Unpark,
    WakeOutcome,
    FetchReply,
    AckReply,
    Read,
    ReadResponse,
)
REQUESTS: dict[str, type[Request]] = {cls.type: cls for cls in _PARSED}
# wire.md section 3: the sibling's extension frames.
IGNORED_TYPES = ("extension_capabilities_update", "extension_publish", "extension_state_commit")


def parse_request(value: dict[str, Any]) -> Request:
    """The request of a decoded object (which has a string ``type``).

    Raises:
        InvalidFrame: unknown type or a broken rule; the connection must end.
    """
    kind = value["type"]
    if kind in IGNORED_TYPES:
        return Ignored()
    if kind not in REQUESTS:
        raise InvalidFrame(f"unknown frame type {kind[:40]!r}")
    if kind == Send.type:
        return _parse_send(value)
    return parse_record(REQUESTS[kind], value)


def _parse_send(value: dict[str, Any]) -> Send | BadSend:
    try:
        message = parse_record(Message, value.get("message"))
    except InvalidFrame:
        return BadSend(message_id="unknown")
    to = value.get("to")
    return Send(to=to, message=message) if isinstance(to, str) else BadSend(message_id=message.id)
