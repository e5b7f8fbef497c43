"""Messages and the results of send, ask and reply as text, shared by intercomctl and the agents' tool.

Owns the sentences (seeds, "Send, ask, and reply" and the texts of section "Send to and ask a main on another
device"; wire.md 6.2). Does not own what happened (``outcomes``). Every word of a peer is cleaned for a terminal on
its way in; hosts and ``--json`` take exact text from the message itself.
"""

from __future__ import annotations

import re

from libintercom.outcomes import DELIVERED, NOT_SENT, QUEUED, UNKNOWN
from libintercom.printable import make_line, make_printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from libintercom.drafts import SendOptions
    from libintercom.inbound import Inbound
    from libintercom.outcomes import Answered, Outcome
    from libintercom.wire.messages import Attachment, Candidate, Content, Host

# How a question is answered, as a model calls the tool and as a person types it; ``{id}`` is its message ID.
TOOL_REPLY_CALL = 'intercom({{ action: "reply", replyTo: "{id}", message: "…" }})'

# What each delivery does to its recipient.
_EFFECTS = {
    "steer": "wakes idle recipients and steers active recipients after the current tool call",
    "queue": "wakes idle recipients and waits for the end of an active recipient's turn",
    "passive": "wakes nobody; the recipient reads it at its next turn",
}
# The same where the recipient's host cannot do that (sessions.md section 2): nobody is told more than is true.
_NEXT_PROMPT = "this host reads at its next prompt"
_NO_STEER = "wakes idle recipients; this host cannot steer, so an active one reads it after its turn"
_NO_WAKE = "this host is not woken; it reads when it next looks"
_DEFAULT = "steer"
# A code fence must be longer than any run of its character inside, and at least three long.
_FENCE_RUN = re.compile("~{3,}")
_SHORTEST_FENCE = 3
_PAPERCLIP = "📎"
_CHECK_FIRST = "The message may have arrived. Check the recipient before sending again."


def inbound_text(inbound: Inbound, reply_call: str = "") -> str:
    """A message as its recipient reads it. ``reply_call`` says how to answer an ask (see ``TOOL_REPLY_CALL``)."""
    return f"{banner_text(inbound, reply_call)}\n\n{content_text(inbound.message.content)}"


def banner_text(inbound: Inbound, reply_call: str = "", clean: Callable[[str], str] = make_line) -> str:
    """What stands above a message: whose it is, and for an ask how to answer it.

    ``clean``: what is done to the sender's labels; by default they are made fit for a terminal.
    """
    message = inbound.message
    banner = f"**📨 From {clean(inbound.sender)}** (Native session cwd: {clean(inbound.row.cwd)})"
    if not message.is_ask or not reply_call:
        return banner
    return f"{banner}\n\nThe sender waits for a reply: {reply_call.format(id=clean(message.id))}"


def reply_text(to: str, reply: Inbound) -> str:
    """The reply that an ask brought."""
    return f"**Reply from {make_line(to)}:**\n{content_text(reply.message.content)}"


def content_text(content: Content, clean: Callable[[str], str] = make_printable) -> str:
    """A message's text, its attachments behind a rule, each in a fence that its own text cannot close.

    ``clean``: what is done to the peer's words; by default they are made fit for a terminal.
    """
    text = clean(content.text)
    if not content.attachments:
        return text
    return "\n\n".join([text, "---", *(_attachment_text(attachment, clean) for attachment in content.attachments)])


def effect_text(delivery: str | None, host: Host | None = None) -> str:
    """What a delivery does to a recipient with this host; without a word about the host, what the seeds promise."""
    if host is None or delivery == "passive":
        return _EFFECTS[delivery or _DEFAULT]
    if host.prompt_only:
        return _NEXT_PROMPT
    if not host.wake:
        return _NO_WAKE
    if not host.steer and delivery != "queue":
        return _NO_STEER
    return _EFFECTS[delivery or _DEFAULT]


def sent_text(to: str, outcome: Outcome, options: SendOptions, host: Host | None = None) -> str:
    """What became of an accepted send: ``options`` are those it was sent with, ``host`` the recipient's own word."""
    delivery = options.get("delivery")
    effect = effect_text(delivery, host)
    replaced = options.get("thread_id") if options.get("queue_mode") == "replace" else None
    how = [f"{delivery}; {effect}" if delivery else f"defaults to {_DEFAULT}; {effect}"]
    if replaced:
        how.append(f'replaces a still staged message of thread "{make_line(replaced)}"')
    verb = "queued for" if outcome.outcome == QUEUED else "sent to"
    why = f": {make_line(outcome.reason)}" if outcome.outcome == QUEUED and outcome.reason else ""
    return f"Message {verb} {make_line(to)} ({'; '.join(how)}){why}"


def failed_send_text(to: str, outcome: Outcome) -> str:
    """Why a send is not accepted, or why nobody knows."""
    return _failure(f'Message to "{make_line(to)}"', to, outcome, "not sent", "not delivered")


def failed_ask_text(to: str, answered: Answered, timeout_s: float) -> str:
    """Why an ask brought no reply, and what became of the question. ``timeout_s``: how long it was to wait."""
    target, outcome = make_line(to), answered.outcome
    if answered.ended_by == "cancelled":
        return f"Cancelled. {_question_text(outcome)}"
    if not outcome.is_accepted:
        return _failure(f'Ask to "{target}"', to, outcome, "not sent", "not sent")
    known = _question_text(outcome)
    why = make_line(answered.reason or "no reason given")
    return {
        "timeout": f'No reply from "{target}" within {timeout_s:g} seconds. {known} Nobody waits for its reply now.',
        "peer_left": f'"{target}" left before it replied. {known}',
        "disconnected": f"The connection to the broker was lost before a reply came. {known} A reply is lost.",
        "peer_busy": f'"{target}" is busy (accepts_asks:false). {known} Not waiting for its reply. '
        "To wait, ask with delivery steer or queue.",
        "wake_failed": f'"{target}" is parked and could not be woken: {why}. '
        f"{known} Check that session before asking again.",
    }[answered.ended_by]


def _question_text(outcome: Outcome) -> str:
    """What is known of a question that brought no reply."""
    if outcome.outcome == UNKNOWN:
        return f"Whether the question arrived is unknown (message {outcome.message_id})."
    if outcome.outcome == QUEUED:
        return f"The question is accepted and may still arrive (message {outcome.message_id})."
    if outcome.outcome == DELIVERED:
        return f"The question was delivered (message {outcome.message_id})."
    return "The question was not sent."


def _failure(subject: str, to: str, outcome: Outcome, unsent: str, refused: str) -> str:
    reason = make_line(outcome.reason or "no reason given").rstrip(".")
    if outcome.outcome == UNKNOWN:
        return f"Delivery unknown: {reason} ({subject}, message {make_line(outcome.message_id)}). {_CHECK_FIRST}"
    if outcome.code == "ambiguous":
        return f'Target "{make_line(to)}" matches multiple sessions. {subject} was {unsent}.{_proposals(outcome)}'
    if outcome.code == "too_short":
        remedy = "give a name or at least 8 characters of an ID"
        return f'Target "{make_line(to)}" is too short: {remedy}. {subject} was {unsent}.'
    what = unsent if outcome.outcome == NOT_SENT else refused
    return f"{subject} was {what}: {reason}.{_limit(outcome)}{_proposals(outcome)}"


def _limit(outcome: Outcome) -> str:
    """Which limit, how far, and when it opens again (field report 9)."""
    if outcome.rule is None:
        return ""
    reached = f" ({outcome.count:g} of {outcome.limit:g})" if None not in (outcome.count, outcome.limit) else ""
    again = "" if outcome.retry_after_ms is None else f", open again in {outcome.retry_after_ms / 1000:g} s"
    return f" Limit: {make_line(outcome.rule)}{reached}{again}."


def _proposals(outcome: Outcome) -> str:
    """The targets to use instead; only ever sessions that the sender may see."""
    if outcome.candidates:
        return f" Use one of: {_names(outcome.candidates)}."
    return f" Did you mean: {_names(outcome.nearest)}?" if outcome.nearest else ""


def _names(candidates: tuple[Candidate, ...]) -> str:
    return ", ".join(
        f"{make_line(one.target)} ({make_line(one.name or 'unnamed')}{f', {make_line(one.cwd)}' if one.cwd else ''})"
        for one in candidates
    )


def _attachment_text(attachment: Attachment, clean: Callable[[str], str]) -> str:
    content = clean(attachment.content)
    longest = max((len(run) for run in _FENCE_RUN.findall(content)), default=_SHORTEST_FENCE - 1)
    fence = "~" * (longest + 1)
    language = make_line(clean(attachment.language or ""))
    end = "" if content.endswith("\n") else "\n"
    heading = f"{_PAPERCLIP} {make_line(clean(attachment.name))} ({attachment.type})"
    return f"{heading}\n{fence}{language}\n{content}{end}{fence}"
