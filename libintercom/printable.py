"""Text of peers made safe for people's eyes: terminals, logs, error lines.

Owns which characters may act on a terminal or hide from a reader, and what stands in their place. Does not
own exact bytes: ``--json`` output, journals and hosts get a peer's text unchanged. Markup of a printing
library (``[red]``, ``:warning:``) is not touched either; whoever uses such a library switches it off.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match

# Without ESC and the C1 controls no escape sequence (CSI, OSC, DCS) can begin: the rest of one is plain text.
_CONTROLS = "\x00-\x1f\x7f-\x9f"
# Embeddings, overrides and isolates reorder what stands around them; marks reorder neutral characters.
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Without any width: two different names look alike. Joiners (200C, 200D) are judged by their neighbours.
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
)
# They start a line of their own in some terminals and most log viewers.
_SEPARATORS = "\u2028\u2029"
# Invisible musical controls, tag characters and variation selectors: whole texts can hide in them.
_SMUGGLING = "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ufe00-\ufe0f"
# Not encodable as UTF-8: printing one raises.
_SURROGATES = "\ud800-\udfff"
_SUSPECT = re.compile(f"[{_CONTROLS}{_BIDI}{_INVISIBLE}{_SEPARATORS}{_SMUGGLING}{_SURROGATES}]")

_JOINERS = "\u200c\u200d"
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Scripts whose spelling needs joiners: Hebrew to Arabic Extended-A, and the Indic blocks to Sinhala.
_JOINING_SCRIPT = re.compile("[\u0590-\u08ff\u0900-\u0dff]")
# Symbols, dingbats and the emoji planes; a selector 16 may stand between one of them and a joiner.
_EMOJI = re.compile("[\u00a9\u00ae\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff]")
# Unicode's pictures of the C0 controls stand this far above them; DEL has its own.
_CONTROL_PICTURES = 0x2400
_DELETE = 0x7F
_DELETE_PICTURE = "\u2421"
_FIRST_PRINTABLE = 0x20


def make_printable(text: str) -> str:
    """Several lines for a terminal: newline and tab stay, CR LF is a newline, the rest shows what it is."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_show_in_lines, text.replace("\r\n", "\n"))


def make_line(text: str) -> str:
    """One line for a terminal or a log: newline and tab are pictures too."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_show, text)


def _show_in_lines(found: Match[str]) -> str:
    return found.group() if found.group() in "\n\t" else _show(found)


def _show(found: Match[str]) -> str:
    character = found.group()
    code = ord(character)
    if code < _FIRST_PRINTABLE:
        return chr(_CONTROL_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    return character if _belongs(found) else f"<U+{code:04X}>"


def _belongs(found: Match[str]) -> bool:
    """A joiner between two emoji or two letters that join, or the one selector after a visible character."""
    character, text = found.group(), found.string
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    if character in _JOINERS:
        neighbours = (_JOINING_SCRIPT, _EMOJI) if character == _JOINERS[1] else (_JOINING_SCRIPT,)
        return any(kind.match(before) and kind.match(after) for kind in neighbours)
    return bool(_SELECTORS.match(character) and before and not before.isspace() and not _SUSPECT.match(before))
