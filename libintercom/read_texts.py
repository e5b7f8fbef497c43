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
    where = f"entry {make_line(page.entry_id)}, {page.offset}-{end} of {page.total}"
    head = f"**Last response of {make_line(to)}** ({where})"
    return _paged(f"{head}\n\n{make_printable(page.text)}", to, page, call)


def message_page_text(page: Page, call: str) -> str:
    """One page of a message that is too long for one result."""
    return _paged(make_printable(page.text), "", page, call)


def following_text(to: str, page: Page, call: str) -> str:
    """How to read on behind a page that is not the last."""
    following = call.format(to=make_line(to), entry_id=make_line(page.entry_id), offset=page.next_offset)
    return f"The text goes on: {following}"


def _paged(text: str, to: str, page: Page, call: str) -> str:
    return text if page.next_offset is None else f"{text}\n\n{following_text(to, page, call)}"


def failed_read_text(to: str, code: str, reason: str) -> str:
    """Why there is no page or no receipt."""
    if code == "empty_history":
        return f'"{make_line(to)}" has no completed response yet.'
    said = make_line(reason).rstrip(".") or "no reason given"
    remedy = f" {_READ_REMEDIES[code]}" if code in _READ_REMEDIES else ""
    return f'Nothing was read from "{make_line(to)}": {said}.{remedy}'


def receipt_text(to: str, receipt: Shown) -> str:
    """The facts of a receipt (wire.md 9.4), one a line; each says only what was observed."""
    sender, placed = receipt["sender"], receipt["placementEntryId"]
    lines = {
        "Message": receipt["messageId"],
        "Root session": receipt["rootSessionId"],
        "Sender": f"{sender['peerId']} (root {sender.get('rootSessionId', 'not recorded')})",
        "Delivery asked for": receipt["delivery"] or "none named",
        "Received": _time_text(receipt["receivedAt"]),
        "Recorded": f"yes, entry {receipt['checkpointEntryId']}",
        "Held back at first": _observed(receipt["queued"]),
        "Given to the host": _observed(receipt["nativeHandoff"]),
        "Placed by the host": f"yes, entry {placed}" if placed else "not seen",
        "Discarded": _observed(receipt["discarded"]),
        "Text, SHA-256": receipt["textSha256"],
    }
    told = [f"**{name}:** {make_line(str(value))}" for name, value in lines.items()]
    return "\n".join([f"**Receipt of {make_line(to)}**", *told])


def trace_text(message_id: str, journals: Sequence[Shown], letters: Sequence[Shown]) -> str:
    """What is known of a message: a block for each journal that has it, a line for each dead letter."""
    if not journals and not letters:
        return f"Nothing is known here of message {make_line(message_id)}."
    blocks = [f"**Message {make_line(message_id)}**"]
    for found in journals:
        lines = [f"**In the journal of session {make_line(found['nativeId'])}:** {make_line(found['standing'])}"]
        if found["from"] is not None:
            sender = found["from"]
            lines.append(f"• from {make_line(sender['name'] or 'unnamed')} ({make_line(sender['id'])})")
        if found["isAsk"]:
            lines.append(f"• its question: {make_line(found['ask'] or 'waits for a reply')}")
        lines += [f"• {_time_text(entry['atMs'])}: {make_line(entry['kind'])}" for entry in found["entries"]]
        blocks.append("\n".join(lines))
    for letter in letters:
        when, reason = _time_text(letter["atMs"]), make_line(letter["reason"])
        blocks.append(f"**Dead letter:** to {make_line(letter['recipientId'])}, {when}: {reason}")
    return "\n\n".join(blocks)


def _observed(is_seen: bool) -> str:
    return "yes" if is_seen else "not seen"


def _time_text(at_ms: float) -> str:
    """A time of the wire in UTC; a number that no calendar holds stands as it is."""
    import time  # imported here: hosts show receipts to nobody

    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_ms / 1000))
    except (OverflowError, ValueError, OSError):
        return f"{at_ms:g} ms"


def views_text(title: str, views: Sequence[Shown], now_ms: int) -> str:
    """A line for each view of what waits (``session.views``): its ID, sender, age and the beginning of its text."""
    lines = [f"**{title} ({len(views)}):**"]
    for view in views:
        text = make_line(" ".join(str(view["text"]).split()))
        short = text if len(text) <= _QUESTION_CHARS else f"{text[:_QUESTION_CHARS]}…"
        whose = f"{make_line(view['sender'])} ({make_line(view['senderId'])})"
        age = age_text(view["receivedAtMs"], now_ms)
        lines.append(f"• {make_line(view['messageId'])} from {whose}, {age}: {short}")
    return "\n".join(lines)
