"""Reads that wake nobody: pages of a last response, and native receipts (wire.md 9.4).

Owns their values and what makes an answer fit its question. Does not own who may read (``intercomd.core.reads``)
nor where pages and receipts come from (``libintercom.session``).
"""

from __future__ import annotations

from libintercom.wire.guards import Guard, ReplyHint
from libintercom.wire.record import ABSENT, Record, is_absent, nullable, optional, required
from libintercom.wire.values import BOOL, COUNT, HEX64, LABEL, NUMBER, ONE, STRING, Rule, is_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAST = "last"
RECEIPT = "receipt"
KINDS = (LAST, RECEIPT)

# wire.md 9.4: UTF-16 code units of one page.
MAX_PAGE_UNITS = 16_384
# A character beyond the basic plane takes two units and is never cut, however small the page.
_CHARACTER_UNITS = 2
# Of how a read can fail, what its owner may say; the rest is the broker's word.
OWNER_CODES = {
    LAST: ("unsupported", "empty_history", "entry_not_found", "invalid_offset"),
    RECEIPT: ("unsupported", "receipt_not_found", "publication_unavailable"),
}
CODES = (
    "unsupported",
    "not_found",
    "ambiguous",
    "too_short",
    "self_target",
    "peer_offline",
    "timeout",
    "rate_limited",
    "empty_history",
    "entry_not_found",
    "receipt_not_found",
    "publication_unavailable",
    "invalid_offset",
    "invalid_response",
)


def _one(record: type[Record]) -> Rule:
    return Rule(f"a valid {record.__name__}", "record", lambda value: isinstance(value, record), record=record)


class Page(Record):
    """A part of one entry's text. Offsets and ``total`` count UTF-16 code units; ``next_offset`` None: the last one."""

    entry_id: str = required(LABEL)
    offset: int = required(COUNT)
    text: str = required(STRING)
    next_offset: int | None = nullable(COUNT, default=ABSENT)
    total: int = required(COUNT)

    def violation(self) -> str:
        """The numbers agree with the text: the next page begins behind it, and there is one unless it is the end."""
        if is_absent(self.next_offset):
            return "nextOffset is missing"
        end = self.offset + utf16_units(self.text)
        if self.next_offset is None:
            return "" if end == self.total else "the last page does not end at total"
        return "" if self.offset < end == self.next_offset < self.total else "nextOffset does not follow the text"


class ReadError(Record):
    """Why there is no page or receipt. ``code`` is one of ``CODES``; ``reason`` is a sentence."""

    code: str = required(LABEL)
    reason: str = required(STRING)


class ReceiptSender(Record):
    """The original sender as the journal recorded it."""

    peer_id: str = required(LABEL)
    root_session_id: str | None = optional(LABEL, default=None)
    incarnation: str | None = optional(LABEL, default=None)


class NativeReceipt(Record):
    """What the owner's journal observed of one message; facts that happened, never a claim about now.

    ``text_sha256`` is over the exact raw text in UTF-8. ``placement_entry_id`` None: no placement was observed.
    ``delivery`` None: the sender named none. ``received_at`` is in Unix milliseconds.
    """

    version: int = required(ONE)
    root_session_id: str = required(LABEL)
    message_id: str = required(LABEL)
    sender: ReceiptSender = required(_one(ReceiptSender))
    delivery: str | None = nullable(LABEL, default=ABSENT)
    received_at: float = required(NUMBER)
    checkpoint_entry_id: str = required(LABEL)
    guard: Guard | None = optional(_one(Guard), default=None)
    reply_hint: ReplyHint | None = optional(_one(ReplyHint), default=None)
    text_sha256: str = required(HEX64)
    queued: bool = required(BOOL)
    native_handoff: bool = required(BOOL)
    placement_entry_id: str | None = nullable(LABEL, default=ABSENT)
    discarded: bool = required(BOOL)

    def violation(self) -> str:
        """Whether it was placed is said, one way or the other."""
        return "placementEntryId is missing" if is_absent(self.placement_entry_id) else ""


def utf16_units(text: str) -> int:
    """How many UTF-16 code units a text has; a lone surrogate is one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def clamp_limit(limit: int | None) -> int:
    """The units that a page may have at most."""
    return MAX_PAGE_UNITS if limit is None else min(int(limit), MAX_PAGE_UNITS)


def page_fits(page: Page, entry_id: str | None, offset: int, limit: int) -> bool:
    """Whether a page answers a request for this entry (None: whichever is the last), offset and limit."""
    is_entry = entry_id is None or page.entry_id == entry_id
    return is_entry and page.offset == offset and utf16_units(page.text) <= max(limit, _CHARACTER_UNITS)


def receipt_fits(receipt: NativeReceipt, root_session_id: str | None, message_id: str | None) -> bool:
    """Whether a receipt is about this message of this root."""
    return (receipt.root_session_id, receipt.message_id) == (root_session_id, message_id)


def error_fits(error: ReadError, kind: str) -> bool:
    """Whether an owner may answer a read of this kind so; its sentence is one line of a label's size."""
    return error.code in OWNER_CODES[kind] and is_label(error.reason)


def read_answer(kind: str, answer: Any) -> str:
    """Which member of a response or result an answer stands in: ``page``, ``receipt`` or ``error``.

    Raises:
        TypeError: it is no answer to this kind of read.
    """
    if isinstance(answer, ReadError):
        return "error"
    for wanted, record, member in ((LAST, Page, "page"), (RECEIPT, NativeReceipt, "receipt")):
        if kind == wanted and isinstance(answer, record):
            return member
    raise TypeError(f"{answer!r} does not answer a read of kind {kind}")
