"""Both codecs asked at once: the standard library's and the daemon's must say the same of every payload.

Owns the comparison and its one allowance (what the daemon's codec calls opaque). Does not own the payloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomd.edges.listener import codec
from intercomd.edges.listener.codec import OPAQUE
from libintercom.errors import InvalidFrame
from libintercom.wire import codec as plain_codec
from libintercom.wire.record import Record
from libintercom.wire.requests import Request

if TYPE_CHECKING:
    from collections.abc import Callable

# What JSON can write and a double cannot hold.
_BEYOND = (float("inf"), float("-inf"))


def both(payload: bytes) -> tuple[Any, Any]:
    """What each codec says: a request, or ``InvalidFrame``."""
    return _verdict(lambda: plain_codec.decode_request(payload)), _verdict(lambda: codec.decode_request(payload)[0])


def _verdict(decode: Callable[[], Any]) -> Any:
    try:
        return decode()
    except InvalidFrame:
        return InvalidFrame


def plain(request: Any) -> Any:
    """A request with what the daemon's codec calls opaque replaced: in members that may be anything."""
    if not isinstance(request, Record):
        return request
    members = {}
    for field in request.fields:
        value = getattr(request, field.name)
        if field.rule.shape == "any" and (value in _BEYOND or not isinstance(value, str | int | float | None)):
            value = OPAQUE
        members[field.name] = tuple(map(plain, value)) if isinstance(value, tuple) else plain(value)
    return (request.type if isinstance(request, Request) else type(request).__name__, members)


def agree(payload: bytes) -> Any:
    """Assert that both codecs say the same, and return it."""
    slow, fast = both(payload)
    assert plain(slow) == plain(fast), payload[:300]
    return fast
