"""Pages by UTF-16 code units."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libintercom.session.pages import PagedText
from libintercom.wire.reads import MAX_PAGE_UNITS, Page, ReadError, page_fits

TEXTS = st.text(st.sampled_from("aé€😀\ud83d\ude00\n"), max_size=40)


def walk(pages: PagedText, limit: int | None) -> list[Page]:
    found, offset = [], 0
    while offset is not None:
        page = pages.page(offset, limit)
        assert isinstance(page, Page)
        found.append(page)
        offset = page.next_offset
    return found


@given(TEXTS, st.integers(0, 9))
def test_pages_put_together_are_the_text(text, limit):
    found = walk(PagedText("e1", text), limit)
    units = [page.text.encode("utf-16-le", "surrogatepass") for page in found]
    assert b"".join(units) == text.encode("utf-16-le", "surrogatepass")
    assert [page.violation() for page in found] == [""] * len(found)
    assert all(page_fits(page, "e1", page.offset, limit) for page in found)


@given(TEXTS, st.integers(-3, 100))
def test_an_offset_is_an_end_of_a_character_or_refused(text, offset):
    units = text.encode("utf-16-le", "surrogatepass")
    page = PagedText("e1", text).page(offset, 5)
    is_end = 0 <= offset <= len(units) // 2 and not splits(units, offset)
    assert isinstance(page, Page) is is_end
    if not is_end:
        assert isinstance(page, ReadError)
        assert page.code == "invalid_offset"


def splits(units: bytes, offset: int) -> bool:
    """Whether both halves, read as text of their own, have a surrogate at the cut that they have not together."""
    before, after = units[: offset * 2], units[offset * 2 :]
    apart = [half.decode("utf-16-le", "surrogatepass") for half in (before, after)]
    return len(units.decode("utf-16-le", "surrogatepass")) != sum(map(len, apart))


@pytest.mark.parametrize("limit", [None, MAX_PAGE_UNITS, MAX_PAGE_UNITS + 1, 10**9])
def test_a_page_has_at_most_its_units(limit):
    page = PagedText("e1", "a" * (MAX_PAGE_UNITS + 1)).page(0, limit)
    assert (len(page.text), page.next_offset, page.total) == (MAX_PAGE_UNITS, MAX_PAGE_UNITS, MAX_PAGE_UNITS + 1)


def test_a_page_ends_before_a_character_that_it_would_cut():
    text = "a" * (MAX_PAGE_UNITS - 1) + "😀b"
    first = PagedText("e1", text).page()
    assert (len(first.text), first.next_offset) == (MAX_PAGE_UNITS - 1, MAX_PAGE_UNITS - 1)
    assert PagedText("e1", text).page(first.next_offset).text == "😀b"


def test_an_empty_text_has_one_empty_page():
    assert PagedText("e1", "").page() == Page(entry_id="e1", offset=0, text="", next_offset=None, total=0)


def test_the_refusal_says_what_is_wrong():
    pages = PagedText("e1", "😀")
    assert pages.page(1) == ReadError(code="invalid_offset", reason="offset 1 is inside a character")
    assert pages.page(3) == ReadError(code="invalid_offset", reason="offset 3 is past the end (2)")


def test_all_pages_of_a_long_text_cost_one_pass():
    """Ten times the text takes about ten times as long, not a hundred: measured as processor time, with room."""
    small, large = (cost_s("😀é" * size) for size in (40_000, 400_000))
    assert large < 40 * small


def cost_s(text: str) -> float:
    def once() -> float:
        begun_s = time.process_time()
        walk(PagedText("e1", text), 1_000)
        return time.process_time() - begun_s

    return min(once() for _again in range(3))
