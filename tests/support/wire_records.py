"""Random records of the wire, from their declared fields, and JSON texts that are almost right.

Owns the hypothesis strategies of both codecs' tests. Does not own the rules: a value is made for each rule here, and
``Rule.accepts`` is asserted on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from libintercom.wire import values
from libintercom.wire.messages import Message
from libintercom.wire.reads import Page, utf16_units
from libintercom.wire.record import UNUSABLE

if TYPE_CHECKING:
    from libintercom.wire.record import Field, Record
    from libintercom.wire.values import Rule

# Any code unit that JSON can carry, lone surrogates among them.
_ANY_TEXT = st.text(st.characters(), max_size=30)
_TEXT = _ANY_TEXT.filter(values.is_text)
_LABEL = st.text(st.characters(exclude_categories=["Cc"]), min_size=1, max_size=30)
_NUMBER = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False, width=64))
_SCALAR = st.one_of(_ANY_TEXT, _NUMBER, st.booleans())

_BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    values.STRING.name: _ANY_TEXT,
    values.LABEL.name: _LABEL,
    values.TEXT.name: _TEXT,
    values.NUMBER.name: _NUMBER,
    values.COUNT.name: st.integers(0, 2**70),
    values.BOOL.name: st.booleans(),
    values.HEX64.name: st.text("0123456789abcdef", min_size=64, max_size=64),
    values.HEX32.name: st.text("0123456789abcdef", min_size=32, max_size=32),
    values.POSITIVE.name: st.integers(1, 2**70),
    values.ONE.name: st.sampled_from([1, 1.0]),
    values.TOOL_NAME.name: st.from_regex("[A-Za-z_][A-Za-z0-9_]{0,63}", fullmatch=True),
    values.UUID.name: st.uuids().map(str),
    values.THREAD.name: _LABEL.filter(values.is_trimmed_label),
    values.ASK_TIMEOUT.name: st.integers(0, values.MAX_ASK_TIMEOUT_MS),
    values.KEEP_TIME.name: st.integers(0, values.MAX_KEEP_REPLY_MS),
    values.ANYTHING.name: _SCALAR,
}


def records(cls: type[Record]) -> st.SearchStrategy[Any]:
    """Valid records of a class; absent, null and present members in every mixture."""
    required = {field.name: _member(field) for field in cls.fields if field.is_required}
    optional = {field.name: _member(field) for field in cls.fields if not field.is_required}
    built = st.fixed_dictionaries(required, optional=optional).map(lambda members: cls(**members))
    return built.filter(lambda record: not record.violation())


def messages() -> st.SearchStrategy[Message]:
    """Valid messages; what contradicts itself is left out by hand, since most random mixtures do."""
    calm = ("passive", "queue_mode", "thread_id", "delivery")
    fields = [field for field in Message.fields if field.name not in calm]
    required = {field.name: _member(field) for field in fields if field.is_required}
    optional = {field.name: _member(field) for field in fields if not field.is_required}
    optional["delivery"] = st.sampled_from(["steer", "queue"])
    return st.fixed_dictionaries(required, optional=optional).map(lambda members: Message(**members))


def pages() -> st.SearchStrategy[Page]:
    """Valid pages: their numbers follow from the text, and from how much is before and behind it."""
    return st.builds(_page, _LABEL, st.integers(0, 2**40), _ANY_TEXT, st.integers(0, 2**40))


def _page(entry_id: str, offset: int, text: str, left: int) -> Page:
    end = offset + utf16_units(text)
    has_next = left > 0 and end > offset
    next_offset, total = (end, end + left) if has_next else (None, end)
    return Page(entry_id=entry_id, offset=offset, text=text, next_offset=next_offset, total=total)


def _member(field: Field) -> st.SearchStrategy[Any]:
    made = _for_rule(field.rule)
    return st.one_of(made, st.none()) if field.is_nullable else made


def _for_rule(rule: Rule) -> st.SearchStrategy[Any]:
    if rule.record is Message:
        return messages()
    if rule.record is Page:
        return st.one_of(pages(), st.just(UNUSABLE)) if rule.shape == "lenient" else pages()
    if rule.shape == "record":
        return records(rule.record)
    if rule.shape == "lenient":
        return st.one_of(records(rule.record), st.just(UNUSABLE))
    if rule.shape == "records":
        return st.lists(records(rule.record), max_size=3).map(tuple)
    if rule.words:
        return st.sampled_from(rule.words)
    return _BY_NAME[rule.name].filter(rule.accepts)
