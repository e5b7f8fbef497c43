"""The value rules of the wire (wire.md section 2): what a JSON value must be, written once.

Owns the rules that both codecs (standard library and msgspec) obey. Does not own which field has which
rule (``messages``) nor rules across fields (``messages.Message.violation``).
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# C0 and C1 controls and DEL: a label may hold none of them (wire.md section 2).
_LABEL_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f]")
# The same without TAB, LF and CR: what a text may not hold.
_TEXT_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# What JavaScript's trim() strips: not U+001C..1F, but U+FEFF (wire.md section 1, Python traps).
_JS_SPACE = (
    "\t\n\x0b\x0c\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_HEX64 = re.compile("[0-9a-f]{64}")
_HEX32 = re.compile("[0-9a-f]{32}")
# wire.md 9.3: the name of a publication tool, and a command's ID (a UUID in lower case, as it is printed).
_TOOL = re.compile("[A-Za-z_][A-Za-z0-9_]{0,63}")
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

# wire.md 9.1: one label; over it the registration (or message) is refused, so that a row stays small.
MAX_LABEL_BYTES = 1024
# wire.md 9.6: the longest time an ask may wait, and what an ask without a number means.
MAX_ASK_TIMEOUT_MS = 3_600_000
DEFAULT_ASK_TIMEOUT_MS = 120_000
# wire.md 9.7: the longest time a reply may be kept for its ask.
MAX_KEEP_REPLY_MS = 86_400_000
# Beyond this a JSON number cannot be told from its neighbours by a JavaScript peer.
MAX_SAFE_INTEGER = 2**53


def js_trim(text: str) -> str:
    """Strip what JavaScript's ``trim()`` strips, no more and no less."""
    return text.strip(_JS_SPACE)


def size_of(text: str) -> int:
    """UTF-8 bytes of a text; a lone surrogate counts as the three bytes it would take."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_string(value: object) -> bool:
    return isinstance(value, str)


def is_label(value: object) -> bool:
    """A non-empty string without control characters, at most ``MAX_LABEL_BYTES`` of UTF-8."""
    if not isinstance(value, str) or not value or len(value) > MAX_LABEL_BYTES:
        return False
    if not value.isprintable() and _LABEL_FORBIDDEN.search(value):
        return False
    return value.isascii() or size_of(value) <= MAX_LABEL_BYTES


def is_text(value: object) -> bool:
    """A string, maybe empty, with no control characters but TAB, LF and CR."""
    # isprintable() is a quick "certainly clean"; only other texts pay for the search.
    return isinstance(value, str) and (value.isprintable() or not _TEXT_FORBIDDEN.search(value))


def is_number(value: object) -> bool:
    """A finite JSON number; booleans are none. Any int that a float can hold is finite."""
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return value - value == 0.0
    return isinstance(value, int) and -_FLOAT_LIMIT < value < _FLOAT_LIMIT


# The first integer that rounds to infinity as an IEEE double.
_FLOAT_LIMIT = 2**1024 - 2**970


def is_count(value: object) -> bool:
    """A non-negative integer; ``2.0`` is one, as it is for a JavaScript peer."""
    return is_number(value) and value >= 0 and value == value // 1  # type: ignore[operator]


def is_bool(value: object) -> bool:
    return isinstance(value, bool)


def is_hex64(value: object) -> bool:
    return isinstance(value, str) and _HEX64.fullmatch(value) is not None


def is_hex32(value: object) -> bool:
    return isinstance(value, str) and _HEX32.fullmatch(value) is not None


def is_tool_name(value: object) -> bool:
    return isinstance(value, str) and _TOOL.fullmatch(value) is not None


def is_uuid(value: object) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def is_positive_count(value: object) -> bool:
    return is_count(value) and value >= 1  # type: ignore[operator]


def is_one(value: object) -> bool:
    """The JSON number 1: version 1 of something."""
    return is_number(value) and value == 1


def is_trimmed_label(value: object) -> bool:
    """A string that is a label once trimmed (a thread id)."""
    return isinstance(value, str) and is_label(js_trim(value)) and len(value) <= MAX_LABEL_BYTES


def is_ask_timeout(value: object) -> bool:
    return is_count(value) and value <= MAX_ASK_TIMEOUT_MS  # type: ignore[operator]


def is_keep_time(value: object) -> bool:
    return is_count(value) and value <= MAX_KEEP_REPLY_MS  # type: ignore[operator]


def scrub_label(text: str) -> str:
    """Make a label of any string: a control becomes U+FFFD, nothing becomes ``?`` (wire.md 14.8, N clients)."""
    return _LABEL_FORBIDDEN.sub("\ufffd", text) or "?"


class Rule:
    """One value rule: ``accepts(value)`` says whether a decoded JSON value obeys it.

    ``shape`` is what a typed decoder must ask for: ``str``, ``number``, ``count``, ``bool``, ``any``,
    ``record``, ``records`` or ``lenient``; ``record`` is the record class of the last three. ``lenient`` is a record
    whose breach costs the member, not the frame: what is there but unusable reads as ``record.UNUSABLE``.
    ``trivial`` means that having the shape is all there is to check. ``words`` are all the strings it
    accepts, where it lists them.
    """

    def __init__(
        self, name: str, shape: str, accepts: Callable[[object], bool], *, record: Any = None, trivial: bool = False
    ) -> None:
        self.name, self.shape, self.accepts, self.record, self.trivial = name, shape, accepts, record, trivial
        self.words: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Rule({self.name})"


def one_of(*words: str) -> Rule:
    """A string that is one of ``words``."""
    known = frozenset(words)
    rule = Rule("one of " + ", ".join(words), "str", lambda value: isinstance(value, str) and value in known)
    rule.words = words
    return rule


STRING = Rule("a string", "str", is_string, trivial=True)
LABEL = Rule("a label (not empty, no control characters, at most 1 KiB)", "str", is_label)
TEXT = Rule("a text without control characters", "str", is_text)
NUMBER = Rule("a finite number", "number", is_number)
COUNT = Rule("an integer of 0 or more", "number", is_count)
BOOL = Rule("a boolean", "bool", is_bool, trivial=True)
HEX64 = Rule("64 lowercase hex digits", "str", is_hex64)
TOOL_NAME = Rule("an identifier of at most 64 characters", "str", is_tool_name)
UUID = Rule("a UUID in lower case", "str", is_uuid)
POSITIVE = Rule("an integer of 1 or more", "number", is_positive_count)
ONE = Rule("the number 1", "number", is_one)
HEX32 = Rule("32 lowercase hex digits", "str", is_hex32)
THREAD = Rule("a label after trimming", "str", is_trimmed_label)
ASK_TIMEOUT = Rule(f"an integer of 0 to {MAX_ASK_TIMEOUT_MS}", "number", is_ask_timeout)
KEEP_TIME = Rule(f"an integer of 0 to {MAX_KEEP_REPLY_MS}", "number", is_keep_time)
ANYTHING = Rule("any value", "any", lambda _value: True, trivial=True)
