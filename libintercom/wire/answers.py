"""Broker -> client frames: one frozen type each, and the client's parser (wire.md section 4 and 9).

Owns what a broker may say. Does not own which client may hear it (``intercomd.core``).
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame
from libintercom.wire.messages import (
    REPLY_STATES,
    BrokerHello,
    Candidate,
    DeadLetter,
    Message,
    Receipt,
    Row,
    list_of,
    nested,
)
from libintercom.wire.reads import KINDS, NativeReceipt, Page, ReadError
from libintercom.wire.record import Record, optional, parse_record, required
from libintercom.wire.values import ANYTHING, BOOL, COUNT, LABEL, NUMBER, POSITIVE, STRING, is_hex64, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The parser's word for a frame type it does not know; a strict native client would end the connection.
UNKNOWN_TYPE = "unknown frame type"


class Answer(Record):
    """Base of every broker -> client frame; ``type`` is its name on the wire."""

    type = ""


class Registered(Answer):
    """Always the first frame. What was negotiated is echoed; ``broker`` and ``limits`` go with ``ext``."""

    type = "registered"
    session_id: str = required(STRING)
    ext: int | None = optional(COUNT, default=None)
    observer: int | None = optional(COUNT, default=None)
    broker: BrokerHello | None = optional(nested(BrokerHello), default=None)
    limits: Any = optional(ANYTHING, default=None)
    guarded_delivery: int | None = optional(COUNT, default=None)
    receipt_reads: int | None = optional(COUNT, default=None)


class Sessions(Answer):
    """Rows, registration-independent order (wire.md 14.10). ``more`` on streamed answers, ``omitted`` when cut."""

    type = "sessions"
    request_id: str = required(STRING)
    sessions: Any = required(ANYTHING)
    more: bool | None = optional(BOOL, default=None)
    omitted: int | None = optional(COUNT, default=None)


class Incoming(Answer):
    """A message for this session; ``from_`` is the broker's row of the sender."""

    type = "message"
    from_: Row = required(nested(Row), wire="from")
    message: Message = required(nested(Message))


class SessionLeft(Answer):
    """A session that this one could see is gone."""

    type = "session_left"
    session_id: str = required(STRING)


class Delivered(Answer):
    """The kernel took the whole frame on the recipient's socket (wire.md 14.2)."""

    type = "delivered"
    message_id: str = required(STRING)
    delivery: str | None = optional(STRING, default=None)
    retryable: bool | None = optional(BOOL, default=None)
    outcome_known: bool | None = optional(BOOL, default=None)


class DeliveryQueued(Answer):
    """Accepted and still held by the broker; ``reason`` says why."""

    type = "delivery_queued"
    message_id: str = required(STRING)
    reason: str = required(STRING)


class DeliveryFailed(Answer):
    """Refused: nothing was delivered."""

    type = "delivery_failed"
    message_id: str = required(STRING)
    reason: str = required(STRING)
    code: str | None = optional(STRING, default=None)
    retryable: bool | None = optional(BOOL, default=None)
    outcome_known: bool | None = optional(BOOL, default=None)
    delivery: str | None = optional(STRING, default=None)
    candidates: tuple[Candidate, ...] | None = optional(list_of(Candidate), default=None)
    nearest: tuple[Candidate, ...] | None = optional(list_of(Candidate), default=None)
    rule: str | None = optional(STRING, default=None)
    count: float | None = optional(NUMBER, default=None)
    limit: float | None = optional(NUMBER, default=None)
    retry_after_ms: int | None = optional(COUNT, default=None)


class HealthOk(Answer):
    """The broker is there and reads."""

    type = "health_ok"
    request_id: str = required(STRING)
    protocol: str = required(STRING)
    version: int = required(COUNT)


class ErrorAnswer(Answer):
    """A refusal outside any message, before the connection ends (sibling and ``ext:1`` clients only)."""

    type = "error"
    error: str = required(STRING)
    code: str | None = optional(STRING, default=None)


class ForwardedReceipt(Answer):
    """A sibling recipient's receipt, for the sibling that sent the message."""

    type = "message_receipt"
    from_: Row = required(nested(Row), wire="from")
    receipt: Receipt = required(nested(Receipt))


class AskRetired(Answer):
    """Nobody waits for the reply to this question any more (wire.md 9.6)."""

    type = "ask_retired"
    message_id: str = required(STRING)
    asker_id: str = required(STRING)
    reason: str = required(STRING)


class DeadLetterNotice(Answer):
    """One of this session's accepted messages can no longer arrive."""

    type = "dead_letter"
    message_id: str = required(STRING)
    recipient_id: str = required(STRING)
    reason: str = required(STRING)
    at_ms: float = required(NUMBER)


class DeadLetters(Answer):
    """This session's dead letters, oldest first; ``omitted`` when they do not all fit one frame."""

    type = "dead_letters_result"
    request_id: str = required(STRING)
    letters: tuple[DeadLetter, ...] = required(list_of(DeadLetter))
    omitted: int | None = optional(COUNT, default=None)


class StatsResult(Answer):
    """Counters (only grow) and gauges (what is held now)."""

    type = "stats_result"
    request_id: str = required(STRING)
    counters: Any = required(ANYTHING)
    gauges: Any = required(ANYTHING)


class Parked(Answer):
    """A child is parked, or will be as soon as it leaves (wire.md 9.5)."""

    type = "parked"
    child_id: str = required(STRING)


class ParkFailed(Answer):
    """Nothing changed: ``not_your_child``, ``child_live``, ``limit``, ``has_input`` or ``store_failed``."""

    type = "park_failed"
    child_id: str = required(STRING)
    code: str = required(STRING)


class Unparked(Answer):
    """A child is parked no more; ``dropped`` messages that waited for it became dead letters."""

    type = "unparked"
    child_id: str = required(STRING)
    dropped: int = required(COUNT)


class WakeRequest(Answer):
    """Input waits for a parked child of this main; answered by ``wake_outcome`` with the same ``attempt``."""

    type = "wake_request"
    child_id: str = required(STRING)
    message_id: str = required(STRING)
    attempt: int = required(COUNT)


class WakeFailedNotice(Answer):
    """The session that this question waits for could not be woken: the wait is over, the question stands."""

    type = "wake_failed"
    message_id: str = required(STRING)
    reason: str = required(STRING)


class FetchedReply(Answer):
    """What became of a kept ask: ``waiting``, ``replied`` (with the reply), ``expired`` or ``unknown``."""

    type = "fetched_reply"
    request_id: str = required(STRING)
    state: str = required(one_of(*REPLY_STATES))
    message: Any = optional(ANYTHING, default=None)
    from_: Any = optional(ANYTHING, default=None, wire="from")


class ReadRequest(Answer):
    """Somebody reads from this session; it answers with ``read_response`` under the same ``token``."""

    type = "read_request"
    token: str = required(STRING)
    kind: str = required(one_of(*KINDS))
    entry_id: str | None = optional(LABEL, default=None)
    offset: int | None = optional(COUNT, default=None)
    limit: int | None = optional(POSITIVE, default=None)
    root_session_id: str | None = optional(LABEL, default=None)
    message_id: str | None = optional(LABEL, default=None)


class ReadResult(Answer):
    """How a ``read`` of this session ended: one of page, receipt and error. ``peer_id`` is whom it reached."""

    type = "read_result"
    request_id: str = required(STRING)
    kind: str = required(one_of(*KINDS))
    peer_id: str | None = optional(STRING, default=None)
    page: Page | None = optional(nested(Page), default=None)
    receipt: NativeReceipt | None = optional(nested(NativeReceipt), default=None)
    error: ReadError | None = optional(nested(ReadError), default=None)

    def violation(self) -> str:
        """Exactly one of its three forms."""
        told = [part for part in (self.page, self.receipt, self.error) if part is not None]
        return "" if len(told) == 1 else "a read_result has one of page, receipt and error"


_PARSED = (
    Registered,
    Sessions,
    Incoming,
    SessionLeft,
    Delivered,
    DeliveryQueued,
    DeliveryFailed,
    HealthOk,
    ErrorAnswer,
    ForwardedReceipt,
    AskRetired,
    DeadLetterNotice,
    DeadLetters,
    StatsResult,
    Parked,
    ParkFailed,
    Unparked,
    WakeRequest,
    WakeFailedNotice,
    FetchedReply,
    ReadRequest,
    ReadResult,
)
ANSWERS: dict[str, type[Answer]] = {cls.type: cls for cls in _PARSED}


def parse_answer(value: dict[str, Any]) -> Answer:
    """The answer of a decoded object (which has a string ``type``).

    Raises:
        InvalidFrame: an unknown type (reason starts with ``UNKNOWN_TYPE``) or a broken rule.
    """
    kind = value["type"]
    if kind not in ANSWERS:
        raise InvalidFrame(f"{UNKNOWN_TYPE} {kind[:40]!r}")
    if kind == Sessions.type and not isinstance(value.get("sessions"), list):
        raise InvalidFrame("sessions is not a list")
    if "from" in value:
        value = {**value, "from": _drop_bad_project(value["from"])}
    return parse_record(ANSWERS[kind], value)


def parse_rows(values: list[Any]) -> list[Row]:
    """The valid rows of a ``sessions`` frame: a bad row is left out, a bad project id only dropped."""
    rows = []
    for value in values:
        try:
            rows.append(parse_row(value))
        except InvalidFrame:
            continue
    return rows


def parse_row(value: object) -> Row:
    """One row; a project id that breaks its rule is dropped instead of the row (wire.md 2.1)."""
    return parse_record(Row, _drop_bad_project(value))


def _drop_bad_project(row: Any) -> Any:
    if isinstance(row, dict) and "projectId" in row and not is_hex64(row["projectId"]):
        return {name: member for name, member in row.items() if name != "projectId"}
    return row
