"""The standard-library codec: payloads to requests and answers and back."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.errors import InvalidFrame
from libintercom.wire.answers import Incoming, parse_answer
from libintercom.wire.codec import INCOMING_OVERHEAD_BYTES, decode_answer, decode_request, encode, join_incoming
from libintercom.wire.frames import decode_json, encode_json
from libintercom.wire.requests import ListSessions, Presence, Send, parse_request
from tests.support import sayings
from tests.support.desk import incoming, row


def test_request_there_and_back() -> None:
    said = sayings.send("bob", "m1", "\ud83d é\n", expectsReply=True)
    request = decode_request(encode_json(said))
    assert isinstance(request, Send)
    assert decode_json(encode(request)) == said


def test_answer_there_and_back() -> None:
    said = incoming(row("pi-1", "n"), "m1")
    answer = decode_answer(encode_json(said))
    assert isinstance(answer, Incoming)
    assert decode_json(encode(answer)) == said


def test_type_comes_first() -> None:
    assert encode(ListSessions(request_id="r", stream=None)) == b'{"type":"list","requestId":"r"}'


@pytest.mark.parametrize("payload", [b"[]", b"{", b'{"type":"tea"}', b"NaN", b'{"type":"list"}'])
def test_what_is_no_request_or_answer(payload: bytes) -> None:
    with pytest.raises(InvalidFrame):
        decode_request(payload)
    with pytest.raises(InvalidFrame):
        decode_answer(payload)


def test_number_that_json_does_not_have_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Presence(last_intercom_activity=float("inf")))


@pytest.mark.parametrize("message", [b'{"id":"m","timestamp":1e3,"content":{"text":"\\u00e9"},"x":1.0}', b"{}"])
def test_joined_message_keeps_the_bytes_of_its_parts(message: bytes) -> None:
    sender = encode_json(row("pi-1"))
    joined = join_incoming(sender, message)
    assert message in joined
    assert len(joined) == len(sender) + len(message) + INCOMING_OVERHEAD_BYTES
    assert decode_json(joined) == {"type": "message", "from": row("pi-1"), "message": decode_json(message)}


def test_huge_timestamp_is_a_bad_message_and_a_literal_a_bad_frame() -> None:
    said: dict[str, Any] = sayings.send("bob", "m1")
    large = encode_json(said).replace(b"1700000000000", b"1e400")
    assert decode_request(large).type == "send"
    assert decode_request(large) != parse_request(said)
    with pytest.raises(InvalidFrame):
        decode_request(encode_json(said).replace(b"1700000000000", b"NaN"))


def test_answer_of_a_peers_broker_with_members_unknown_to_us() -> None:
    value = {"type": "registered", "sessionId": "s", "topicsSupported": True, "features": ["exact-send-v1"]}
    assert decode_answer(encode_json(value)) == parse_answer({"type": "registered", "sessionId": "s"})
