"""A message as its host gets it: banner, instruction, hint, a blank line, the exact text, attachments. Pure.

Owns the frame around a peer's words and what is done to them at the last step (sessions.md section 3). They are data:
the frame carries a nonce that no sender knows, and our own delimiters inside the words are defanged; nothing else in
them is changed. Sentences shared with the command line are in ``libintercom.texts``, terminal safety in
``libintercom.printable``: what is framed here is for a host, not for a terminal.

Driven so: ``frame(placeable, nonce, reply_call)`` right before the host's call, ``nonce`` fresh and random for each;
keep ``expected_sha256`` and ``placed_sha256`` beside the placement.
"""

from __future__ import annotations

import re

from libintercom.printable import make_line
from libintercom.session.hashes import replace_surrogates, text_sha256
from libintercom.texts import banner_text, content_text
from libintercom.wire.record import Record, required
from libintercom.wire.values import HEX64, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.session.steps import Placeable
    from libintercom.wire.guards import ReplyHint

# Whatever looks like the begin or end of a frame of ours, or like a banner, gets a backslash: it stays readable, and
# in Markdown it shows as it was written.
_DELIMITERS = re.compile(r"\[(?=\s*(?:end\s+)?intercom\b)|\*\*(?=\s*\U0001F4E8)", re.IGNORECASE)
_UNAWAITED = "It was sent as a question; nobody waits for its reply any more."


class Framed(Record):
    """What the host gets. Hashes are over the peer's text alone: as it was sent, and as it stands in ``text``."""

    text: str = required(STRING)
    nonce: str = required(STRING)
    expected_sha256: str = required(HEX64)
    placed_sha256: str = required(HEX64)

    @property
    def is_exact(self) -> bool:
        """Whether the peer's text stands there unchanged (a lone surrogate has no other form than U+FFFD)."""
        return self.expected_sha256 == self.placed_sha256


def frame(placeable: Placeable, nonce: str, reply_call: str = "") -> Framed:
    """One message for its host. ``reply_call`` says how an ask is answered (``texts.TOOL_REPLY_CALL``)."""
    content = placeable.inbound.message.content
    lines = [f"{_heading(placeable, reply_call)}\n\n[intercom {nonce}]", content_text(content, defang)]
    return Framed(
        text=replace_surrogates("\n".join([*lines, f"[end intercom {nonce}]"])),
        nonce=nonce,
        expected_sha256=placeable.text_sha256,
        placed_sha256=text_sha256(defang(content.text)),
    )


def defang(text: str) -> str:
    """A peer's words without anything that could be taken for a delimiter of ours."""
    return _DELIMITERS.sub(lambda found: "".join(f"\\{sign}" for sign in found.group()), text)


def _clean_label(label: str) -> str:
    return defang(make_line(label))


def _heading(placeable: Placeable, reply_call: str) -> str:
    """Banner, then what is so of its question, then where a result may be published: two different matters."""
    inbound = placeable.inbound
    parts = [banner_text(inbound, reply_call if placeable.is_ask_open else "", _clean_label)]
    if inbound.message.is_ask and not placeable.is_ask_open:
        parts.append(_UNAWAITED)
    if inbound.message.reply_hint:
        parts.append(_hint_text(inbound.message.reply_hint))
    return "\n\n".join(parts)


def _hint_text(hint: ReplyHint) -> str:
    fingerprint = f", fingerprint {make_line(hint.command_fingerprint)}" if hint.command_fingerprint else ""
    named = f"tool {make_line(hint.tool)}, command {make_line(hint.command_id)}{fingerprint}"
    return f"Publication hint: {named}. No reply is pending for it."
