"""What makes an answer fit its read: the numbers of pages, the identity of receipts, who may say which error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from libintercom.errors import InvalidFrame
from libintercom.wire import reads
from libintercom.wire.reads import LAST, MAX_PAGE_UNITS, RECEIPT, NativeReceipt, Page, ReadError, ReceiptSender
from libintercom.wire.record import parse_record
from tests.support.wire_records import pages

ASTRAL = "\U0001f600"
VALID = {"entryId": "e", "offset": 2, "text": ASTRAL, "nextOffset": 4, "total": 5}


def receipt(**changes: Any) -> NativeReceipt:
    members = {
        "version": 1,
        "root_session_id": "root",
        "message_id": "m",
        "sender": ReceiptSender(peer_id="a"),
        "delivery": "steer",
        "received_at": 5,
        "checkpoint_entry_id": "e1",
        "text_sha256": "ab" * 32,
        "queued": True,
        "native_handoff": False,
        "placement_entry_id": None,
        "discarded": False,
    }
    return NativeReceipt(**{**members, **changes})


@pytest.mark.parametrize(("text", "units"), [("", 0), ("a", 1), ("\u20ac", 1), (ASTRAL, 2), ("\udc00a", 2)])
def test_units_are_those_of_utf_16(text: str, units: int) -> None:
    assert reads.utf16_units(text) == units


@pytest.mark.parametrize(
    "change",
    [
        {"nextOffset": 3},
        {"nextOffset": 5},
        {"nextOffset": None},
        {"total": 4},
        {"total": 3},
        {"text": ""},
        {"text": "", "nextOffset": 2},
        {"offset": -1},
        {"offset": 1},
        {"entryId": ""},
        {"entryId": None},
        {"text": 5},
    ],
)
def test_a_page_whose_numbers_do_not_agree_with_its_text_is_none(change: dict[str, Any]) -> None:
    assert parse_record(Page, VALID).next_offset == 4
    with pytest.raises(InvalidFrame):
        parse_record(Page, {**VALID, **change})


def test_a_page_says_whether_another_follows() -> None:
    silent = {name: value for name, value in VALID.items() if name != "nextOffset"}
    with pytest.raises(InvalidFrame, match="nextOffset"):
        parse_record(Page, silent)


def test_a_receipt_says_whether_it_was_placed() -> None:
    assert not receipt().violation()
    unsaid = {name: value for name, value in receipt().present().items() if name != "placement_entry_id"}
    assert NativeReceipt(**unsaid).violation()


@pytest.mark.parametrize(
    ("limit", "clamped"), [(None, MAX_PAGE_UNITS), (1, 1), (MAX_PAGE_UNITS, MAX_PAGE_UNITS), (10**9, MAX_PAGE_UNITS)]
)
def test_a_limit_is_clamped(limit: int | None, clamped: int) -> None:
    assert reads.clamp_limit(limit) == clamped


@given(pages())
def test_a_page_fits_its_own_question(page: Page) -> None:
    units = reads.utf16_units(page.text)
    assert reads.page_fits(page, None, page.offset, max(1, units))
    assert reads.page_fits(page, page.entry_id, page.offset, max(1, units))
    assert not reads.page_fits(page, page.entry_id + "x", page.offset, max(1, units))
    assert not reads.page_fits(page, None, page.offset + 1, max(1, units))
    assert reads.page_fits(page, None, page.offset, 1) is (units <= 2)


def test_a_receipt_fits_its_root_and_message_only() -> None:
    assert reads.receipt_fits(receipt(), "root", "m")
    assert not reads.receipt_fits(receipt(), "fork", "m")
    assert not reads.receipt_fits(receipt(), "root", "n")


def test_an_owner_says_only_what_it_can_know() -> None:
    for kind, codes in reads.OWNER_CODES.items():
        assert set(codes) <= set(reads.CODES)
        assert all(reads.error_fits(ReadError(code=code, reason="r"), kind) for code in codes)
        others = set(reads.CODES) - set(codes)
        assert not any(reads.error_fits(ReadError(code=code, reason="r"), kind) for code in others)


def test_an_answer_stands_in_the_member_of_its_kind() -> None:
    page, error = parse_record(Page, VALID), ReadError(code="timeout", reason="r")
    assert reads.read_answer(LAST, page) == "page"
    assert reads.read_answer(RECEIPT, receipt()) == "receipt"
    assert reads.read_answer(LAST, error) == reads.read_answer(RECEIPT, error) == "error"
    for kind, answer in ((LAST, receipt()), (RECEIPT, page), (LAST, None)):
        with pytest.raises(TypeError):
            reads.read_answer(kind, answer)
