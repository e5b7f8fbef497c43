"""Vectors on the two codecs: the standard library's and the daemon's, which must give the same verdicts.

Owns the verdict of a payload (accepted, refused, or a send answered as invalid) and of an answer's bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomd.edges.listener import codec as fast_codec
from intercomd.edges.listener.usual import decode_usual
from libintercom.errors import InvalidFrame
from libintercom.wire import codec as plain_codec
from libintercom.wire.frames import decode_json
from libintercom.wire.record import ABSENT, Record
from libintercom.wire.requests import BadSend, Request, Send

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.catalogue import Case, Vector

    Decode = Callable[[bytes], tuple[Request, bytes]]


def decode_plainly(payload: bytes) -> tuple[Request, bytes]:
    """The standard-library codec's request; it has no use for message bytes, so those are the other's."""
    request = plain_codec.decode_request(payload)
    return request, fast_codec.decode_request(payload)[1]


def decode_as_heard(payload: bytes) -> tuple[Request, bytes]:
    """The daemon's codec as its listener uses it: usual sends in one step, the others the long way."""
    usual = decode_usual(payload)
    if usual is None:
        return fast_codec.decode_request(payload)
    to, message, raw, _size_bytes = usual
    return Send(to=to, message=message), raw


CODECS: dict[str, Decode] = {
    "stdlib": decode_plainly,
    "msgspec": fast_codec.decode_request,
    "usual": decode_as_heard,
}
ENCODERS = {"stdlib": plain_codec.encode, "msgspec": fast_codec.encode_answer}


def verdict(decode: Decode, payload: bytes) -> tuple[str, Any]:
    """``accepted`` with what was read, ``bad send`` with the id of its refusal, or ``refused``."""
    try:
        request, _message = decode(payload)
    except InvalidFrame:
        return "refused", None
    if isinstance(request, BadSend):
        return "bad send", request.message_id
    return "accepted", (request.type, describe(request))


def describe(value: Any) -> Any:
    """What a record says, the same for both codecs: a member that may be anything only counts as there."""
    if isinstance(value, tuple):
        return [describe(item) for item in value]
    if not isinstance(value, Record):
        return value
    present = ((field, getattr(value, field.name)) for field in value.fields)
    return {
        field.wire_name: "present" if field.rule.shape == "any" else describe(member)
        for field, member in present
        if member is not field.default and member is not ABSENT
    }


def check_case(case: Case) -> None:
    """All codecs judge a case alike, and as the vector says."""
    verdicts = {name: verdict(decode, case.payload) for name, decode in CODECS.items()}
    assert verdicts["stdlib"] == verdicts["msgspec"] == verdicts["usual"], f"{case.label}: {verdicts}"
    found = verdicts["stdlib"]
    if case.is_accepted:
        assert found[0] == "accepted", f"{case.label}: {found}"
    elif not case.is_checked_by_broker:
        expected = ("bad send", case.refused_as) if case.type == "send" and found[0] != "refused" else ("refused", None)
        assert found == expected, f"{case.label}: {found}"


def check_answers(vector: Vector) -> int:
    """Each text is read and written again by both codecs, to the byte; returns how many."""
    for text in vector.body["texts"]:
        answer = plain_codec.decode_answer(text.encode())
        for name, encode in ENCODERS.items():
            assert encode(answer).decode() == text, f"{vector.label} ({name})"
        assert decode_json(text.encode())["type"] == answer.type
    return len(vector.body["texts"])
