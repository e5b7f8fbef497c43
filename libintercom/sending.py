"""Sending one message and learning its outcome; replying to a question.

Owns the certainty of each outcome word on this side: what certainly never left, what left without a word coming
back. Does not own the wait for a reply (``asking``).
"""

from __future__ import annotations

from libintercom.aiming import Aim, WrongTarget, aim_send
from libintercom.calls import RECEIPT
from libintercom.drafts import choose_id, draft_message, is_guarded
from libintercom.errors import Disconnected, GuardUnsupported, InvalidGuard, InvalidMessage, NoPendingAsk, TooLarge
from libintercom.flows import LIST_TIMEOUT_S, REGISTER_TIMEOUT_S, SEND_TIMEOUT_S
from libintercom.inbound import Inbound
from libintercom.outcomes import (
    DELIVERED,
    NO_PENDING_ASK,
    NOT_CONNECTED,
    Outcome,
    not_sent,
    outcome_of,
    unknown,
)
from libintercom.wire.answers import Answer
from libintercom.wire.guards import guard_fault
from libintercom.wire.requests import Send
from libintercom.wire.values import is_string, js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.calls import Call, Exchange
    from libintercom.drafts import SendOptions
    from libintercom.flows import Flow
    from libintercom.wire.messages import Message

# What keeps a message from leaving, as the code of its outcome; the first that it is counts.
_CODES = (
    (InvalidGuard, "guard_invalid"),
    (GuardUnsupported, "guard_unsupported"),
    (InvalidMessage, "invalid_message"),
    (TooLarge, "too_large"),
    (Disconnected, NOT_CONNECTED),
)
BLOCKED = (InvalidMessage, GuardUnsupported, TooLarge, Disconnected)


class Timeouts:
    """How long this client waits for an acknowledgement, for a list (and other requests), to be registered; seconds."""

    __slots__ = ("list_s", "register_s", "send_s")

    def __init__(
        self, send_s: float = SEND_TIMEOUT_S, list_s: float = LIST_TIMEOUT_S, register_s: float = REGISTER_TIMEOUT_S
    ) -> None:
        self.send_s, self.list_s, self.register_s = send_s, list_s, register_s


def send(exchange: Exchange, to: str, text: str | None, options: SendOptions, timeouts: Timeouts) -> Flow[Outcome]:
    """Send one message and wait for its acknowledgement. Refusals and failures are outcomes, never raised."""
    message_id = choose_id(options, exchange.make_id)
    try:
        # A guarded message is for that exact ID: no name is looked up for it.
        aim = Aim(to) if is_guarded(options) else (yield from aim_send(exchange, to, timeouts.list_s))
        call = post(exchange, aim.to, message_id, text, options)
    except WrongTarget as error:
        return not_sent(message_id, error.code, error.reason, error.candidates)
    except BLOCKED as error:
        return not_sent_because(message_id, error)
    outcome, _elapsed_s = yield from await_receipt(exchange, message_id, call, timeouts.send_s)
    return outcome


def reply(
    exchange: Exchange, which: Inbound | str | None, text: str, to: str, options: SendOptions, timeouts: Timeouts
) -> Flow[Outcome]:
    """Answer a pending question: a given one, the one from ``to``, else the active or only one.

    The question is settled once the broker took the reply.
    """
    message_id = choose_id(options, exchange.make_id)
    reply_to = which.message.id if isinstance(which, Inbound) else which or ""
    try:
        ask = exchange.pending.resolve(reply_to, to)
        call = post(exchange, ask.sender_id, message_id, text, {**options, "reply_to": ask.message_id})
    except NoPendingAsk as error:
        return not_sent(message_id, NO_PENDING_ASK, error.reason)
    except BLOCKED as error:
        return not_sent_because(message_id, error)
    outcome, _elapsed_s = yield from await_receipt(exchange, message_id, call, timeouts.send_s)
    if outcome.is_accepted:
        exchange.pending.settle(ask.message_id)
    return outcome


def post(exchange: Exchange, to: str, message_id: str, text: str | None, options: SendOptions) -> Call:
    """Put a message out and begin to wait for its acknowledgement.

    Raises:
        InvalidMessage, GuardUnsupported, TooLarge, Disconnected (``BLOCKED``): nothing was put out.
    """
    if not is_string(to) or not js_trim(to):
        raise InvalidMessage("the target is empty")
    if exchange.has_call(RECEIPT, message_id):
        raise InvalidMessage(f"message {message_id} is on its way already")
    message = draft_message(message_id, exchange.now_ms(), text, options)
    if is_guarded(options):
        _check_guarded(exchange, to, message, options)
    call = exchange.open_call(RECEIPT, message_id)
    try:
        exchange.say(Send(to=to, message=message), call)
    except BLOCKED:
        exchange.drop_call(RECEIPT, message_id)
        raise
    return call


def _check_guarded(exchange: Exchange, to: str, message: Message, options: SendOptions) -> None:
    if options.get("message_id") is None:
        raise InvalidGuard("a guarded message has an ID that its caller recorded before")
    fault = guard_fault(to, message)
    if fault:
        raise InvalidGuard(f"for a guarded message, {fault}")
    if exchange.is_joined and not exchange.has_guard:
        raise GuardUnsupported("the broker is too old, or this session did not ask for it; nothing was sent")


def await_receipt(exchange: Exchange, message_id: str, call: Call, timeout_s: float) -> Flow[tuple[Outcome, float]]:
    """The outcome of a posted message, and the seconds it took."""
    try:
        elapsed_s = yield call, timeout_s
    finally:
        exchange.drop_call(RECEIPT, message_id)
    return _outcome(exchange, message_id, call, timeout_s), elapsed_s


def _outcome(exchange: Exchange, message_id: str, call: Call, timeout_s: float) -> Outcome:
    answer = call.answer
    if isinstance(answer, Inbound):
        # Its reply overtook the acknowledgement, and proves more than that would.
        return Outcome(outcome=DELIVERED, message_id=message_id, accepted=True, delivered=True, delivery_unknown=False)
    if isinstance(answer, Answer):
        return outcome_of(message_id, answer)
    if not exchange.is_ended:
        wait = "the wait was cancelled" if call.is_settled else f"no acknowledgement came within {timeout_s:g} s"
        return unknown(message_id, wait)
    if exchange.has_left(call):
        return unknown(message_id, f"the connection ended before an acknowledgement: {exchange.end_reason}")
    return not_sent(message_id, NOT_CONNECTED, exchange.end_reason)


def not_sent_because(message_id: str, error: Exception) -> Outcome:
    """The outcome of a message that one of ``BLOCKED`` kept here."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return not_sent(message_id, code, str(error))
