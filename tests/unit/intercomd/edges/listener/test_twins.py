"""The derived structs: they are their records in everything that a reader of them can see."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercomd.edges.listener.surrogates import shield
from intercomd.edges.listener.twins import ANY, PLAIN, TAME, Check, Purity, twin
from libintercom.errors import InvalidFrame
from libintercom.wire.frames import encode_json
from libintercom.wire.messages import Attachment, Content, Message, Registration, Row
from libintercom.wire.record import ABSENT, Record, dump_record, parse_record
from libintercom.wire.requests import Presence, Register
from libintercom.wire.values import is_label
from tests.support.wire_records import messages, records

MESSAGE = {"id": "m", "timestamp": 1, "content": {"text": "t"}}


def decode(cls: type[Record], value: object, purity: Purity = ANY) -> Record:
    decoded: Record = msgspec.json.decode(encode_json(value), type=twin(cls, purity=purity))
    return decoded


def is_whole(record: Record) -> bool:
    """Whether no lone surrogate is in it, which msgspec alone refuses; the codec around it does not."""
    return shield(encode_json(dump_record(record))) is None


@settings(max_examples=50)
@given((records(Registration) | records(Attachment) | records(Row)).filter(is_whole))
def test_a_twin_is_equal_to_its_record(record: Record) -> None:
    made = decode(type(record), dump_record(record))
    assert isinstance(made, type(record))
    assert made == record
    assert record == made
    assert hash(made) == hash(record)
    assert dump_record(made) == dump_record(record)


def parser_finds(value: object) -> str:
    """What the standard-library parser says of a message, "" when it takes it."""
    try:
        parse_record(Message, value)
    except InvalidFrame as refused:
        return refused.reason
    return ""


def test_a_twin_is_derived_once() -> None:
    assert twin(Message) is twin(Message)
    assert twin(Message) is not twin(Message, purity=PLAIN)


def test_twins_of_different_purity_are_equal_and_of_other_classes_not() -> None:
    assert decode(Message, MESSAGE) == decode(Message, MESSAGE, PLAIN)
    assert decode(Message, MESSAGE) != decode(Message, {**MESSAGE, "id": "n"})
    assert decode(Presence, {}) != decode(Content, {"text": ""})
    assert decode(Presence, {}) != 5


def test_a_twin_can_be_changed_into_another_but_not_in_place() -> None:
    made = decode(Presence, {"name": "a"})
    assert isinstance(made, Presence)
    changed = made.replace(name="b", context_pct=None)
    assert isinstance(changed, Presence)
    assert (changed.name, changed.context_pct, changed.context_tokens, made.name) == ("b", None, ABSENT, "a")
    with pytest.raises(AttributeError):
        made.name = "c"  # type: ignore[misc]


def test_a_required_member_has_no_default() -> None:
    with pytest.raises(msgspec.ValidationError, match="timestamp"):
        decode(Message, {"id": "m", "content": {"text": ""}})


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("replyTo", ""),
        ("replyTo", "a\nb"),
        ("threadId", " "),
        ("timeoutMs", -1),
        ("timeoutMs", 1.5),
        ("replyToken", "zz"),
        ("id", "\x7f"),
        ("content", {"text": "\x9b"}),
        ("content", {"text": "", "attachments": [{"type": "file", "name": "", "content": ""}]}),
        ("content", {"text": "", "attachments": [{"type": "file", "name": "n", "content": "\x00"}]}),
        ("expectsReply", True),
        ("delivery", "steer"),
    ],
)
def test_a_check_finds_what_the_record_parser_finds(member: str, value: object) -> None:
    value_with = {**MESSAGE, member: value}
    found = Check(Message, ANY).broken_rule(decode(Message, value_with))
    assert found == parser_finds(value_with)


@settings(max_examples=50)
@given(messages().filter(is_whole))
def test_a_valid_message_breaks_no_rule(message: Message) -> None:
    assert Check(Message, ANY).broken_rule(decode(Message, dump_record(message))) == ""


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters='"\\'), max_size=1100))
def test_length_alone_decides_on_a_plain_label(text: str) -> None:
    try:
        decode(Message, {**MESSAGE, "id": text}, PLAIN)
    except msgspec.ValidationError:
        assert not is_label(text)
    else:
        assert is_label(text)


def test_purity_leaves_out_only_what_it_proves() -> None:
    assert Check(Attachment, PLAIN).is_empty
    assert not Check(Attachment, TAME).is_empty
    assert not Check(Message, PLAIN).is_empty
    bad_hex = decode(Registration, {"cwd": "/", "model": "m", "projectId": "z"}, PLAIN)
    assert "projectId" in Check(Registration, PLAIN).broken_rule(bad_hex)


def test_members_that_may_be_anything_stay_undecoded() -> None:
    made = decode(Register, {"session": {"cwd": "/", "model": "m"}, "requestedId": {"deep": []}})
    assert [name for name, _raw, _wanted in Check(Register, ANY).opaque_members(made)] == ["requested_id"]
    assert not Check(Register, ANY).is_usual(made)
