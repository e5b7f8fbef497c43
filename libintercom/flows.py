"""The steps of a client's requests, one generator each: what is said, what is waited for, what it meant.

Owns registering, looking and leaving; ``sending``, ``asking`` and ``reading`` own the rest. A flow yields ``(call,
timeout_s)`` and is resumed with the seconds that passed once the call is settled or the time is over; it neither
waits nor reads a clock itself, so the blocking and the asyncio client run the same ones.
"""

from __future__ import annotations

from libintercom.calls import END, REGISTRATION, REQUEST
from libintercom.errors import Disconnected, NotRegistered, TimedOut, Unsupported
from libintercom.profile import presence_request, register_request
from libintercom.wire.record import ABSENT
from libintercom.wire.requests import Health, ListDeadLetters, ListSessions, Stats, Unregister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any, TypeVar, Union

    from libintercom.calls import Call, Exchange
    from libintercom.outcomes import Listing
    from libintercom.wire.answers import DeadLetters, StatsResult
    from libintercom.wire.requests import FetchReply, Read

    T = TypeVar("T")
    Flow = Generator[tuple[Call, float], float, T]
    Keyed = Union[ListSessions, Health, Stats, ListDeadLetters, Read, FetchReply]

# wire.md section 6: how long peers wait for a registration, a list and an acknowledgement, and when they leave.
REGISTER_TIMEOUT_S = 10.0
LIST_TIMEOUT_S = 5.0
SEND_TIMEOUT_S = 8.0
LEAVE_TIMEOUT_S = 2.0


def register(exchange: Exchange, timeout_s: float = REGISTER_TIMEOUT_S) -> Flow[str]:
    """Join with the exchange's profile; returns the session's ID.

    Raises:
        InvalidProfile: nothing was said.
        NotRegistered: the connection ended or no answer came; ``is_retryable`` when it merely broke off.
    """
    request = register_request(exchange.profile)
    call = exchange.open_call(REGISTRATION, "")
    try:
        exchange.say(request, call)
        yield call, timeout_s
    except Disconnected as error:
        raise NotRegistered(error.reason, is_retryable=exchange.is_lost) from None
    finally:
        exchange.drop_call(REGISTRATION, "")
    if exchange.is_ended:
        raise NotRegistered(exchange.end_reason, is_retryable=exchange.is_lost)
    if not call.is_settled:
        raise NotRegistered(f"no answer came within {timeout_s:g} s; it hangs or is stopped, see its log and process")
    return exchange.session_id


def list_sessions(exchange: Exchange, timeout_s: float = LIST_TIMEOUT_S) -> Flow[Listing]:
    """The rows this session may see, itself included.

    Raises:
        Disconnected: the connection ended, or nobody is registered on it.
        TimedOut: no complete answer came.
    """
    listing: Listing = yield from request(exchange, ListSessions(request_id=exchange.make_id(), stream=True), timeout_s)
    return listing


def check_health(exchange: Exchange, timeout_s: float = LIST_TIMEOUT_S) -> Flow[bool]:
    """True once the broker answered.

    Raises:
        Unsupported: an old broker, which would drop the connection.
        Disconnected, TimedOut: no answer.
    """
    require_ext(exchange, "health checks")
    yield from request(exchange, Health(request_id=exchange.make_id()), timeout_s)
    return True


def read_stats(exchange: Exchange, timeout_s: float = LIST_TIMEOUT_S) -> Flow[dict[str, Any]]:
    """``{"counters": …, "gauges": …}`` of the broker. Raises as ``check_health``."""
    require_ext(exchange, "counters")
    answer: StatsResult = yield from request(exchange, Stats(request_id=exchange.make_id()), timeout_s)
    return {"counters": answer.counters, "gauges": answer.gauges}


def list_dead_letters(
    exchange: Exchange, since_ms: float | None = None, timeout_s: float = LIST_TIMEOUT_S
) -> Flow[DeadLetters]:
    """This session's own messages that could not arrive, since a Unix time in milliseconds. Raises as above."""
    require_ext(exchange, "dead letters")
    since = {} if since_ms is None else {"since_ms": since_ms}
    asked = ListDeadLetters(request_id=exchange.make_id(), **since)
    letters: DeadLetters = yield from request(exchange, asked, timeout_s)
    return letters


def publish_presence(exchange: Exchange, changes: Mapping[str, Any]) -> None:
    """Change what others see: name, status, model, pending_asks, accepts_asks, last_intercom_activity.

    With guarded delivery also ``application_guard``; None withdraws it. A later registration of this exchange says
    the same; one behind ``unregister`` says no ``application_guard``.

    Raises:
        Unsupported: guarded delivery was not negotiated.
        InvalidProfile: a value breaks its rule, or the member cannot change.
        Disconnected: nobody is registered; the change is kept for the next registration.
    """
    presence = presence_request(changes)
    if "application_guard" in changes and exchange.is_joined and not exchange.has_guard:
        raise Unsupported("guarded delivery, or this session did not ask for it")
    known = {field.name for field in exchange.profile.fields}
    exchange.profile = exchange.profile.replace(**{name: changes[name] for name in changes.keys() & known})
    exchange.say(presence)


def unregister(exchange: Exchange) -> None:
    """Leave; the socket stays and may register again. Nothing when nobody is registered.

    Consent was given for this context: the next registration has to give its own.
    """
    if exchange.is_joined:
        exchange.say(Unregister())
        exchange.profile = exchange.profile.replace(application_guard=ABSENT)
        exchange.session_id = ""


def await_end(exchange: Exchange, timeout_s: float = LEAVE_TIMEOUT_S) -> Flow[bool]:
    """Wait until the broker closed the connection; False when it did not in time."""
    if exchange.is_ended:
        return True
    key = exchange.make_id()
    call = exchange.open_call(END, key)
    try:
        yield call, timeout_s
    finally:
        exchange.drop_call(END, key)
    return exchange.is_ended


def require_ext(exchange: Exchange, what: str) -> None:
    """Raise Disconnected or Unsupported unless the broker knows our extensions."""
    if not exchange.is_joined:
        raise Disconnected(what, exchange.end_reason or "this session is not registered")
    if not exchange.has_ext:
        raise Unsupported(what)


def request(exchange: Exchange, asked: Keyed, timeout_s: float) -> Flow[Any]:
    """Say something with a request ID and wait for the answer to it.

    Raises:
        Disconnected, TimedOut: no answer.
    """
    call = exchange.open_call(REQUEST, asked.request_id)
    try:
        exchange.say(asked, call)
        yield call, timeout_s
    finally:
        exchange.drop_call(REQUEST, asked.request_id)
    if not call.is_settled:
        raise TimedOut(asked.type, timeout_s)
    if call.answer is None:
        raise Disconnected(asked.type, exchange.end_reason)
    return call.answer
