"""Reading another session's last response or receipt, and answering those who read this one (wire.md 9.4).

Owns the reader's and the owner's side of a read on one connection. Does not own where pages and receipts come from
(``libintercom.session``) nor the broker's checks.
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame, InvalidProfile, InvalidRead, ReadFailed, Unsupported
from libintercom.flows import LIST_TIMEOUT_S, request, require_ext
from libintercom.wire.reads import LAST, RECEIPT, NativeReceipt, Page, ReadError, read_answer
from libintercom.wire.record import Record, dump_record, parse_record
from libintercom.wire.requests import Read, ReadResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from libintercom.calls import Exchange
    from libintercom.flows import Flow
    from libintercom.wire.answers import ReadResult

    Answerable = Union[Page, NativeReceipt, ReadError, dict[str, Any]]

# wire.md 9.4: how long the broker waits for an owner; its word on that comes after it.
OWNER_TIMEOUT_S = 5.0


def read_last(
    exchange: Exchange, to: str, part: tuple[str | None, int, int], timeout_s: float = LIST_TIMEOUT_S
) -> Flow[Page]:
    """A page of the last response of ``to``; ``part`` is entry, offset and limit in UTF-16 code units.

    For the pages behind the first, give its entry ID and ``next_offset``: a newer response changes nothing then.
    ``timeout_s`` is what the broker may take beside the five seconds that the owner has.

    Raises:
        InvalidRead: a value breaks its rule; nothing was said.
        Unsupported: the broker is too old.
        ReadFailed: the broker's or the owner's word, by its ``code``.
        Disconnected, TimedOut: no answer.
    """
    entry_id, offset, limit = part
    require_ext(exchange, "reads of last responses")
    asked: dict[str, Any] = {"kind": LAST, "to": to, "offset": offset, "limit": limit}
    if entry_id is not None:
        asked["entryId"] = entry_id
    result = yield from _read(exchange, asked, timeout_s)
    if result.page is None:
        raise _failure(result)
    return result.page


def read_receipt(
    exchange: Exchange, to: str, about: tuple[str, str], timeout_s: float = LIST_TIMEOUT_S
) -> Flow[dict[str, Any]]:
    """What the journal of ``to`` observed of a message; ``about`` is its native root and the message's ID.

    The members are those of wire.md 9.4, by their wire names. That there is no receipt proves nothing. Raises as
    ``read_last``, and InvalidProfile when this session did not ask for ``receipt_reads``.
    """
    if not exchange.profile.receipt_reads:
        raise InvalidProfile("reading receipts needs receipt_reads")
    if exchange.is_joined and not exchange.has_receipts:
        raise Unsupported("reads of receipts")
    asked = {"kind": RECEIPT, "to": to, "rootSessionId": about[0], "messageId": about[1]}
    result = yield from _read(exchange, asked, timeout_s)
    if result.receipt is None:
        raise _failure(result)
    return dump_record(result.receipt)


def answer_read(exchange: Exchange, token: str, answer: Answerable) -> bool:
    """Answer a read of this session: a page, a receipt or an error, as records or by their wire members.

    Returns False when no such read waits here: it was answered before, or is another registration's.

    Raises:
        InvalidRead: the answer breaks a rule or is none to this kind of read; the read still waits.
        Disconnected: nobody is registered.
    """
    kind = exchange.reads_asked.get(token)
    if kind is None:
        return False
    record = _checked(kind, answer)
    try:
        member = read_answer(kind, record)
    except TypeError as error:
        raise InvalidRead(str(error)) from None
    exchange.say(ReadResponse(token=token, kind=kind, **{member: record}))
    del exchange.reads_asked[token]
    return True


def _checked(kind: str, answer: Answerable) -> Record:
    """The answer as a valid record."""
    record: type[Record] = Page if kind == LAST else NativeReceipt
    if isinstance(answer, Record):
        record, answer = type(answer), dump_record(answer)
    elif "code" in answer:
        record = ReadError
    try:
        return parse_record(record, answer)
    except InvalidFrame as error:
        raise InvalidRead(error.reason) from None


def _read(exchange: Exchange, asked: dict[str, Any], timeout_s: float) -> Flow[ReadResult]:
    try:
        read = parse_record(Read, {"requestId": exchange.make_id(), **asked})
    except InvalidFrame as error:
        raise InvalidRead(error.reason) from None
    result: ReadResult = yield from request(exchange, read, OWNER_TIMEOUT_S + timeout_s)
    return result


def _failure(result: ReadResult) -> ReadFailed:
    error = result.error or ReadError(code="invalid_response", reason="the broker's answer is of another kind")
    return ReadFailed(error.code, error.reason, result.peer_id or "")
