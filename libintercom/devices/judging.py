"""What the end of a conversation means: which word, with which certainty (devices.md section 4). Pure.

Owns the only place that decides between "not sent", "unknown" and "accepted" for another device. Does not own the
observations (``conversation``, ``transport``) nor the sentences (``libintercom.device_texts``).
"""

from __future__ import annotations

from libintercom.devices.command import (
    INTERPRETERS,
    NO_COMMAND_STATUS,
    NODE,
    NOT_RUN_STATUSES,
    SSH_STATUS,
)
from libintercom.devices.endings import EXITED, NOT_STARTED, OVERFLOWED, TIMED_OUT, WITHDRAWN
from libintercom.devices.results import (
    CANCELLED,
    FAILED,
    LOST,
    NO_BROKER,
    NO_COMMAND,
    NO_INTERPRETER,
    OWN_CODES,
    REFUSED_THERE,
    TOO_OLD,
    UNREACHABLE,
    DeviceCheck,
    DeviceListing,
    DeviceResult,
)
from libintercom.devices.rows import keep_rows, read_rows
from libintercom.devices.words import NO_BROKER_SENTENCE, SAID_ACCEPTED, SAID_NOT_SENT, SAID_UNKNOWN, UNSUPPORTED
from libintercom.outcomes import DELIVERED, QUEUED, REFUSED, Outcome, not_sent, unknown
from libintercom.wire.values import is_number, is_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.devices.conversation import Conversation
    from libintercom.devices.endings import Ending
    from libintercom.devices.naming import DeviceTarget

_ENDS = ("timeout", "cancelled", "peer_left", "disconnected", "peer_busy")
# A sentence, not a book: what a device says is shown to people and models.
_MAX_SENTENCE_CHARS = 8_000


def judge_message(target: DeviceTarget, message_id: str, conversation: Conversation, ending: Ending) -> DeviceResult:
    """What became of a message."""
    answer = conversation.answer
    if answer is None:
        return _judge_silence(target, message_id, conversation, ending)
    if "error" in answer:
        return _judge_error(target, message_id, conversation, answer)
    outcome = _accepted(message_id, conversation.receipt or {}, is_replied="reply" in answer)
    if conversation.receipt is None and "reply" not in answer:
        outcome = unknown(message_id, "its receipt is not one of this message")
    reply = _reply(answer.get("reply"), message_id)
    is_unreadable = "reply" in answer and reply is None
    ended_by = "disconnected" if is_unreadable else ""
    sentence = "Its reply cannot be read; it is lost." if is_unreadable else ""
    return _result(target, outcome, sentence, ended_by=ended_by, **({} if reply is None else {"reply": reply}))


def judge_list(device: str, to: str, conversation: Conversation, ending: Ending, now_ms: float) -> DeviceListing:
    """A device's mains; ``now_ms`` is this side's clock, for a device that does not tell its own."""
    code, reason = judge_answer(conversation, ending)
    answer = conversation.answer or {}
    # Nobody runs there: that is a list of nobody.
    if code == NO_BROKER:
        code, reason, answer = "", "", {"sessions": []}
    rows, unusable = read_rows(answer.get("sessions"), device) if not code else ([], 0)
    told, omitted = answer.get("now"), answer.get("omitted")
    return DeviceListing(
        device=device,
        code=code,
        reason=reason,
        rows=keep_rows(rows, to, device) if to else rows,
        total=len(rows),
        omitted=unusable + (omitted if isinstance(omitted, int) and omitted > 0 else 0),
        now_ms=told if isinstance(told, (int, float)) and is_number(told) else now_ms,
    )


def judge_check(device: str, conversation: Conversation, ending: Ending) -> DeviceCheck:
    """How far the chain to a device's command held."""
    code, reason = judge_answer(conversation, ending)
    # The Node command knows no check; that it answers is the proof.
    if code == TOO_OLD:
        code = "" if conversation.marker == NODE else code
    found = (conversation.answer or {}).get("check")
    told = {"found": found} if isinstance(found, dict) else {}
    return DeviceCheck(device=device, code=code, reason=reason, marker=conversation.marker, **told)


def judge_answer(conversation: Conversation, ending: Ending) -> tuple[str, str]:
    """Why a question that changes nothing was not answered, as code and reason; both "" when it was."""
    answer = conversation.answer
    if ending.cause == WITHDRAWN:
        return CANCELLED, CANCELLED
    if answer is None:
        return _absence(conversation, ending) or (FAILED, _reason(conversation, ending))
    if "error" not in answer:
        return "", ""
    sentence = _sentence(answer["error"])
    return _code_of(sentence), sentence


# ------------------------------------------------------------------ no answer


def _judge_silence(
    target: DeviceTarget, message_id: str, conversation: Conversation, ending: Ending
) -> DeviceResult:
    absence = _absence(conversation, ending)
    if absence is not None:
        code, reason = absence
        ended_by = "cancelled" if code == CANCELLED else ""
        return _result(target, not_sent(message_id, code, reason), ended_by=ended_by)
    is_cancelled = ending.cause == WITHDRAWN
    if conversation.receipt is not None:
        outcome = _accepted(message_id, conversation.receipt).replace(code=LOST, reason=_reason(conversation, ending))
        return _result(target, outcome, ended_by="cancelled" if is_cancelled else "disconnected")
    lost = unknown(message_id, _reason(conversation, ending)).replace(code=LOST)
    return _result(target, lost, ended_by="cancelled" if is_cancelled else "")


def _absence(conversation: Conversation, ending: Ending) -> tuple[str, str] | None:
    """Why the request certainly was not carried out, as code and reason; None when that is not certain."""
    is_run = ending.cause == EXITED
    # Both endings say that no command took over, whatever a notice may have looked like.
    if is_run and ending.status == NO_COMMAND_STATUS and conversation.receipt is None:
        return NO_COMMAND, ""
    if is_run and conversation.marker and ending.status in NOT_RUN_STATUSES and conversation.receipt is None:
        return _not_run(conversation, ending)
    if conversation.is_handed_over:
        return None
    if ending.cause == WITHDRAWN:
        return CANCELLED, "cancelled before the request was handed over"
    if ending.cause in (TIMED_OUT, NOT_STARTED) or (is_run and ending.status == SSH_STATUS):
        return UNREACHABLE, _reason(conversation, ending)
    return FAILED, _reason(conversation, ending)


def _not_run(conversation: Conversation, ending: Ending) -> tuple[str, str]:
    interpreter = INTERPRETERS[conversation.marker]
    if conversation.marker == NODE or interpreter in ending.last_line:
        return NO_INTERPRETER, f"{interpreter} is not on the PATH of its SSH commands"
    return FAILED, _reason(conversation, ending)


def _reason(conversation: Conversation, ending: Ending) -> str:
    if ending.cause == OVERFLOWED:
        return conversation.fault
    if ending.cause == WITHDRAWN:
        return CANCELLED
    said = ending.last_line or conversation.noise
    if ending.cause == TIMED_OUT:
        waited = f"no answer within {conversation.patience_s:g} s"
        return f"{waited}; it said last: {said}" if said else waited
    return said or f"the command ended with status {ending.status} and without a word"


# ------------------------------------------------------------------ an answer


def _judge_error(
    target: DeviceTarget, message_id: str, conversation: Conversation, answer: dict[str, Any]
) -> DeviceResult:
    sentence = _sentence(answer["error"])
    said = answer.get("outcome")
    # What was observed here wins over what is claimed.
    if conversation.receipt is not None:
        said = SAID_ACCEPTED
    elif said not in (SAID_ACCEPTED, SAID_UNKNOWN) or not conversation.is_handed_over:
        said = SAID_NOT_SENT
    if said == SAID_NOT_SENT:
        return _refused(target, message_id, answer, sentence)
    claimed = answer.get("endedBy")
    if said == SAID_UNKNOWN:
        ended_by = CANCELLED if claimed == CANCELLED else ""
        return _result(target, unknown(message_id, sentence), sentence, ended_by=ended_by)
    default = "timeout" if sentence.startswith("No reply") else "disconnected"
    outcome = _accepted(message_id, conversation.receipt or {"delivered": True})
    return _result(target, outcome, sentence, ended_by=claimed if claimed in _ENDS else default)


def _refused(target: DeviceTarget, message_id: str, answer: dict[str, Any], sentence: str) -> DeviceResult:
    code = _code_of(sentence)
    if code in (NO_BROKER, TOO_OLD):
        return _result(target, not_sent(message_id, code, sentence))
    told = answer.get("code")
    if told == CANCELLED:
        return _result(target, not_sent(message_id, CANCELLED, sentence), sentence, ended_by=CANCELLED)
    is_code = isinstance(told, str) and is_string(told) and told.isidentifier() and told not in OWN_CODES
    refused = not_sent(message_id, str(told) if is_code else REFUSED_THERE, sentence).replace(outcome=REFUSED)
    return _result(target, refused, sentence)


def _code_of(sentence: str) -> str:
    if sentence.strip().rstrip(".").lower() == NO_BROKER_SENTENCE.lower():
        return NO_BROKER
    return TOO_OLD if sentence.startswith(UNSUPPORTED) else FAILED


def _sentence(error: object) -> str:
    text = error if isinstance(error, str) and error.strip() else "it gave no reason"
    return text[:_MAX_SENTENCE_CHARS]


def _accepted(message_id: str, receipt: dict[str, Any], *, is_replied: bool = False) -> Outcome:
    is_delivered = is_replied or receipt.get("delivered") is True
    reason = receipt.get("reason")
    told: dict[str, Any] = {}
    if isinstance(reason, str) and not is_delivered:
        told["reason"] = reason[:_MAX_SENTENCE_CHARS]
    return Outcome(
        outcome=DELIVERED if is_delivered else QUEUED,
        message_id=message_id,
        accepted=True,
        delivered=is_delivered,
        delivery_unknown=False,
        **told,
    )


def _reply(told: object, message_id: str) -> dict[str, Any] | None:
    """The reply when it is one to this question."""
    if not isinstance(told, dict) or told.get("replyTo", message_id) != message_id:
        return None
    content = told.get("content")
    return told if isinstance(content, dict) and isinstance(content.get("text"), str) else None


def _result(
    target: DeviceTarget, outcome: Outcome, sentence: str = "", *, ended_by: str = "", **parts: Any
) -> DeviceResult:
    return DeviceResult(
        device=target.device, target=str(target), outcome=outcome, sentence=sentence, ended_by=ended_by, **parts
    )
