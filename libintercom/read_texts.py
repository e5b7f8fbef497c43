"""What waits, what a session said last, and what is known of one message, as text for people and for models.

Owns these sentences (seeds, "Read the last response without waking", "Native-owned receipts"; sessions.md section 5).
Does not own the values (``wire.reads``, ``session``). Every word of a peer is cleaned for a terminal on its way in.
"""

from __future__ import annotations

from libintercom.list_texts import age_text
from libintercom.printable import make_line, make_printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from libintercom.wire.reads import Page

    Shown = Mapping[str, Any]

# How a page is followed, as a model calls the tool and as a person types it.
TOOL_LAST_CALL = 'intercom({{ action: "last", to: "{to}", entryId: "{entry_id}", offset: {offset} }})'
COMMAND_LAST_CALL = "intercomctl last {to} --entry-id {entry_id} --offset {offset}"
TOOL_PENDING_CALL = 'intercom({{ action: "pending", entryId: "{entry_id}", offset: {offset} }})'
# A question in a list is a reminder, not a copy.
_QUESTION_CHARS = 120
# What an owner or a broker says about a read, and what to do; other codes stand for themselves.
_READ_REMEDIES = {
    "unsupported": "Its program, or the broker, is older than this read.",
    "ambiguous": "Give its ID.",
    "too_short": "Give a name or at least 8 characters of an ID.",
    "timeout": "Try again.",
    "entry_not_found": "Read from the start again, without an entry.",
    "invalid_offset": "Use the offset that the page before told.",
    "receipt_not_found": "That proves neither that the message had no effect nor that it was never sent.",
    "publication_unavailable": "That proves neither that the message had no effect nor that it was never sent.",
}


def page_text(to: str, page: Page, call: str) -> str:
    """One page of a session's last response; ``call`` says how to go on."""
    end = page.total if page.next_offset is None else page.next_offset
    head = f"**Last response of {make_line(to)}** (entry {make_line(page.entry_id)}, {page.offset}-{end} of {page.total})"
    return _paged(f"{head}\n\n{make_printable(page.text)}", to, page, call)


def message_page_text(page: Page, call: str) -> str:
    """One page of a message that is too long for one result."""
    return _paged(make_printable(page.text), "", page, call)


def _paged(text: str, to: str, page: Page, call: str) -> str:
    if page.next_offset is None:
        return text
    following = call.format(to=make_line(to), entry_id=make_line(page.entry_id), offset=page.next_offset)
    return f"{text}\n\nThe text goes on: {following}"


def failed_read_text(to: str, code: str, reason: str) -> str:
    """Why there is no page or no receipt."""
    if code == "empty_history":
        return f'"{make_line(to)}" has no completed response yet.'
    said = make_line(reason).rstrip(".") or "no reason given"
    remedy = f" {_READ_REMEDIES[code]}" if code in _READ_REMEDIES else ""
    return f'Nothing was read from "{make_line(to)}": {said}.{remedy}'


def asks_text(asks: Sequence[Shown], now_ms: int, title: str = "Questions that wait for your reply") -> str:
    """One line for each question: ``messageId``, ``from`` (a row), ``text`` and ``receivedAtMs``."""
    lines = [f"**{title} ({len(asks)}):**"]
    for ask in asks:
        sender = ask["from"]
        name = make_line(sender.get("name") or sender["id"][:8])
        text = make_line(" ".join(str(ask["text"]).split()))
        short = text if len(text) <= _QUESTION_CHARS else f"{text[:_QUESTION_CHARS]}…"
        whose = f"{name} ({make_line(sender['id'])})"
        lines.append(f"• {make_line(ask['messageId'])} from {whose}, {age_text(ask['receivedAtMs'], now_ms)}: {short}")
    return "\n".join(lines)
