"""What one call of ``pending`` shows: whole messages while they fit, a long one page by page. Pure.

Owns the bound on a showing and which messages it completes. Does not own the frame around a message
(``libintercom.session.framing``) nor what becomes of the shown ones (``shelf``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from libintercom.read_texts import TOOL_PENDING_CALL, message_page_text
from libintercom.session.pages import cut_page
from libintercom.wire.reads import MAX_PAGE_UNITS, ReadError, utf16_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from libintercom.session.host import Placeable

# What hosts let a tool say before they cut it starts at about 10,000 tokens; a page of the last response is known to fit.
BUDGET_UNITS = MAX_PAGE_UNITS


class Showing:
    """``text`` is what to show; ``completed`` the IDs of the messages whose end it shows. ``error``: a bad page."""

    def __init__(self, text: str, completed: tuple[str, ...] = (), error: ReadError | None = None) -> None:
        self.text, self.completed, self.error = text, completed, error


def show(waiting: Sequence[Placeable]) -> Showing:
    """The oldest messages that fit; at least a page of the first."""
    texts: list[str] = []
    completed: list[str] = []
    room = BUDGET_UNITS
    for one in waiting:
        units = utf16_units(one.text)
        if units > room:
            break
        room -= units
        texts.append(one.text)
        completed.append(one.message_id)
    if waiting and not completed:
        return show_page(waiting[0], 0)
    return Showing("\n\n".join(texts), tuple(completed))


def show_page(one: Placeable, offset: int) -> Showing:
    """One message from ``offset`` on, in UTF-16 code units of its framed text."""
    page = cut_page(one.message_id, one.text, offset, BUDGET_UNITS)
    if isinstance(page, ReadError):
        return Showing("", error=page)
    completed = (one.message_id,) if page.next_offset is None else ()
    return Showing(message_page_text(page, TOOL_PENDING_CALL), completed)
