"""Usual sends: what is recognized, what is left to the long way, and that both read the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercomd.edges.listener.codec import decode_request
from intercomd.edges.listener.usual import decode_usual
from libintercom.errors import InvalidFrame
from libintercom.wire.frames import encode_json
from libintercom.wire.requests import Send
from tests.conformance.catalogue import cases, vectors

MESSAGE: dict[str, Any] = {"id": "m1", "timestamp": 1_700_000_000_000, "content": {"text": "hello"}}


def send(**members: Any) -> bytes:
    return encode_json({"type": "send", "to": "bob", "message": {**MESSAGE, **members}})


USUAL = (
    send(),
    send(delivery="steer"),
    send(delivery="queue", passive=False),
    send(delivery="passive"),
    send(expectsReply=True, timeoutMs=0),
    send(replyTo="m0"),
    send(content={"text": "", "attachments": [{"type": "file", "name": "n", "content": "c"}]}),
    send(senderSequence=3, human={"runId": [1, {}]}),
    send().replace(b'"bob"', b'""'),
)
UNUSUAL = (
    send(content={"text": "a\nb"}),
    send(content={"text": "caf\u00e9"}),
    send(content={"text": "a\x7f"}),
    send().replace(b"bob", b"b\tb"),
    send().replace(b"bob", b'b"b'),
    send(timestamp=1.5),
    send(timestamp=-1),
    send(timestamp=2**53 + 1),
    send(id=""),
    send(id=None),
    send(delivery="later"),
    send(passive=True),
    send(expectsReply=True, delivery="passive"),
    send(delivery="queue", queueMode="stack"),
    send(delivery="queue", queueMode="replace", threadId="t"),
    send(threadId="t"),
    send(keepReplyMs=5, replyToken="0" * 32),
    send(guard={}),
    send(guard=1),
    send(replyHint="x"),
    send(timeoutMs=3_600_001),
    send()[:-1],
    send() + b" ",
    send()[:-1] + b',"x":1}',
    send()[:-1] + b',"message":{}}',
    send().replace(b'"to"', b'"TO"'),
    encode_json({"type": "send", "message": MESSAGE, "to": "bob"}),
    b'{"type":"send","to":"',
    b'{"type":"send","to":"bob","message":{}}',
    b'{"type":"send","to":"bob","message":' + b"[" * 100_000 + b"}",
    b"",
)


@pytest.mark.parametrize("payload", USUAL)
def test_it_is_read_as_on_the_long_way(payload: bytes) -> None:
    usual = decode_usual(payload)
    assert usual is not None
    check(payload, usual)


@pytest.mark.parametrize("payload", UNUSUAL)
def test_what_is_not_usual_is_left_to_the_long_way(payload: bytes) -> None:
    assert decode_usual(payload) is None


def check(payload: bytes, usual: tuple[Any, ...]) -> None:
    to, message, raw, size_bytes = usual
    request, long_raw = decode_request(payload)
    assert isinstance(request, Send)
    assert (to, message, raw) == (request.to, request.message, long_raw)
    assert size_bytes == len(payload)


def test_every_payload_of_the_vectors_that_is_usual_is_read_alike() -> None:
    payloads = [case.payload for vector in vectors() if vector.kind in ("member", "payload") for case in cases(vector)]
    recognized = 0
    for payload in payloads:
        usual = decode_usual(payload)
        if usual is not None:
            check(payload, usual)
            recognized += 1
    assert recognized > 10


_PARTS = st.sampled_from(
    [b'"', b"{", b"}", b",", b":", b"\\", b"\x00", b"\x1f", b"\x7f", b"\xff", b"1", b"e9", b"null", b" "]
)


@given(payload=st.sampled_from(USUAL), data=st.data())
def test_a_frame_that_was_tampered_with_is_read_alike_or_left(payload: bytes, data: st.DataObject) -> None:
    for _change in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload)))
        kept = data.draw(st.integers(0, 2))
        payload = payload[:at] + data.draw(_PARTS) + payload[at + kept :]
    usual = decode_usual(payload)
    if usual is None:
        return
    try:
        check(payload, usual)
    except InvalidFrame:
        pytest.fail(f"recognized, and invalid: {payload!r}")
