"""What one call of ``pending`` shows: whole messages while they fit, a long one page by page. Pure.

Owns the bound on a showing and which messages it completes. Does not own the frame around a message
(``libintercom.session.framing``) nor what becomes of the shown ones (``shelf``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from libintercom.read_texts import TOOL_PENDING_CALL, message_page_text
from libintercom.session.pages import PagedText
from libintercom.wire.reads import MAX_PAGE_UNITS, ReadError, utf16_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from libintercom.session.host import HostInput

# Hosts cut what a tool says from about 10,000 tokens on; a page of a last response is what the seeds trust to fit.
BUDGET_UNITS = MAX_PAGE_UNITS


class Showing:
    """``text``: what to show; ``completed``: the IDs of the messages whose end it shows; ``begun``: of one cut short.

    ``error`` says why nothing can be shown.
    """

    def __init__(
        self,
        text: str,
        completed: tuple[str, ...] = (),
        begun: tuple[str, ...] = (),
        error: ReadError | None = None,
    ) -> None:
        self.text, self.completed, self.begun, self.error = text, completed, begun, error


def show(waiting: Sequence[HostInput]) -> Showing:
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
        return show_page(waiting, waiting[0].message_id, 0)
    return Showing("\n\n".join(texts), tuple(completed))


def show_page(waiting: Sequence[HostInput], message_id: str, offset: int) -> Showing:
    """One message from ``offset`` on, in UTF-16 code units of its framed text."""
    chosen = next((one for one in waiting if one.message_id == message_id), None)
    if chosen is None:
        return no_such()
    page = PagedText(message_id, chosen.text).page(offset, BUDGET_UNITS)
    if isinstance(page, ReadError):
        return Showing("", error=page)
    text = message_page_text(page, TOOL_PENDING_CALL)
    return Showing(text, (message_id,)) if page.next_offset is None else Showing(text, begun=(message_id,))


def no_such() -> Showing:
    return Showing("", error=ReadError(code="entry_not_found", reason="no message of that ID waits"))
