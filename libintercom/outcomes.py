"""How a send, an ask or a list ended: only what was observed, in one word, with its parts.

Owns the words and what they claim. Does not own the sentences about them (``texts``). The members of a dumped
``Outcome`` are those of ``intercomctl send --json``.
"""

from __future__ import annotations

from libintercom.wire.answers import Delivered, DeliveryFailed, DeliveryQueued
from libintercom.wire.messages import REPLY_STATES, Candidate, Row, list_of, nested
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import ANYTHING, BOOL, COUNT, NUMBER, STRING, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.wire.answers import Answer

DELIVERED = "delivered"
QUEUED = "queued"
REFUSED = "refused"
UNKNOWN = "unknown"
NOT_SENT = "not_sent"

# Codes of this side, beside those of ``wire.codes``: nothing was sent for this reason.
NOT_CONNECTED = "not_connected"
ALREADY_WAITING = "already_waiting"
NO_PENDING_ASK = "no_pending_ask"

# What old brokers say without a code (wire.md section 4, literal reasons); other texts stay without one.
_REASON_CODES = (
    ("Session not found", "not_found"),
    ("Multiple sessions named ", "ambiguous"),
    ("Invalid message format", "invalid_message"),
    ("Intercom message too large", "too_large"),
    ("Sender session not found", "not_registered"),
    ("Recipient disconnected before delivery", "recipient_left"),
    ("Replace-mode delivery queue is full", "stage_full"),
)


class Outcome(Record):
    """What is known about one message.

    ``delivered``: in the recipient's socket. ``queued``: accepted, still held. ``refused``: the broker refused,
    nothing arrived. ``not_sent``: it never left this program. ``unknown``: it left and no word came back; then
    ``accepted`` and ``delivered`` are absent and ``delivery_unknown`` is true (seeds, "Send, ask, and reply").
    """

    outcome: str = required(one_of(DELIVERED, QUEUED, REFUSED, UNKNOWN, NOT_SENT))
    message_id: str = required(STRING)
    code: str | None = optional(STRING, default=None)
    reason: str | None = optional(STRING, default=None)
    retryable: bool | None = optional(BOOL, default=None)
    candidates: tuple[Candidate, ...] | None = optional(list_of(Candidate), default=None)
    nearest: tuple[Candidate, ...] | None = optional(list_of(Candidate), default=None)
    rule: str | None = optional(STRING, default=None)
    count: float | None = optional(NUMBER, default=None)
    limit: float | None = optional(NUMBER, default=None)
    retry_after_ms: int | None = optional(COUNT, default=None)
    accepted: bool | None = optional(BOOL, default=None)
    delivered: bool | None = optional(BOOL, default=None)
    delivery_unknown: bool = required(BOOL)

    @property
    def is_accepted(self) -> bool:
        """The broker took it: it was delivered, or it is held for its recipient."""
        return self.accepted is True


class Answered(Record):
    """How an ask ended: what became of the question, and the reply if one came.

    ``ended_by`` is ``""`` with a reply; else ``timeout``, ``cancelled``, ``peer_left``, ``disconnected``,
    ``peer_busy`` (accepted, the recipient says it takes no asks now), ``wake_failed`` (it is parked and could not be
    woken; the question stands, and ``reason`` says why), or ``""`` when it was never accepted. With a ``reply_token``
    a late reply is kept for ``fetch_reply``.
    """

    outcome: Outcome = required(nested(Outcome))
    reply: Any = optional(ANYTHING, default=None)
    ended_by: str = required(
        one_of("", "timeout", "cancelled", "peer_left", "disconnected", "peer_busy", "wake_failed")
    )
    reason: str | None = optional(STRING, default=None)
    reply_token: str | None = optional(STRING, default=None)


class LateReply(Record):
    """What became of a kept ask: ``waiting``, ``replied`` (``reply`` is an ``Inbound``), ``expired`` or ``unknown``."""

    state: str = required(one_of(*REPLY_STATES))
    reply: Any = optional(ANYTHING, default=None)


class Listing(Record):
    """The rows this session may see, its own included; ``omitted`` more did not fit an unstreamed answer."""

    rows: tuple[Row, ...] = required(list_of(Row))
    omitted: int = required(COUNT)


def outcome_of(message_id: str, answer: Answer) -> Outcome:
    """The outcome a broker's receipt stands for."""
    if isinstance(answer, DeliveryFailed):
        return _failed(message_id, answer)
    is_queued = isinstance(answer, DeliveryQueued) or (isinstance(answer, Delivered) and answer.delivery == QUEUED)
    # The sibling's broker says "queued" inside ``delivered``, without a reason.
    reason = getattr(answer, "reason", None)
    extra = {"reason": reason} if reason is not None else {}
    return Outcome(
        outcome=QUEUED if is_queued else DELIVERED,
        message_id=message_id,
        accepted=True,
        delivered=not is_queued,
        delivery_unknown=False,
        **extra,
    )


# What a refusal tells beside its reason.
_REFUSAL_PARTS = ("retryable", "candidates", "nearest", "rule", "count", "limit", "retry_after_ms")


def _failed(message_id: str, answer: DeliveryFailed) -> Outcome:
    if answer.outcome_known is False:
        return unknown(message_id, answer.reason)
    code = answer.code or next((code for start, code in _REASON_CODES if answer.reason.startswith(start)), None)
    told = {name: getattr(answer, name) for name in _REFUSAL_PARTS if getattr(answer, name) is not None}
    if code is not None:
        told["code"] = code
    return Outcome(
        outcome=REFUSED,
        message_id=message_id,
        reason=answer.reason,
        accepted=False,
        delivered=False,
        delivery_unknown=False,
        **told,
    )


def unknown(message_id: str, reason: str) -> Outcome:
    """It left and nobody can tell what became of it."""
    return Outcome(outcome=UNKNOWN, message_id=message_id, reason=reason, delivery_unknown=True)


def not_sent(message_id: str, code: str, reason: str, candidates: tuple[Candidate, ...] = ()) -> Outcome:
    """It certainly never left this program whole, so it cannot have arrived."""
    told: dict[str, Any] = {"candidates": candidates} if candidates else {}
    return Outcome(
        outcome=NOT_SENT,
        message_id=message_id,
        code=code,
        reason=reason,
        accepted=False,
        delivered=False,
        delivery_unknown=False,
        **told,
    )
