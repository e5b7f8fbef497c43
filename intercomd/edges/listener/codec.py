"""The daemon's codec: payload bytes <-> requests and answers, by msgspec, over the records of ``libintercom.wire``.

Owns speed and the traps that speed brings (wire.md 14.8): invalid UTF-8 is replaced once for the whole frame, lone
surrogates are shielded (``surrogates``), nothing is decoded untyped, the exact bytes of a message are copied out of
the frame. Does not own the value rules (``libintercom.wire.values``) nor the standard-library codec, whose verdicts
it shares with these named differences:

* a member that occurs twice must be valid both times (the last one counts in both codecs), and ``type`` may be
  repeated only with the same value;
* a member that may be anything and is an array, an object or a number beyond a double decodes as ``OPAQUE``;
* how deep an ignored value may be nested before the frame is refused depends on each decoder.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Union

import msgspec

from intercomd.edges.listener.surrogates import shield
from intercomd.edges.listener.twins import ANY, PLAIN, TAME, Check, twin
from libintercom.errors import InvalidFrame
from libintercom.wire import codec as slow_codec
from libintercom.wire.answers import Delivered
from libintercom.wire.frames import HEADER_BYTES, encode_json, frame
from libintercom.wire.messages import Message
from libintercom.wire.record import UNUSABLE, Record
from libintercom.wire.requests import IGNORED_TYPES, REQUESTS, BadSend, Ignored, Request, Send

if TYPE_CHECKING:
    from intercomd.core.effects import WriteRows
    from intercomd.edges.listener.surrogates import Shield
    from intercomd.edges.listener.twins import Purity
    from libintercom.wire.answers import Answer

_BACKSLASH, _DELETE = 0x5C, 0x7F


class Opaque:
    """What a member that may be anything holds when it is no scalar: present, equal to nothing else."""

    def __repr__(self) -> str:
        return "OPAQUE"


OPAQUE = Opaque()


class _SendHead(msgspec.Struct, tag="send", tag_field="type"):
    """A ``send`` before its parts are looked at: an invalid part must not cost the connection."""

    to: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()


class _Dialect:
    """Decoders and checks for the frames of one purity."""

    def __init__(self, purity: Purity) -> None:
        requests = {kind: cls for kind, cls in REQUESTS.items() if cls is not Send}
        requests.update(dict.fromkeys(IGNORED_TYPES, Ignored))
        twins = {twin(cls, kind, purity): cls for kind, cls in requests.items()}
        message = twin(Message, purity=purity)
        self.frames: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Union[(_SendHead, *twins)])
        self.messages: msgspec.json.Decoder[Any] = msgspec.json.Decoder(message)
        self.checks = {made: Check(cls, purity) for made, cls in {**twins, message: Message}.items()}
        # Parts whose breach costs the member, not the frame.
        known: list[type[Record]] = [*requests.values(), Message]
        fields = (field for cls in known for field in cls.fields)
        wanted = {field.rule.record for field in fields if field.rule.shape == "lenient"}
        self._usable = {cls: (msgspec.json.Decoder(twin(cls, purity=purity)), Check(cls, purity)) for cls in wanted}

    def decode_leniently(self, wanted: type[Record], raw: msgspec.Raw, shielded: Shield | None) -> object:
        """A part as the record it should be, or ``UNUSABLE``."""
        decoder, check = self._usable[wanted]
        try:
            part = decoder.decode(raw)
        except msgspec.DecodeError:
            return UNUSABLE
        if shielded is not None:
            _restore(part, shielded)
        return UNUSABLE if check.broken_rule(part) else part


_any, _tame, _plain = _Dialect(ANY), _Dialect(TAME), _Dialect(PLAIN)
# What msgspec quotes in its reasons came from the peer, and reasons go to the log.
_VALUE = re.compile("'.*'", re.DOTALL)
# An escape that a tame frame has not (an escaped backslash before such a letter is a harmless false alarm).
_find_wild_escape = re.compile(rb"\\[ubf]").search
_strings = msgspec.json.Decoder(str)
_scalars: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Union[str, int, float, bool, None])  # noqa: UP007 - a value
# What both codecs write alike, but for what only the slow one can write.
_FLAT = frozenset((str, int, bool))
# The members of a kind of answer: their names, their wire names, and what says that they are absent.
_members: dict[type[Answer], list[tuple[str, str, object]]] = {}
_send, _bad_send = twin(Send), twin(BadSend)
_DELIVERED = b'{"type":"delivered","messageId":'
_encode = msgspec.json.Encoder().encode


def decode_request(payload: bytes) -> tuple[Request, bytes]:
    """The request in a client's payload, and the exact bytes of the ``message`` member when it is a valid send.

    Raises:
        InvalidFrame: the connection must end.
    """
    try:
        if payload.isascii() and _DELETE not in payload:
            if _BACKSLASH not in payload:
                return _decode(payload, _plain, None)
            if _find_wild_escape(payload) is None:
                return _decode(payload, _tame, None)
        repaired = _repair(payload)
        shielded = shield(repaired)
        return _decode(repaired if shielded is None else shielded.payload, _any, shielded)
    except RecursionError:
        raise InvalidFrame("JSON is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise InvalidFrame(_VALUE.sub("(value)", str(error))) from None


def _repair(payload: bytes) -> bytes:
    """Replace invalid UTF-8 the way a JavaScript peer's reader does."""
    try:
        payload.decode()
    except UnicodeDecodeError:
        return payload.decode("utf-8", "replace").encode()
    return payload


def _decode(payload: bytes, dialect: _Dialect, shielded: Shield | None) -> tuple[Request, bytes]:
    head = dialect.frames.decode(payload)
    if type(head) is _SendHead:
        return _decode_send(head, dialect, shielded)
    wrong = _settle(head, dialect, shielded)
    if wrong:
        raise InvalidFrame(wrong)
    return head, b""


def _decode_send(head: _SendHead, dialect: _Dialect, shielded: Shield | None) -> tuple[Request, bytes]:
    try:
        message = dialect.messages.decode(head.message)
    except msgspec.DecodeError:
        return _bad_send(message_id="unknown"), b""
    if _settle(message, dialect, shielded):
        return _bad_send(message_id="unknown"), b""
    try:
        to = _strings.decode(head.to)
    except msgspec.DecodeError:
        return _bad_send(message_id=message.id), b""
    # A copy: the Raw would keep its whole frame in memory for as long as the message waits.
    raw = bytes(head.message)
    if shielded is not None:
        to, raw = shielded.restore_text(to), shielded.restore_bytes(raw)
    return _send(to=to, message=message), raw


def _settle(record: Any, dialect: _Dialect, shielded: Shield | None) -> str:
    """Finish a decoded record in place; which rule it breaks, ``""`` when none."""
    check = dialect.checks[type(record)]
    is_usual = check.is_usual(record)
    if not is_usual:
        for name, raw, wanted in check.opaque_members(record):
            value = _decode_scalar(raw) if wanted is None else dialect.decode_leniently(wanted, raw, shielded)
            msgspec.structs.force_setattr(record, name, value)
    if shielded is not None:
        _restore(record, shielded)
    return check.broken_rule(record, is_usual=is_usual)


def _decode_scalar(raw: msgspec.Raw) -> object:
    try:
        return _scalars.decode(raw)
    except msgspec.DecodeError:
        return OPAQUE


def _restore(record: Any, shielded: Shield) -> None:
    """Put the lone surrogates back into every string of a record."""
    for field in record.fields:
        value = getattr(record, field.name)
        if isinstance(value, str):
            msgspec.structs.force_setattr(record, field.name, shielded.restore_text(value))
            continue
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Record):
                _restore(part, shielded)


def encode_answer(answer: Answer) -> bytes:
    """The payload of an answer; the same JSON value as ``libintercom.wire.codec.encode`` writes.

    Raises:
        ValueError: a number is not finite.
    """
    if type(answer) is Delivered and answer.delivery is None and answer.outcome_known is answer.retryable is None:
        return _DELIVERED + quote(answer.message_id) + b"}"
    flat = _flatten(answer)
    if flat is not None:
        try:
            return msgspec.json.encode(flat)
        except (UnicodeEncodeError, OverflowError):
            # A lone surrogate, or an integer beyond 64 bits.
            pass
    return slow_codec.encode(answer)


def _flatten(answer: Answer) -> dict[str, Any] | None:
    """The members of an answer of texts, integers and booleans in their order, ``None`` for any other."""
    kind = type(answer)
    members = _members.get(kind)
    if members is None:
        members = _members[kind] = [(field.name, field.wire_name, field.default) for field in answer.fields]
    # Without the detour over each attribute; what is absent is not in it (``Record``).
    given, flat = vars(answer), {"type": answer.type}
    for name, wire_name, default in members:
        value = given.get(name, default)
        if value is not default:
            if type(value) not in _FLAT:
                return None
            flat[wire_name] = value
    return flat


class LastAnswer:
    """One answer may go to thousands of connections (somebody left): it is encoded once, and its bytes are shared."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self._framed = b""

    def frame(self, answer: Answer) -> bytes:
        """A whole frame, its header included."""
        if self.answer is not answer:
            self.answer, self._framed = answer, frame(encode_answer(answer))
        return self._framed


def frame_delivered(message_id: str) -> bytes:
    """The whole frame of a plain ``delivered``."""
    quoted = quote(message_id)
    size = len(_DELIVERED) + len(quoted) + 1
    return b"".join((size.to_bytes(HEADER_BYTES, "big"), _DELIVERED, quoted, b"}"))


def quote(text: str) -> bytes:
    """A JSON string; a lone surrogate stays the escape it was."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return encode_json(text)


def join_rows(effect: WriteRows) -> bytes:
    """The payload of a ``sessions`` frame from rows that are JSON bytes already."""
    head = b'{"type":"sessions","requestId":' + quote(effect.request_id) + b',"sessions":['
    parts = [head, b",".join(effect.rows), b"]"]
    if effect.more is not None:
        parts.append(b',"more":true' if effect.more else b',"more":false')
    if effect.omitted is not None:
        parts.append(b',"omitted":%d' % effect.omitted)
    return b"".join([*parts, b"}"])
