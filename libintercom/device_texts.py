"""Other devices as text (seeds, "Main sessions on other devices"): lists, and why a message was not sent or answered.

Owns the sentences of both failure tables, to the word, shared by intercomctl and the agents' tool. Does not own what
happened (``devices.results``). Every word of a device, a peer or ssh is cleaned for a terminal on its way in.
"""

from __future__ import annotations

from libintercom.devices import results
from libintercom.list_texts import row_text
from libintercom.outcomes import UNKNOWN
from libintercom.printable import make_line, make_printable
from libintercom.roster import Roster, shared_names
from libintercom.texts import content_text, sent_text
from libintercom.wire.messages import ATTACHMENT_TYPES, Attachment, Content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from libintercom.devices.results import DeviceCheck, DeviceListing, DeviceResult
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Outcome

NO_COMMAND = "its intercom has no cross-device command; update intercom there"
TOO_OLD = "its intercom is older than this command; update intercom there"
NO_BROKER = "no Pi session is connected there"
GUIDANCE = (
    "**Other devices:** send and ask reach a main there by its target above, which ends in @device. last reads only "
    "the sessions of this device."
)
_CHECK_FIRST = "The message may have arrived. Check the recipient before sending again."


def devices_text(listings: Sequence[DeviceListing], to: str = "") -> str:
    """One block for each device, and how its sessions are reached; ``to`` is the text that rows were kept by."""
    return "\n\n".join([*(_block(listing, to) for listing in listings), GUIDANCE])


def sent_there_text(result: DeviceResult, options: SendOptions) -> str:
    """What became of an accepted send."""
    return sent_text(result.target, result.outcome, options)


def replied_text(result: DeviceResult) -> str:
    """The reply that an ask brought."""
    return f"**Reply from {make_line(result.target)}:**\n{content_text(_content(result.reply))}"


def failed_text(result: DeviceResult) -> str:
    """Why a message was not sent, or why nobody knows, or why its question has no reply."""
    device, outcome = make_line(result.device), result.outcome
    if result.ended_by == "cancelled":
        return f"Cancelled. {_certainty(outcome)}"
    if not outcome.is_accepted and outcome.outcome != UNKNOWN and _unsent_reason(outcome):
        return f"Not sent to {device}: {_unsent_reason(outcome)}"
    if result.sentence:
        return make_printable(result.sentence)
    reason = make_line(outcome.reason or "no reason given")
    if outcome.outcome == UNKNOWN:
        handed_over = f"{device} gave no answer after the request was handed over"
        return f"Delivery unknown: {handed_over} ({reason}). {_CHECK_FIRST}"
    return f"The ask reached {device}, and the connection was lost before a reply came ({reason})"


def check_text(check: DeviceCheck) -> str:
    """One line about the way to a device's command."""
    device = make_line(check.device)
    if check.code:
        return f"{device}: {_unlisted(check.code, check.reason)}"
    if check.found is None:
        return f"{device}: reached; the Node command answers there and knows no check"
    found, broker = check.found, check.found.get("broker")
    program = f"{_word(found.get('program'))} {_word(found.get('version'))}, Python {_word(found.get('python'))}"
    if not isinstance(broker, dict):
        return f"{device}: reached; {program}; no broker runs there"
    return f"{device}: reached; {program}; its broker runs (version {_word(broker.get('version'))})"


def _block(listing: DeviceListing, to: str) -> str:
    device = make_line(listing.device)
    if not listing.is_listed:
        return f"**{device}:** {_unlisted(listing.code, listing.reason)}"
    if not listing.total:
        return f"**Main sessions on {device} (0):** {NO_BROKER}."
    counted = f'{len(listing.rows)} of {listing.total} match "{make_line(to)}"' if to else str(listing.total)
    roster = Roster(None, listing.rows, listing.total, None)
    roster.shared_names = shared_names(row["name"] for row in listing.rows)
    rows = [row_text(row, roster, int(listing.now_ms)) for row in listing.rows]
    cut = [f"{listing.omitted} more could not be listed."] if listing.omitted else []
    return "\n".join([f"**Main sessions on {device} ({counted}):**", *rows, *cut])


def _unlisted(code: str, reason: str) -> str:
    if code == results.UNREACHABLE:
        return f"unreachable ({make_line(reason)})"
    return f"not listed: {NO_COMMAND if code == results.NO_COMMAND else make_line(reason)}"


def _unsent_reason(outcome: Outcome) -> str:
    """Why a device took nothing; "" where its own sentence says it."""
    code, reason = outcome.code or "", make_line(outcome.reason or "")
    fixed = {results.NO_COMMAND: NO_COMMAND, results.TOO_OLD: TOO_OLD, results.NO_BROKER: NO_BROKER}
    if code == results.UNREACHABLE:
        return f"unreachable ({reason})"
    if code in (results.NO_INTERPRETER, results.FAILED):
        return reason
    return fixed.get(code, "")


def _certainty(outcome: Outcome) -> str:
    """What is known of a message whose caller stopped waiting."""
    message = f"(message {make_line(outcome.message_id)})"
    if outcome.outcome == UNKNOWN:
        return f"Whether the message arrived is unknown {message}."
    return f"The message was accepted {message}." if outcome.is_accepted else "The message was not sent."


def _content(reply: dict[str, Any]) -> Content:
    """The reply's content; attachments that are none are left out."""
    told = reply["content"]
    attached = told.get("attachments")
    fit = tuple(_attachment(one) for one in attached if _is_attachment(one)) if isinstance(attached, list) else ()
    return Content(text=told["text"], attachments=fit) if fit else Content(text=told["text"])


def _attachment(told: dict[str, str]) -> Attachment:
    return Attachment(**{name: told[name] for name in ("type", "name", "content", "language") if name in told})


def _is_attachment(told: object) -> bool:
    if not isinstance(told, dict) or not isinstance(told.get("language", ""), str):
        return False
    return told.get("type") in ATTACHMENT_TYPES and all(isinstance(told.get(name), str) for name in ("name", "content"))


def _word(value: object) -> str:
    return make_line(value) if isinstance(value, str) else "unknown"
