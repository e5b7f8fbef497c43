"""The standard-library codec: payload bytes <-> requests and answers.

Owns joining ``frames`` and the record types. The daemon has a faster one over the same records
(``intercomd.edges.listener.codec``); both pass the same vectors.
"""

from __future__ import annotations

from libintercom.wire.answers import parse_answer
from libintercom.wire.frames import decode_object, encode_json
from libintercom.wire.record import dump_record
from libintercom.wire.requests import parse_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.wire.answers import Answer
    from libintercom.wire.requests import Request


def decode_request(payload: bytes) -> Request:
    """The request in a client's payload.

    Raises:
        InvalidFrame: the connection must end.
    """
    return parse_request(decode_object(payload))


def decode_answer(payload: bytes) -> Answer:
    """The answer in a broker's payload.

    Raises:
        InvalidFrame: the connection must end.
    """
    return parse_answer(decode_object(payload))


def encode(said: Request | Answer) -> bytes:
    """The payload of a request or an answer.

    Raises:
        ValueError: a number is not finite.
    """
    return encode_json({"type": said.type, **dump_record(said)})


def join_incoming(sender: bytes, message: bytes) -> bytes:
    """The payload of a ``message`` frame from the JSON bytes of its parts, unchanged."""
    return b'{"type":"message","from":' + sender + b',"message":' + message + b"}"


# What ``join_incoming`` adds to its parts, so that a size can be told before anything is joined.
INCOMING_OVERHEAD_BYTES = len(join_incoming(b"", b""))
