"""Pages of a long text, cut by UTF-16 code units and never inside a character (sessions.md section 4). Pure.

Owns the cutting. Does not own where the text comes from (the host) nor the wire's records (``libintercom.wire.reads``).

Driven so: ``PagedText(entry_id, text)`` once per entry, kept while it is being read, then ``page(offset, limit)`` for
each request: one pass over the text in all, however many pages. The entry is pinned by whoever finds it by its ID.
"""

from __future__ import annotations

from libintercom.wire.reads import Page, ReadError, clamp_limit

# A UTF-16 code unit has two bytes; a character has at most two units, and every page gets at least one character.
_UNIT_BYTES = 2
_SHORTEST_PAGE_UNITS = 2


class PagedText:
    """One entry's text as UTF-16 code units; lone surrogates are kept as they are."""

    __slots__ = ("_units", "entry_id", "total")

    def __init__(self, entry_id: str, text: str) -> None:
        self.entry_id = entry_id
        self._units = text.encode("utf-16-le", "surrogatepass")
        self.total = len(self._units) // _UNIT_BYTES

    def page(self, offset: int = 0, limit: int | None = None) -> Page | ReadError:
        """The page at ``offset``, at most ``limit`` units (16,384 when more or none are asked for) or one character."""
        if not 0 <= offset <= self.total:
            return ReadError(code="invalid_offset", reason=f"offset {offset} is past the end ({self.total})")
        if self._splits(offset):
            return ReadError(code="invalid_offset", reason=f"offset {offset} is inside a character")
        end = min(offset + max(clamp_limit(limit), _SHORTEST_PAGE_UNITS), self.total)
        end -= self._splits(end)
        text = self._units[offset * _UNIT_BYTES : end * _UNIT_BYTES].decode("utf-16-le", "surrogatepass")
        following = end if end < self.total else None
        return Page(entry_id=self.entry_id, offset=offset, text=text, next_offset=following, total=self.total)

    def _splits(self, offset: int) -> bool:
        """Whether a cut here goes through a pair of surrogates."""
        return 0 < offset < self.total and self._is(offset - 1, 0xD8) and self._is(offset, 0xDC)

    def _is(self, offset: int, kind: int) -> bool:
        """Whether the unit is a high (0xD8) or low (0xDC) surrogate: the upper six bits say so."""
        return self._units[offset * _UNIT_BYTES + 1] & 0xFC == kind
