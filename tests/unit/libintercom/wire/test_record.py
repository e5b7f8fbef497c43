"""Records: frozen, with declared members, parsed and dumped by their rules."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from libintercom.errors import InvalidFrame
from libintercom.wire.messages import list_of, nested
from libintercom.wire.record import (
    ABSENT,
    Absent,
    Record,
    dump_record,
    nullable,
    optional,
    parse_record,
    required,
)
from libintercom.wire.values import ANYTHING, COUNT, LABEL, STRING


class Inner(Record):
    """Something nested."""

    label: str = required(LABEL)


class Sample(Record):
    """One of each kind of member."""

    needed_text: str = required(STRING)
    from_: str | None = optional(STRING, default=None, wire="from")
    how_many: int | None = optional(COUNT, default=None)
    may_be_null: str | Absent | None = nullable(STRING, default=ABSENT)
    inner: Inner | None = optional(nested(Inner), default=None)
    inners: tuple[Inner, ...] | None = optional(list_of(Inner), default=None)
    extra: Any = optional(ANYTHING, default=None)

    def violation(self) -> str:
        return "from and howMany exclude each other" if self.from_ and self.how_many else ""


class Longer(Sample):
    """A record that adds to another."""

    more: str | None = optional(STRING, default=None)


class Empty(Record):
    """Nothing at all."""


class Other(Record):
    """Nothing at all, too."""


FULL = {
    "neededText": "t",
    "from": "f",
    "mayBeNull": None,
    "inner": {"label": "l"},
    "inners": [{"label": "a"}, {"label": "b"}],
    "extra": {"deep": [1]},
}


def test_parsing_and_dumping_are_each_others_inverse() -> None:
    record = parse_record(Sample, {**FULL, "unknown": 5})
    assert (record.needed_text, record.from_, record.how_many, record.may_be_null) == ("t", "f", None, None)
    assert record.inner == Inner(label="l")
    assert record.inners == (Inner(label="a"), Inner(label="b"))
    assert dump_record(record) == FULL
    assert list(dump_record(record)) == list(FULL)


def test_absent_and_null_differ() -> None:
    absent = parse_record(Sample, {"neededText": ""})
    assert absent.may_be_null is ABSENT
    assert not absent.may_be_null
    assert dump_record(absent) == {"neededText": ""}
    assert repr(ABSENT) == "ABSENT"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"neededText": None}, "neededText is not a string"),
        ({"neededText": 5}, "neededText is not a string"),
        ({"from": None}, "from is not a string"),
        ({"howMany": -1}, "howMany is not an integer of 0 or more"),
        ({"mayBeNull": 5}, "mayBeNull is not a string"),
        ({"inner": None}, "Inner is not an object"),
        ({"inner": []}, "Inner is not an object"),
        ({"inner": {}}, "label is missing"),
        ({"inners": {}}, "inners is not a list"),
        ({"inners": None}, "inners is not a list"),
        ({"inners": [{"label": ""}]}, "label is not a label (not empty, no control characters, at most 1 KiB)"),
        ({"howMany": 1}, "from and howMany exclude each other"),
    ],
)
def test_broken_rule_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidFrame) as caught:
        parse_record(Sample, {**FULL, **change})
    assert caught.value.reason == says


@pytest.mark.parametrize("value", [None, [], "x", 5, {}])
def test_what_is_no_such_object(value: object) -> None:
    with pytest.raises(InvalidFrame):
        parse_record(Sample, value)


def test_building_needs_the_declared_names() -> None:
    with pytest.raises(TypeError, match="needs needed_text"):
        Sample()
    with pytest.raises(TypeError, match="has no nonsense"):
        Sample(needed_text="", nonsense=1)


def test_records_are_frozen() -> None:
    record = Inner(label="l")
    with pytest.raises(AttributeError, match="frozen"):
        record.label = "m"  # type: ignore[misc]
    assert copy.deepcopy(record) is record


def test_equality_is_by_class_and_members() -> None:
    assert Inner(label="l") == Inner(label="l") != Inner(label="m")
    assert hash(Inner(label="l")) == hash(Inner(label="l"))
    assert Empty() == Empty()
    assert Empty() != Other()
    assert Empty() != 5
    assert Sample(needed_text="t") != Longer(needed_text="t")


def test_changed_copies() -> None:
    record = Sample(needed_text="t", from_="f")
    assert record.replace(from_="g") == Sample(needed_text="t", from_="g")
    assert record.merge(Sample(needed_text="u", how_many=2)) == Sample(needed_text="u", from_="f", how_many=2)
    assert record.present() == {"needed_text": "t", "from_": "f"}
    assert repr(record) == "Sample(needed_text='t', from_='f')"


def test_subclass_adds_its_members_behind_those_of_its_base() -> None:
    assert [field.name for field in Longer.fields][-2:] == ["extra", "more"]
    assert [field.name for field in Sample.fields][-1] == "extra"
    assert dump_record(Longer(needed_text="t", more="m")) == {"neededText": "t", "more": "m"}
