"""The steps of a main that parks its children, and of whoever fetches a late reply (wire.md 9.5, 9.7).

Owns those requests and what their answers mean. Does not own waiting (``client``, ``aio``) nor waking a child.
"""

from __future__ import annotations

from libintercom.calls import PARKING
from libintercom.errors import Disconnected, ParkRefused, TimedOut
from libintercom.flows import LIST_TIMEOUT_S, request, require_ext
from libintercom.inbound import Inbound
from libintercom.outcomes import LateReply
from libintercom.wire.answers import ParkFailed, parse_answer
from libintercom.wire.messages import ParkedRow
from libintercom.wire.requests import AckReply, FetchReply, Park, Unpark, WakeOutcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.calls import Exchange
    from libintercom.flows import Flow
    from libintercom.inbound import WakeAsked
    from libintercom.wire.answers import FetchedReply, Parked, Unparked

STARTED = "started"
FAILED = "failed"


def park(
    exchange: Exchange, child_id: str, row: dict[str, Any] | None, run_id: str | None, timeout_s: float = LIST_TIMEOUT_S
) -> Flow[None]:
    """Park a child of this main. ``row``: ``cwd`` and ``model``, maybe ``name`` and ``project_id``.

    Raises:
        Unsupported: an old broker.
        ParkRefused: nothing was parked.
        Disconnected, TimedOut: no answer.
    """
    given: dict[str, Any] = {} if row is None else {"row": ParkedRow(**row)}
    if run_id is not None:
        given["run_id"] = run_id
    _answer: Parked = yield from _converse(exchange, Park(child_id=child_id, **given), timeout_s)


def unpark(exchange: Exchange, child_id: str, *, discard: bool, timeout_s: float = LIST_TIMEOUT_S) -> Flow[int]:
    """End a child's parking; returns how many messages were given up. Raises as ``park``."""
    answer: Unparked = yield from _converse(exchange, Unpark(child_id=child_id, discard=discard), timeout_s)
    return answer.dropped


def answer_wake(exchange: Exchange, asked: WakeAsked, *, failure: str | None = None) -> None:
    """Say what came of waking a child: started, or with ``failure`` why not.

    Raises:
        Disconnected: nobody is registered.
    """
    outcome: dict[str, Any] = {"outcome": STARTED} if failure is None else {"outcome": FAILED, "reason": failure}
    exchange.say(WakeOutcome(child_id=asked.child_id, attempt=asked.attempt, **outcome))


def fetch_reply(exchange: Exchange, message_id: str, token: str, timeout_s: float = LIST_TIMEOUT_S) -> Flow[LateReply]:
    """What became of a kept ask. Raises as ``park``, without ParkRefused."""
    require_ext(exchange, "kept replies")
    frame = FetchReply(request_id=exchange.make_id(), message_id=message_id, reply_token=token)
    answer: FetchedReply = yield from request(exchange, frame, timeout_s)
    if answer.message is None or answer.from_ is None:
        return LateReply(state=answer.state)
    raw = {"from": answer.from_, "message": answer.message}
    incoming: Any = parse_answer({"type": "message", **raw})
    return LateReply(state=answer.state, reply=Inbound(row=incoming.from_, message=incoming.message, raw=raw))


def ack_reply(exchange: Exchange, message_id: str, token: str) -> None:
    """A fetched reply is where it belongs: the broker may forget it. Raises Unsupported or Disconnected."""
    require_ext(exchange, "kept replies")
    exchange.say(AckReply(message_id=message_id, reply_token=token))


def _converse(exchange: Exchange, frame: Park | Unpark, timeout_s: float) -> Flow[Any]:
    require_ext(exchange, "parking")
    call = exchange.open_call(PARKING, frame.child_id)
    try:
        exchange.say(frame, call)
        yield call, timeout_s
    finally:
        exchange.drop_call(PARKING, frame.child_id)
    if not call.is_settled:
        raise TimedOut(frame.type, timeout_s)
    if call.answer is None:
        raise Disconnected(frame.type, exchange.end_reason)
    if isinstance(call.answer, ParkFailed):
        raise ParkRefused(frame.child_id, call.answer.code)
    return call.answer
