"""Asking a question and waiting for its reply (seeds, "Send, ask, and reply"; wire.md section 6, "Ask life").

Owns telling the reply from other messages and what ends the wait. One ask at a time for each client.
"""

from __future__ import annotations

from libintercom.aiming import WrongTarget, aim_ask
from libintercom.calls import RECEIPT, REPLY
from libintercom.drafts import choose_id
from libintercom.errors import InvalidMessage
from libintercom.inbound import Inbound, PeerLeft, WakeFailed
from libintercom.outcomes import ALREADY_WAITING, UNKNOWN, Answered, not_sent
from libintercom.sending import BLOCKED, await_receipt, not_sent_because, post
from libintercom.targets import MIN_PREFIX_CHARS, name_key
from libintercom.wire.requests import CancelAsk
from libintercom.wire.values import DEFAULT_ASK_TIMEOUT_MS, MAX_ASK_TIMEOUT_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from libintercom.calls import Call, Exchange
    from libintercom.drafts import SendOptions
    from libintercom.flows import Flow
    from libintercom.outcomes import Outcome
    from libintercom.sending import Timeouts
    from libintercom.wire.messages import Row

DEFAULT_TIMEOUT_S = DEFAULT_ASK_TIMEOUT_MS / 1000
MAX_TIMEOUT_S = MAX_ASK_TIMEOUT_MS / 1000
# What a call holds when this side ended its wait.
_CANCELLED = "cancelled"


class Waiter:
    """An ask under way. ``recipient_id`` is "" until, and unless, the target was resolved on this side."""

    def __init__(self, message_id: str, to: str, reply: Call) -> None:
        self.message_id, self.reply = message_id, reply
        self.recipient_id = ""
        self._keys = {name_key(to)}

    def aim(self, row: Row) -> None:
        """Narrow the wait to a resolved recipient: its ID, or its name should it come back under another."""
        self.recipient_id = row.id
        self._keys = {name_key(row.name)} if row.name else set()

    def is_answered_by(self, inbound: Inbound) -> bool:
        """Whether a message is the reply: it names this question and comes from whom it was asked.

        Once the wait is over none is; a reply that comes later is a message like any other.
        """
        is_named = not self.reply.is_settled and inbound.message.reply_to == self.message_id
        return is_named and self._is_recipient(inbound.row)

    def _is_recipient(self, row: Row) -> bool:
        if row.id == self.recipient_id or name_key(row.name or "") in self._keys:
            return True
        # Not resolved here: the text may have been an ID or a prefix that the broker resolved.
        peer_id = row.id.lower()
        return not self.recipient_id and any(
            peer_id == key or (len(key) >= MIN_PREFIX_CHARS and peer_id.startswith(key)) for key in self._keys
        )


class Question:
    """What is asked: whom, what, for how long, and who hears of its acceptance at once.

    With ``keep_reply_s`` a late reply is kept so long for whoever has the token (option ``reply_token``, else a fresh
    one); the question then stands when the wait is over or interrupted. It needs a broker with our extensions.
    """

    def __init__(
        self,
        to: str,
        text: str | None,
        timeout_s: float,
        options: SendOptions,
        on_outcome: Callable[[Outcome], object] | None = None,
        keep_reply_s: float | None = None,
    ) -> None:
        self.keep_reply_s = keep_reply_s
        # What a late reply can be fetched with, once the question was put out; "" when none is kept.
        self.token = ""
        self.to, self.text, self.timeout_s = to, text, timeout_s
        self.options, self.on_outcome = options, on_outcome


def ask(exchange: Exchange, question: Question, timeouts: Timeouts) -> Flow[Answered]:
    """Ask and wait. Whatever happens is told by the result; only a misused option raises.

    When the wait ends without a reply and the connection lives, the question is retired (``cancel_ask``); so it is
    when the flow itself is closed half-way.
    """
    message_id = choose_id(question.options, exchange.make_id)
    if exchange.waiter is not None:
        reason = f"already waiting for the reply to ask {exchange.waiter.message_id}"
        return Answered(outcome=not_sent(message_id, ALREADY_WAITING, reason), ended_by="")
    reply = exchange.open_call(REPLY, message_id)
    waiter = exchange.waiter = Waiter(message_id, question.to, reply)
    try:
        return (yield from _converse(exchange, question, waiter, timeouts))
    finally:
        exchange.waiter = None
        exchange.drop_call(REPLY, message_id)


def cancel_ask(exchange: Exchange, message_id: str) -> None:
    """Stop waiting for the reply to an ask; the flow that waits ends with ``cancelled``.

    Another ask of this session (``send`` with ``expects_reply``) is retired at the broker, if that knows how.

    Raises:
        Disconnected: no wait is under way here and nobody is registered.
    """
    waiter = exchange.waiter
    if waiter is not None and waiter.message_id == message_id:
        waiter.reply.settle(_CANCELLED)
        exchange.settle_call(RECEIPT, message_id, _CANCELLED)
    elif exchange.has_ext or not exchange.is_joined:
        exchange.say(CancelAsk(message_id=message_id))


def _converse(exchange: Exchange, question: Question, waiter: Waiter, timeouts: Timeouts) -> Flow[Answered]:
    message_id = waiter.message_id
    try:
        options = _ask_options(exchange, question)
        aim = yield from aim_ask(exchange, question.to, timeouts.list_s)
        if waiter.reply.answer == _CANCELLED:
            return Answered(outcome=not_sent(message_id, _CANCELLED, "cancelled before sending"), ended_by=_CANCELLED)
        if aim.row is not None:
            waiter.aim(aim.row)
        call = post(exchange, aim.to, message_id, question.text, options)
    except WrongTarget as error:
        return Answered(outcome=not_sent(message_id, error.code, error.reason, error.candidates), ended_by="")
    except BLOCKED as error:
        return Answered(outcome=not_sent_because(message_id, error), ended_by="")
    is_busy = aim.row is not None and aim.row.accepts_asks is False and not question.options.get("delivery")
    return (yield from _await_reply(exchange, question, waiter, (call, timeouts.send_s), is_busy=is_busy))


def _ask_options(exchange: Exchange, question: Question) -> SendOptions:
    if not 0 <= question.timeout_s <= MAX_TIMEOUT_S:
        raise InvalidMessage(f"an ask may wait 0 to {MAX_TIMEOUT_S:g} s, not {question.timeout_s:g}")
    options: SendOptions = {**question.options, "expects_reply": True}
    # An old broker would hand the member on to a recipient that does not know it.
    options["timeout_ms"] = round(question.timeout_s * 1000) if exchange.has_ext else None
    if question.keep_reply_s is not None:
        if exchange.is_joined and not exchange.has_ext:
            raise InvalidMessage("this broker is an old one: it keeps no replies")
        options["keep_reply_ms"] = round(question.keep_reply_s * 1000)
        # 32 hex digits, as a UUID has them.
        options["reply_token"] = question.options.get("reply_token") or exchange.make_id().replace("-", "")
        question.token = options["reply_token"] or ""
    return options


def _await_reply(
    exchange: Exchange, question: Question, waiter: Waiter, receipt: tuple[Call, float], *, is_busy: bool
) -> Flow[Answered]:
    is_open = True
    try:
        outcome, elapsed_s = yield from await_receipt(exchange, waiter.message_id, *receipt)
        if question.on_outcome is not None:
            question.on_outcome(outcome)
        if outcome.is_accepted and not is_busy:
            yield waiter.reply, max(0.0, question.timeout_s - elapsed_s)
        answered = _judge(exchange, outcome, waiter.reply, is_busy=is_busy)
        is_open = answered.ended_by in _RETIRING
        return answered.replace(reply_token=question.token) if question.token else answered
    finally:
        # A question whose reply is kept is retired by nothing but taking it back.
        if question.token and waiter.reply.answer != _CANCELLED:
            is_open = False
        if is_open and exchange.has_ext and exchange.is_joined:
            exchange.say(CancelAsk(message_id=waiter.message_id))


# Ends of a wait after which the question would stand though nobody waits.
_RETIRING = ("timeout", "cancelled")


def _judge(exchange: Exchange, outcome: Outcome, reply: Call, *, is_busy: bool) -> Answered:
    if isinstance(reply.answer, Inbound):
        return Answered(outcome=outcome, reply=reply.answer, ended_by="")
    if not outcome.is_accepted and outcome.outcome != UNKNOWN:
        return Answered(outcome=outcome, ended_by="")
    why = {"reason": reply.answer.reason} if isinstance(reply.answer, WakeFailed) else {}
    return Answered(outcome=outcome, ended_by=_end_of(exchange, outcome, reply, is_busy=is_busy), **why)


def _end_of(exchange: Exchange, outcome: Outcome, reply: Call, *, is_busy: bool) -> str:
    if reply.answer == _CANCELLED:
        return "cancelled"
    if isinstance(reply.answer, PeerLeft):
        return "peer_left"
    if isinstance(reply.answer, WakeFailed):
        return "wake_failed"
    if exchange.is_ended:
        return "disconnected"
    return "peer_busy" if is_busy and outcome.is_accepted else "timeout"
