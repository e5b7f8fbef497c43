"""The commands ``send`` and ``ask``: one message of another device's main, at this device's broker.

Owns reading their requests, the receipt line, and the sentence of every end, with the certainty that was observed.
Does not own joining (``joining``) nor the caller (``caller``).
"""

from __future__ import annotations

from libintercom import texts
from libintercom.devices.words import SAID_ACCEPTED, SAID_NOT_SENT, SAID_UNKNOWN
from libintercom.errors import IntercomError
from libintercom.outcomes import QUEUED, UNKNOWN
from libintercom.targets import FOUND, Index, resolve
from libintercom.wire.record import dump_record
from libintercom.wire.values import DEFAULT_ASK_TIMEOUT_MS, MAX_ASK_TIMEOUT_MS, is_ask_timeout, js_trim
from remote.caller import CallerGone, Watch, say
from remote.joining import Refusal, join_for_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.client import Client
    from libintercom.outcomes import Answered, Outcome

# Members of the request's message -> options of a send. Nothing else crosses a device: no guard, no hint.
_OPTIONS = {
    "messageId": "message_id",
    "attachments": "attachments",
    "delivery": "delivery",
    "queueMode": "queue_mode",
    "threadId": "thread_id",
    "replyTo": "reply_to",
}
_CANCELLED = "cancelled"


class Order:
    """A send's or an ask's request, read. ``target`` is the recipient as the caller calls it (``name@device``)."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.origin = _text(request, "origin")
        self.to = js_trim(_text(request, "to"))
        device = request.get("device")
        self.device = device if isinstance(device, str) and device else "this device"
        self.target = f"{self.to}@{self.device}"
        sender, message = _object(request, "from"), _object(request, "message")
        name = sender.get("name")
        self.sender = {
            "id": _text(sender, "id"),
            "name": name if isinstance(name, str) else "",
            "cwd": _text(sender, "cwd"),
        }
        text = message.get("text")
        self.text: str | None = text if isinstance(text, str) else None
        given = {option: message.get(name) for name, option in _OPTIONS.items()}
        self.options: Any = {option: value for option, value in given.items() if value is not None}
        self.options["message_id"] = _text(message, "messageId")
        if not isinstance(self.options.get("attachments", []), list):
            raise Refusal("Invalid request: attachments is not a list.")
        timeout_ms = request.get("timeoutMs", DEFAULT_ASK_TIMEOUT_MS)
        if not is_ask_timeout(timeout_ms):
            raise Refusal(f"Invalid request: timeoutMs is not an integer of 0 to {MAX_ASK_TIMEOUT_MS}.")
        self.timeout_s = timeout_ms / 1000
        self.holds_input = request.get("holdsInput") is True

    @property
    def message_id(self) -> str:
        return str(self.options["message_id"])


class Progress:
    """What is known of a message so far, should its caller leave."""

    def __init__(self) -> None:
        self.word = SAID_NOT_SENT

    def posted(self) -> None:
        self.word = SAID_UNKNOWN

    def told(self, outcome: Outcome) -> None:
        self.word = _word(outcome)


def send(request: dict[str, Any]) -> dict[str, Any]:
    """Send one message; the reply with its receipt. Raises Refusal."""
    order, progress = Order(request), Progress()
    with _withdrawable(order, progress), Watch(holds_input=order.holds_input), _joined(order) as client:
        progress.posted()
        outcome = client.send(order.to, order.text, **order.options)
        progress.told(outcome)
    if outcome.is_accepted:
        return {"receipt": _receipt(outcome)}
    raise _refusal(texts.failed_send_text(order.target, _placed(outcome, order)), outcome)


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """Ask, print the receipt as a line of its own, wait, and return the reply with both. Raises Refusal."""
    order, progress = Order(request), Progress()
    with _withdrawable(order, progress), Watch(holds_input=order.holds_input) as watch, _joined(order) as client:
        _refuse_busy(client, order)
        answered = _ask(client, order, progress, watch)
    return _tell(order, answered)


class _withdrawable:  # noqa: N801 - reads as a word of the with statement
    """Turns the caller's leaving into the refusal that tells, with certainty, what became of the message."""

    def __init__(self, order: Order, progress: Progress) -> None:
        self._order, self._progress = order, progress

    def __enter__(self) -> None:
        """Nothing is held."""

    def __exit__(self, kind: type[BaseException] | None, *_raised: object) -> None:
        if kind is not None and issubclass(kind, CallerGone):
            parts = {"messageId": self._order.message_id, "endedBy": _CANCELLED, "code": _CANCELLED}
            raise Refusal("Cancelled.", self._progress.word, **parts) from None


def _ask(client: Client, order: Order, progress: Progress, watch: Watch) -> Answered:
    def tell(outcome: Outcome) -> None:
        progress.told(outcome)
        if outcome.is_accepted:
            say({"receipt": _receipt(outcome)})
            watch.beat()

    progress.posted()
    return client.ask(order.to, order.text or "", timeout_s=order.timeout_s, on_outcome=tell, **order.options)


def _tell(order: Order, answered: Answered) -> dict[str, Any]:
    if answered.reply is not None:
        message = dump_record(answered.reply.message)
        members = ("id", "timestamp", "replyTo", "content")
        reply = {name: message[name] for name in members if name in message}
        return {"receipt": _receipt(answered.outcome), "reply": reply}
    told = answered.replace(outcome=_placed(answered.outcome, order))
    ended_by = {"endedBy": answered.ended_by} if answered.ended_by else {}
    raise _refusal(texts.failed_ask_text(order.target, told, order.timeout_s), answered.outcome, **ended_by)


def _joined(order: Order) -> Client:
    """Joined: what follows is this sender's only command here."""
    return join_for_message(order.origin, order.sender)


def _refuse_busy(client: Client, order: Order) -> None:
    """A default ask of a main that takes none is not sent (seeds): nobody here would wait for its reply."""
    if order.options.get("delivery") is not None:
        return
    try:
        rows = {row.id: row for row in client.list_sessions().rows}
    except IntercomError as failure:
        raise Refusal(f'Ask to "{order.target}" was not sent: {failure}', code="not_connected") from None
    index = Index()
    for row in rows.values():
        index.add(row.id, row.name)
    found = resolve(order.to, (index,), client.session_id)
    if found.kind == FOUND and rows[found.ids[0]].accepts_asks is False:
        remedy = "Use send, or ask with delivery steer to reach it at its next tool boundary and wait."
        busy = f'Ask to "{order.target}" was not sent: it is not accepting asks now. {remedy}'
        raise Refusal(busy, code="peer_busy")


def _placed(outcome: Outcome, order: Order) -> Outcome:
    """The same with every target to use ending in ``@device``."""
    placed = {
        name: tuple(one.replace(target=f"{one.target}@{order.device}") for one in candidates)
        for name in ("candidates", "nearest")
        if (candidates := getattr(outcome, name))
    }
    return outcome.replace(**placed) if placed else outcome


def _refusal(sentence: str, outcome: Outcome, **parts: Any) -> Refusal:
    code = {"code": outcome.code} if outcome.code else {}
    return Refusal(sentence, _word(outcome), messageId=outcome.message_id, **code, **parts)


def _word(outcome: Outcome) -> str:
    if outcome.is_accepted:
        return SAID_ACCEPTED
    return SAID_UNKNOWN if outcome.outcome == UNKNOWN else SAID_NOT_SENT


def _receipt(outcome: Outcome) -> dict[str, Any]:
    receipt: dict[str, Any] = {"id": outcome.message_id, "accepted": True, "delivered": outcome.delivered is True}
    if outcome.outcome == QUEUED and outcome.reason:
        receipt["reason"] = outcome.reason
    return receipt


def _object(request: dict[str, Any], name: str) -> dict[str, Any]:
    value = request.get(name)
    if not isinstance(value, dict):
        raise Refusal(f"Invalid request: {name} is not an object.")
    return value


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise Refusal(f"Invalid request: {name} is not a text.")
    return value
