"""Frozen records with declared fields: the types that carry wire messages.

Owns declaring fields with their value rule, building, parsing from and dumping to JSON objects. Does not
own any particular message (``messages``). It stands in for ``dataclasses``, whose import alone costs three
times the start of a bare interpreter, and it keeps each field's rule beside its type, so that both codecs
are derived from one declaration.
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self, TypeVar, dataclass_transform

    from libintercom.wire.values import Rule

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_options: Any) -> Any:
        """What type checkers know by this name; it changes nothing at run time."""
        return lambda cls: cls


class Absent:
    """The value of a nullable member that was not there at all (``None`` is then a present ``null``)."""

    def __bool__(self) -> bool:
        return False

    def __deepcopy__(self, memo: object) -> Absent:
        # There is one: it is told by identity.
        return self

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


def is_absent(value: object) -> bool:
    """Whether a nullable member was not there at all."""
    return value is ABSENT


class Unusable:
    """The value of a lenient member that was there and broke its rule: its reader decides what that means."""

    def __deepcopy__(self, memo: object) -> Unusable:
        # There is one: it is told by identity.
        return self

    def __repr__(self) -> str:
        return "UNUSABLE"


UNUSABLE = Unusable()


class Field:
    """One declared member: its attribute and wire names, its rule, whether it must be there, may be null."""

    __slots__ = ("default", "is_nullable", "is_required", "name", "rule", "wire_name")

    def __init__(self, rule: Rule, default: object, wire_name: str, *, is_required: bool = False) -> None:
        self.rule, self.default, self.wire_name, self.is_required = rule, default, wire_name, is_required
        self.is_nullable = default is ABSENT
        self.name = ""

    def bind(self, name: str) -> None:
        """Learn the attribute's name; the wire name is its camelCase form unless one was given."""
        head, *rest = name.split("_")
        self.name = name
        self.wire_name = self.wire_name or head + "".join(part.capitalize() for part in rest)


def required(rule: Rule, *, wire: str = "") -> Any:
    """Declare a member that must be present."""
    return Field(rule, None, wire, is_required=True)


def optional(rule: Rule, *, default: None, wire: str = "") -> Any:
    """Declare a member that may be absent (``None``); a present ``null`` breaks the rule."""
    return Field(rule, default, wire)


def nullable(rule: Rule, *, default: Absent, wire: str = "") -> Any:
    """Declare a member that may be absent (``ABSENT``) or ``null`` (``None``: clear it)."""
    return Field(rule, default, wire)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(required, optional, nullable))
class Record:
    """Base of every wire value. Fields are class attributes made by ``required``, ``optional``, ``nullable``."""

    fields: tuple[Field, ...] = ()
    _names: frozenset[str] = frozenset()
    _required: frozenset[str] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = [(name, value) for name, value in vars(cls).items() if isinstance(value, Field)]
        for name, field in declared:
            field.bind(name)
            # An attribute not given at building reads as its default.
            setattr(cls, name, field.default)
        if declared:
            cls.fields = cls.fields + tuple(field for _name, field in declared)
            cls._names = frozenset(field.name for field in cls.fields)
            cls._required = frozenset(field.name for field in cls.fields if field.is_required)

    def __init__(self, **values: Any) -> None:
        # Subset tests on the dictionary itself: a view of its keys makes them three times slower.
        if not self._required.issubset(values) or not self._names.issuperset(values):
            self._refuse(values)
        self.__dict__.update(values)

    def _refuse(self, values: dict[str, Any]) -> NoReturn:
        missing, unknown = self._required - values.keys(), values.keys() - self._names
        wrong = f"needs {', '.join(sorted(missing))}" if missing else f"has no {', '.join(sorted(unknown))}"
        raise TypeError(f"{type(self).__name__} {wrong}")

    def __deepcopy__(self, memo: object) -> Self:
        # Frozen, and so are its members.
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        # Two classes without fields of their own share one empty tuple of them.
        if not isinstance(other, Record) or type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.fields)

    def __hash__(self) -> int:
        return hash(tuple(repr(getattr(self, field.name)) for field in self.fields))

    def __repr__(self) -> str:
        shown = (f for f in self.fields if getattr(self, f.name) is not f.default)
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        return type(self)(**{**self.present(), **changes})

    def merge(self, newer: Self) -> Self:
        """The same record with what is present in ``newer`` instead."""
        return self.replace(**newer.present())

    def present(self) -> dict[str, Any]:
        """The members that are there, by attribute name."""
        return {f.name: getattr(self, f.name) for f in self.fields if getattr(self, f.name) is not f.default}

    def violation(self) -> str:
        """What is wrong across fields, or ``""``. Single values were checked before."""
        return ""


def parse_record(cls: type[R], value: object) -> R:
    """Build a record from a decoded JSON object; unknown members are dropped.

    Raises:
        InvalidFrame: not an object, a missing member, a broken rule (the reason names the member).
    """
    if not isinstance(value, dict):
        raise InvalidFrame(f"{cls.__name__} is not an object")
    values: dict[str, object] = {}
    for field in cls.fields:
        if field.wire_name in value:
            values[field.name] = _parse_field(field, value[field.wire_name])
        elif field.is_required:
            raise InvalidFrame(f"{field.wire_name} is missing")
    record = cls(**values)
    wrong = record.violation()
    if wrong:
        raise InvalidFrame(wrong)
    return record


def _parse_field(field: Field, value: object) -> object:
    if value is None and field.is_nullable:
        return None
    rule = field.rule
    if rule.shape == "record":
        return parse_record(rule.record, value)
    if rule.shape == "lenient":
        return _parse_leniently(rule.record, value)
    if rule.shape == "records":
        if not isinstance(value, list):
            raise InvalidFrame(f"{field.wire_name} is not a list")
        return tuple(parse_record(rule.record, item) for item in value)
    if not rule.accepts(value):
        raise InvalidFrame(f"{field.wire_name} is not {rule.name}")
    return value


def _parse_leniently(cls: type[Record], value: object) -> object:
    try:
        return parse_record(cls, value)
    except InvalidFrame:
        return UNUSABLE


def dump_record(record: Record) -> dict[str, Any]:
    """The JSON object of a record: declared order, absent members left out."""
    dumped: dict[str, Any] = {}
    for field in record.fields:
        value = getattr(record, field.name)
        if value is not field.default:
            dumped[field.wire_name] = _dump_value(value)
    return dumped


def _dump_value(value: object) -> object:
    if isinstance(value, Record):
        return dump_record(value)
    if isinstance(value, tuple):
        return [_dump_value(item) for item in value]
    # A null is there and unusable too.
    return None if value is UNUSABLE else value
