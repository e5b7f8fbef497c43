"""The daemon's codec: the same verdicts and values as the standard-library one, exact bytes, and every trap."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercomd.core.effects import WriteRows
from intercomd.edges.listener import codec
from intercomd.edges.listener.codec import OPAQUE
from libintercom.errors import InvalidFrame
from libintercom.wire import codec as plain_codec
from libintercom.wire.answers import ANSWERS, Answer, Delivered, DeliveryFailed
from libintercom.wire.frames import decode_json, encode_json
from libintercom.wire.record import ABSENT, dump_record, nullable, optional
from libintercom.wire.requests import REQUESTS, BadSend, Presence, Register, Request, Send
from libintercom.wire.values import COUNT, STRING
from tests.support import sayings as say
from tests.support.codecs import agree, both
from tests.support.wire_records import messages, records

if TYPE_CHECKING:
    from libintercom.wire.messages import Message

SEND = say.send("bob", "m1", "hello", delivery="steer")


# -- the same values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [cls for cls in REQUESTS.values() if cls is not Send])
@settings(max_examples=25)
@given(st.data())
def test_every_request_decodes_to_the_same_values(cls: type[Request], data: st.DataObject) -> None:
    request = data.draw(records(cls))
    decoded = agree(plain_codec.encode(request))
    assert isinstance(decoded, cls)
    assert decoded == plain_codec.decode_request(plain_codec.encode(request))


@settings(max_examples=60)
@given(messages(), st.text())
def test_every_send_decodes_to_the_same_values(message: Message, to: str) -> None:
    payload = plain_codec.encode(Send(to=to, message=message))
    decoded, raw = codec.decode_request(payload)
    assert isinstance(decoded, Send)
    assert decoded == plain_codec.decode_request(payload)
    assert raw == encode_json(dump_record(message))


@settings(max_examples=60)
@given(st.sampled_from(list(ANSWERS.values())).flatmap(records))
def test_every_answer_is_written_as_the_other_codec_writes_it(answer: Any) -> None:
    assert decode_json(codec.encode_answer(answer)) == decode_json(plain_codec.encode(answer))


@given(st.text(st.characters()))
def test_a_string_is_quoted_as_the_other_codec_quotes_it(text: str) -> None:
    assert decode_json(codec.quote(text)) == text
    codec.quote(text).decode()


def test_a_plain_acknowledgement_is_written_to_the_byte() -> None:
    assert codec.encode_answer(Delivered(message_id="m1")) == b'{"type":"delivered","messageId":"m1"}'
    full = Delivered(message_id="m1", delivery="queued", retryable=False, outcome_known=True)
    assert codec.encode_answer(full) == plain_codec.encode(full)
    for partial in (Delivered(message_id="m", retryable=False), Delivered(message_id="m", outcome_known=False)):
        assert codec.encode_answer(partial) == plain_codec.encode(partial)


@pytest.mark.parametrize(
    "answer",
    [
        DeliveryFailed(message_id="m", reason="r", code="not_found", retryable=False, outcome_known=True, count=3),
        DeliveryFailed(message_id="m", reason="a \ud83d alone"),
        DeliveryFailed(message_id="m", reason='\U0001f600 \x00 \x7f \u2028 \\ " / \t'),
        DeliveryFailed(message_id="m", reason="r", count=2**64, limit=-(2**63)),
        DeliveryFailed(message_id="m", reason="r", count=0.1, limit=1e22),
    ],
)
def test_a_refusal_is_written_in_the_other_codecs_order_and_values(answer: DeliveryFailed) -> None:
    """A flood is answered with refusals, so that they have a short way; whatever is odd takes the other one."""
    ours, theirs = (decode_json(encode(answer)) for encode in (codec.encode_answer, plain_codec.encode))
    assert list(ours.items()) == list(theirs.items())


def test_a_null_is_written_and_what_is_absent_is_not() -> None:
    class Cleared(Answer):
        type = "cleared"
        label: str | None = nullable(STRING, default=ABSENT)
        count: int | None = optional(COUNT, default=None)

    assert codec.encode_answer(Cleared(label=None, count=None)) == b'{"type":"cleared","label":null}'
    assert codec.encode_answer(Cleared(count=1)) == b'{"type":"cleared","count":1}'


def test_an_answer_with_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        codec.encode_answer(DeliveryFailed(message_id="m", reason="r", count=float("inf")))


def test_ints_stay_ints_and_floats_stay_floats() -> None:
    decoded = agree(b'{"type":"presence","pendingAsks":2,"lastIntercomActivity":1.5,"contextPct":3.0}')
    assert isinstance(decoded, Presence)
    assert [type(value) for value in (decoded.pending_asks, decoded.last_intercom_activity, decoded.context_pct)] == [
        int,
        float,
        float,
    ]


def test_absent_and_null_differ() -> None:
    assert agree(b'{"type":"presence","contextPct":null}').context_pct is None
    assert agree(b'{"type":"presence"}').context_pct is not None
    assert agree(b'{"type":"presence","name":null}') is InvalidFrame


# -- what is not a frame -----------------------------------------------------------------------------

BROKEN = [
    b"",
    b" ",
    b"null",
    b"[]",
    b"{}",
    b'"register"',
    b"{",
    b'{"type":5}',
    b'{"type":null}',
    b'{"type":"list"}',
    b'{"type":"list","requestId":5}',
    b'{"type":"list","requestId":null}',
    b'{"type":"nonsense"}',
    b'{"type":"list","requestId":"a"} x',
    b'{"type":"list","requestId":"a"}{}',
    b'\xef\xbb\xbf{"type":"list","requestId":"a"}',
    b'{"type":"list","requestId":"a","x":NaN}',
    b'{"type":"list","requestId":"a","x":-Infinity}',
    b'{"type":"list","requestId":"a","x":01}',
    b'{"type":"list","requestId":"a\x01"}',
    b'{"type":"presence","pendingAsks":-1}',
    b'{"type":"presence","pendingAsks":1.5}',
    b'{"type":"presence","pendingAsks":true}',
    b'{"type":"presence","pendingAsks":1e400}',
    b'{"type":"presence","pendingAsks":' + b"9" * 5000 + b"}",
    b'{"type":"register","session":{"cwd":"/"}}',
    b'{"type":"register","session":{"cwd":"/","model":"m","projectId":"zz"}}',
    b'{"type":"register","session":{"cwd":"/","model":"m","lastSeen":1e400}}',
    b'{"type":"register","session":{"cwd":"/","model":"m","parentSessionId":"p"}}',
]


@pytest.mark.parametrize("payload", BROKEN)
def test_what_is_no_frame_is_refused(payload: bytes) -> None:
    assert agree(payload) is InvalidFrame


@pytest.mark.parametrize("payload", [b"[" * 200_000, b'{"type":"list","requestId":"a","x":' + b"[" * 200_000])
def test_nesting_beyond_the_decoder_is_refused_and_no_crash(payload: bytes) -> None:
    assert both(payload) == (InvalidFrame, InvalidFrame)


def test_a_refusal_names_no_value_of_the_frame() -> None:
    with pytest.raises(InvalidFrame) as refused:
        codec.decode_request(b'{"type":"message_receipt","receipt":{"messageId":"m","status":"secret","timestamp":1}}')
    assert "secret" not in str(refused.value)
    with pytest.raises(InvalidFrame) as refused:
        codec.decode_request(b'{"type":"%s"}' % (b"s" * 5000))
    assert len(str(refused.value)) < 200


# -- sends never cost the connection -----------------------------------------------------------------

BAD_SENDS = [
    ({"type": "send"}, "unknown"),
    ({"type": "send", "to": "b"}, "unknown"),
    ({"type": "send", "to": 5, "message": SEND["message"]}, "m1"),
    ({"type": "send", "to": None, "message": SEND["message"]}, "m1"),
    ({"type": "send", "message": SEND["message"]}, "m1"),
    ({"type": "send", "to": "b", "message": []}, "unknown"),
    ({"type": "send", "to": "b", "message": {}}, "unknown"),
    (say.send("b", "m1", "\x1b[31m"), "unknown"),
    (say.send("b", "m1", "\x9b31m"), "unknown"),
    (say.send("b", ""), "unknown"),
    (say.send("b", "a\tb"), "unknown"),
    (say.send("b", "x" * 1025), "unknown"),
    (say.send("b", "é" * 513), "unknown"),
    (say.send("b", "m1", delivery="bogus"), "unknown"),
    (say.send("b", "m1", timestamp=True), "unknown"),
    (say.send("b", "m1", timeoutMs=3_600_001), "unknown"),
    (say.send("b", "m1", passive=True, expectsReply=True), "unknown"),
    (say.send("b", "m1", queueMode="replace"), "unknown"),
    (
        say.send("b", "m1", content={"text": "t", "attachments": [{"type": "image", "name": "n", "content": ""}]}),
        "unknown",
    ),
]


@pytest.mark.parametrize(("frame", "message_id"), BAD_SENDS)
def test_an_invalid_send_is_answered_under_its_id(frame: dict[str, Any], message_id: str) -> None:
    decoded = agree(encode_json(frame))
    assert isinstance(decoded, BadSend)
    assert decoded.message_id == message_id


@pytest.mark.parametrize("number", [b"1e400", b"-1e999", b"9" * 5000])
def test_a_send_with_a_number_beyond_a_double_fails_and_does_not_crash(number: bytes) -> None:
    payload = b'{"type":"send","to":"b","message":{"id":"m","timestamp":%s,"content":{"text":"t"}}}' % number
    decoded = agree(payload)
    assert isinstance(decoded, BadSend)
    ignored = b'{"type":"send","to":"b","message":{"id":"m","timestamp":1,"x":%s,"content":{"text":"t"}}}' % number
    assert isinstance(agree(ignored), Send)


def test_a_null_in_an_optional_member_of_a_message_is_invalid() -> None:
    frame = say.send("b", "m1")
    frame["message"]["delivery"] = None
    assert isinstance(agree(encode_json(frame)), BadSend)


# -- exact bytes -------------------------------------------------------------------------------------


def raw_of(message: bytes) -> bytes:
    decoded, raw = codec.decode_request(b'{"to":"b", "message" : %s , "type":"send"}' % message)
    assert isinstance(decoded, Send), decoded
    return raw


@pytest.mark.parametrize(
    "extra",
    [
        rb'"f":1.0,"big":123456789012345678901234567890',
        rb'"x":  [1 , 2,{"y" :null}]',
        b'"x":"\xc3\xa9"',
        rb'"x":"\u00e9\/\n"',
        rb'"x":"\ud83d\ude00"',
        rb'"x":"\uD83D","y":"\udc00\ud83d"',
        rb'"x":"\\ud83d \ud83d\\ude00 \ue000"',
        b'"x":"\xee\x80\x80 \\uE001 \\ud8ff"',
        rb'"x":1e400,"x":2',
    ],
)
def test_the_bytes_of_a_message_are_forwarded_unchanged(extra: bytes) -> None:
    message = b'{"id":"m1","timestamp":1,"content":{"text":"t"},%s}' % extra
    assert raw_of(message) == message


def test_the_message_is_a_copy_that_does_not_hold_its_frame() -> None:
    _decoded, raw = codec.decode_request(encode_json(SEND))
    assert type(raw) is bytes


def test_invalid_utf8_is_replaced_before_anything_is_forwarded() -> None:
    payload = b'{"type":"send","to":"b","message":{"id":"m","timestamp":1,"x":"\xff\xfe","content":{"text":"a\xffb"}}}'
    decoded, raw = codec.decode_request(payload)
    assert agree(payload).message.content.text == "a\ufffdb"
    assert isinstance(decoded, Send)
    assert json.loads(raw.decode())["x"] == "\ufffd\ufffd"
    hidden = b'{"type":"list","requestId":"a","zz":"\xff"}'
    assert agree(hidden).request_id == "a"


def test_lone_surrogates_keep_their_values() -> None:
    message = rb'{"id":"\ud83d","timestamp":1,"content":{"text":"\ud83d\ud83d\ude00"}}'
    payload = rb'{"type":"send","to":"\udc00x","message":%s}' % message
    decoded = agree(payload)
    assert (decoded.to, decoded.message.id, decoded.message.content.text) == ("\udc00x", "\ud83d", "\ud83d😀")
    registered = agree(rb'{"type":"register","requestedId":"\ud800","session":{"cwd":"/\udfff","model":"m"}}')
    assert (registered.session.cwd, registered.requested_id) == ("/\udfff", "\ud800")


def test_a_lone_surrogate_in_a_key_is_no_reason_to_refuse() -> None:
    assert agree(rb'{"type":"list","requestId":"a","\ud83d":1}').request_id == "a"


# -- members that may be anything --------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"[]", b'{"a":1}', b"1e400", b"[" * 300 + b"]" * 300])
def test_what_is_no_scalar_is_opaque_and_never_decoded(value: bytes) -> None:
    decoded, _raw = codec.decode_request(
        b'{"type":"register","requestedId":%s,"session":{"cwd":"/","model":"m"}}' % value
    )
    assert isinstance(decoded, Register)
    assert decoded.requested_id is OPAQUE
    assert repr(OPAQUE) == "OPAQUE"


@pytest.mark.parametrize(
    ("value", "expected"), [(b"1", 1), (b"1.0", 1.0), (b'"x"', "x"), (b"true", True), (b"null", None)]
)
def test_a_scalar_is_itself(value: bytes, expected: object) -> None:
    assert agree(b'{"type":"register","ext":%s,"session":{"cwd":"/","model":"m"}}' % value).ext == expected


def test_a_guard_is_there_though_nobody_looked_inside() -> None:
    decoded, _raw = codec.decode_request(encode_json(say.send("b", "m1", guard={"peerId": "x"})))
    assert isinstance(decoded, Send)
    assert decoded.message.guard is OPAQUE


# -- named differences -------------------------------------------------------------------------------


def test_a_repeated_member_counts_last_and_must_be_valid_each_time() -> None:
    assert agree(b'{"type":"list","requestId":"a","requestId":"b"}').request_id == "b"
    slow, fast = both(b'{"type":"list","requestId":5,"requestId":"b"}')
    assert (slow.request_id, fast) == ("b", InvalidFrame)


def test_a_repeated_type_must_be_the_same() -> None:
    assert agree(b'{"type":"list","requestId":"a","type":"list"}').request_id == "a"
    assert both(b'{"type":"list","requestId":"a","type":"health"}')[1] is InvalidFrame


# -- rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "omitted"), [(None, None), (True, None), (False, 3)])
def test_rows_are_joined_as_they_are(more: bool | None, omitted: int | None) -> None:
    payload = codec.join_rows(WriteRows(1, 'a"\ud83d', [b'{"id":"a"}', b'{"id":"b"}'], more, omitted))
    expected = {
        "type": "sessions",
        "requestId": 'a"\ud83d',
        "sessions": [{"id": "a"}, {"id": "b"}],
        "more": more,
        "omitted": omitted,
    }
    assert decode_json(payload) == {name: value for name, value in expected.items() if value is not None}
