"""The wire records as msgspec structs, derived from their declared fields.

Owns the derivation (one struct per record class, a subclass of it, so that whoever reads a decoded record cannot tell)
and the compiled check of value rules on what was decoded. Does not own the rules (``libintercom.wire.values``) nor
which frame is decoded how (``codec``).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

import msgspec

from libintercom.wire import values
from libintercom.wire.record import ABSENT, Field, Record

if TYPE_CHECKING:
    from collections.abc import Callable

# What a typed decoder asks for, by the shape of a rule. A float type alone would turn integers into floats; a member
# that may be anything, or may be unusable, stays undecoded until it is looked at by itself (``codec``).
_SHAPES: dict[str, Any] = {
    "str": str,
    "number": Union[int, float],  # noqa: UP007 - a value
    "bool": bool,
    "any": msgspec.Raw,
    "lenient": msgspec.Raw,
}


class Purity:
    """What is known of a frame's bytes before decoding, and the rules that its decoder thereby proves by type alone.

    ``lenient`` is the type of members that may be unusable.
    """

    def __init__(self, name: str, proved: dict[values.Rule, Any], lenient: Any = msgspec.Raw) -> None:
        self.name, self.proved, self.lenient = name, proved, lenient


# Nothing is known.
ANY = Purity("any", {})
# ASCII without DEL, the only escapes are those of quotes, slashes, TAB, LF and CR: every text is clean.
TAME = Purity("tame", {values.TEXT: str})
# ASCII without DEL or any escape: besides, a label is one by its length alone.
_SHORT = Annotated[str, msgspec.Meta(min_length=1, max_length=values.MAX_LABEL_BYTES)]
PLAIN = Purity("plain", {values.TEXT: str, values.LABEL: _SHORT})

# The same, in a message without rare members: those that nearly no client uses have a type that nothing in such a frame
# has (no string holds a control character), and whole numbers stand for all.
_NEVER = Literal["\0"]
_WHOLE = Annotated[int, msgspec.Meta(ge=0, le=values.MAX_SAFE_INTEGER)]
USUAL = Purity(
    "usual",
    {
        **PLAIN.proved,
        values.NUMBER: _WHOLE,
        values.ASK_TIMEOUT: Annotated[int, msgspec.Meta(ge=0, le=values.MAX_ASK_TIMEOUT_MS)],
        values.THREAD: _NEVER,
        values.KEEP_TIME: _NEVER,
        values.HEX32: _NEVER,
        values.ANYTHING: _NEVER,
    },
    lenient=_NEVER,
)

_twins: dict[tuple[type[Record], str | None, Purity], type[Any]] = {}


def twin(cls: type[Record], tag: str | None = None, purity: Purity = ANY) -> type[Any]:
    """The struct of a record class: same attributes and defaults, wire names, immutable.

    With ``tag`` it is a member of a union told apart by ``type``; it is to be decoded from frames of ``purity`` only.
    """
    key = (cls, tag, purity)
    if key not in _twins:
        _twins[key] = _derive(cls, tag, purity)
    return _twins[key]


def _derive(cls: type[Record], tag: str | None, purity: Purity) -> type[Any]:
    # msgspec would try to resolve the base's own annotation, which exists for type checkers only.
    annotations: dict[str, Any] = {"fields": ClassVar[object], "stands_for": ClassVar[object]}
    annotations.update((field.name, _annotation(field, purity)) for field in cls.fields)
    defaults = {field.name: field.default for field in cls.fields if not field.is_required}
    namespace = {
        **defaults,
        "stands_for": cls,
        "__annotations__": annotations,
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        "__eq__": _is_equal,
        "__hash__": Record.__hash__,
        "__repr__": Record.__repr__,
    }
    names = {field.name: field.wire_name for field in cls.fields}
    tagged = {} if tag is None else {"tag": tag, "tag_field": "type"}
    options = {"kw_only": True, "frozen": True, "eq": False, "rename": names, **tagged}
    metaclass: Any = type(msgspec.Struct)
    made: type[Any] = metaclass(cls.__name__, (msgspec.Struct, cls), namespace, **options)
    return made


def _is_equal(self: Record, other: object) -> object:
    """Whether two records say the same, whichever codec built them."""
    if not isinstance(other, Record) or _class_of(self) is not _class_of(other):
        return NotImplemented
    return all(bool(getattr(self, field.name) == getattr(other, field.name)) for field in self.fields)


def _class_of(record: Record) -> type:
    kind: type = getattr(record, "stands_for", type(record))
    return kind


def _annotation(field: Field, purity: Purity) -> Any:
    rule = field.rule
    shape: Any
    if rule.shape == "record":
        shape = twin(rule.record, purity=purity)
    elif rule.shape == "records":
        shape = tuple[twin(rule.record, purity=purity), ...]  # type: ignore[misc] # made at run time
    elif rule.shape == "lenient":
        shape = purity.lenient
    elif rule.words:
        shape = Literal[rule.words]
    else:
        shape = purity.proved.get(rule, _SHAPES[rule.shape])
    return shape | None if field.is_nullable else shape


class Check:
    """The value rules that decoding into a twin does not prove, ready to run on what was decoded."""

    def __init__(self, cls: type[Record], purity: Purity) -> None:
        ruled = [field for field in cls.fields if _has_more(field, purity)]
        self._required = [_Claim(field) for field in ruled if field.is_required]
        optional = [field for field in ruled if not field.is_required]
        opaque = [field for field in cls.fields if field.rule.shape in ("any", "lenient")]
        self._optional = [_Claim(field) for field in optional]
        self._opaque = [(field.name, field.rule.record) for field in opaque]
        # Most records have none of these: then there is nothing to look at one by one.
        self._read_rare = _reader([*optional, *opaque])
        self._no_rare = tuple(field.default for field in (*optional, *opaque))
        parts = [field for field in cls.fields if field.rule.shape in ("record", "records")]
        checks = [(field, Check(field.rule.record, purity)) for field in parts]
        self._nested = [(f.name, check, f.rule.shape == "records") for f, check in checks if not check.is_empty]
        self._has_violation = cls.violation is not Record.violation

    @property
    def is_empty(self) -> bool:
        """Whether decoding proves everything."""
        return not (self._required or self._optional or self._nested or self._has_violation)

    def is_usual(self, record: object) -> bool:
        """Whether nothing is there that has to be looked at one by one, beside the required members."""
        return self._read_rare(record) == self._no_rare

    def broken_rule(self, record: Any, *, is_usual: bool = False) -> str:
        """Which rule the record breaks, ``""`` when none. Same verdict as ``parse_record``."""
        for claim in self._required:
            if not claim.accepts(claim.read(record)):
                return claim.text
        if not is_usual:
            for claim in self._optional:
                value = claim.read(record)
                if value is not None and value is not ABSENT and not claim.accepts(value):
                    return claim.text
        wrong = self._broken_part(record) if self._nested else ""
        return wrong or (record.violation() if self._has_violation else "")

    def _broken_part(self, record: object) -> str:
        for name, check, is_list in self._nested:
            value = getattr(record, name)
            for part in value or () if is_list else (value,):
                wrong = "" if part is None else check.broken_rule(part)
                if wrong:
                    return wrong
        return ""

    def opaque_members(self, record: object) -> list[tuple[str, msgspec.Raw, type[Record] | None]]:
        """The present members still undecoded: those that may be anything, and (with a record) those to be usable."""
        found = ((name, getattr(record, name), wanted) for name, wanted in self._opaque)
        return [member for member in found if isinstance(member[1], msgspec.Raw)]


class _Claim:
    """What one field must satisfy, and how it is read."""

    __slots__ = ("accepts", "read", "text")

    def __init__(self, field: Field) -> None:
        self.read = attrgetter(field.name)
        self.accepts = field.rule.accepts
        self.text = f"{field.wire_name} is not {field.rule.name}"


def _has_more(field: Field, purity: Purity) -> bool:
    """Whether a field's rule says more than its twin's type."""
    rule = field.rule
    return not (rule.trivial or rule.words or rule.record is not None or rule in purity.proved)


def _reader(fields: list[Field]) -> Callable[[object], tuple[object, ...]]:
    """Read several attributes at once; attrgetter gives a bare value for one name and takes no empty list."""
    names = [field.name for field in fields]
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _record: ()
    read = attrgetter(names[0])
    return lambda record: (read(record),)
