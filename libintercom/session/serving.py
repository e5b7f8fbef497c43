"""Answering those who read from this session: its last response, and what its journal knows of a message.

Owns turning the host's and the journal's word into the answer of wire.md 9.4; nobody is woken. Does not own the frames
(``libintercom.wire.reads``) nor who may read: the broker checked that.
"""

from __future__ import annotations

import asyncio

from libintercom.errors import IntercomError
from libintercom.session.host import EmptyHistory, EntryNotFound
from libintercom.session.placing import settle
from libintercom.session.receipts import make_receipt
from libintercom.wire.reads import ReadError, clamp_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from libintercom.inbound import ReadAsked
    from libintercom.session.host import Host
    from libintercom.session.opening import Ledger
    from libintercom.wire.reads import NativeReceipt, Page

    ReadAnswer = Union[Page, NativeReceipt, ReadError]


# The broker waits five seconds (wire.md 9.4); an answer behind that is nobody's.
READ_TIMEOUT_S = 4.5

_EMPTY = ReadError(code="empty_history", reason="this session has completed no response yet")
_GONE = ReadError(code="entry_not_found", reason="that response is not there, or can no longer be read")
_UNREADABLE = ReadError(code="publication_unavailable", reason="its journal cannot be read now")
_INACTIVE = ReadError(code="publication_unavailable", reason="this session is not active")


def attest(ledger: Ledger | None, *, root: str, session: str, root_session_id: str, message_id: str) -> ReadAnswer:
    """The receipt of a message, or why there is none; without a ledger the owner is inactive."""
    if ledger is None:
        return _INACTIVE
    try:
        rows = ledger.receipt_rows(message_id)
    except IntercomError:
        return _UNREADABLE
    return make_receipt(rows, root_session_id=root_session_id, message_id=message_id, session=session, root=root)


async def read_last(host: Host, asked: ReadAsked) -> ReadAnswer:
    """A page of the host's last response, or why there is none."""
    about = (asked.entry_id, asked.offset or 0, clamp_limit(asked.limit))
    read = asyncio.ensure_future(settle(lambda: host.last_response(*about)))
    await asyncio.wait([read], timeout=READ_TIMEOUT_S)
    if not read.done():
        read.cancel()
        return ReadError(code="unsupported", reason="the host did not answer in time")
    failure = read.exception()
    if failure is not None:
        return ReadError(code="unsupported", reason=f"the host cannot tell: {failure}")
    return _answer(read.result())


def _answer(response: Any) -> ReadAnswer:
    if isinstance(response, EmptyHistory):
        return _EMPTY
    answer: ReadAnswer = _GONE if isinstance(response, EntryNotFound) else response
    return answer
