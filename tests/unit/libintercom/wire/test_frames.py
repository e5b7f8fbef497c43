"""Framing: any split of the bytes, cost counted, the limit on the payload, JSON as a JavaScript peer reads it."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.errors import InvalidFrame, TooLarge
from libintercom.wire import frames
from libintercom.wire.frames import MAX_FRAME_BYTES, FrameReader, decode_json, decode_object, encode_json, frame

if TYPE_CHECKING:
    from collections.abc import Iterator


def fed(*reads: bytes) -> tuple[list[bytes], str]:
    """Every payload that came out, and why it stopped."""
    reader, payloads = FrameReader(), []
    try:
        for received in reads:
            for payload in reader.feed(received):
                payloads.append(payload)  # noqa: PERF402 - what came before a bad frame is kept
    except InvalidFrame as error:
        return payloads, error.reason
    return payloads, ""


# ------------------------------------------------------------------ cutting

PAYLOADS = [b"{}", b'{"type":"x"}', b" ", "é€😀".encode(), b"x" * 300]
STREAM = b"".join(map(frame, PAYLOADS))


def test_every_split_in_two_and_every_size_of_read() -> None:
    for at in range(len(STREAM) + 1):
        assert fed(STREAM[:at], STREAM[at:]) == (PAYLOADS, "")
    for size in range(1, 40):
        assert fed(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == (PAYLOADS, "")


def test_every_split_of_a_short_stream_into_any_number_of_reads() -> None:
    """All 2^n ways to cut a stream of n + 1 bytes."""
    short = frame(b"{}") + frame(b"[]")
    for cuts in itertools.product([False, True], repeat=len(short) - 1):
        reads, last = [], 0
        for at, is_cut in enumerate(cuts, 1):
            if is_cut:
                reads.append(short[last:at])
                last = at
        assert fed(*reads, short[last:]) == ([b"{}", b"[]"], "")


def test_nothing_is_a_read_too() -> None:
    assert fed(b"", STREAM[:3], b"", STREAM[3:], b"") == (PAYLOADS, "")


def test_held_bytes_are_told() -> None:
    reader = FrameReader()
    assert list(reader.feed(frame(b"{}") + b"\0\0")) == [b"{}"]
    assert reader.partial_bytes == 2
    assert list(reader.feed(b"\0\2{}")) == [b"{}"]
    assert reader.partial_bytes == 0


@pytest.mark.parametrize("size", [0, MAX_FRAME_BYTES + 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("split", [1, 2, 3, 4, 9])
def test_length_out_of_bounds_ends_it_behind_what_came_before(size: int, split: int) -> None:
    stream = frame(b"{}") + size.to_bytes(4, "big") + frame(b"[]")
    payloads, reason = fed(*(stream[at : at + split] for at in range(0, len(stream), split)))
    assert payloads == [b"{}"]
    assert str(size) in reason


def test_limit_counts_the_payload_and_not_its_header() -> None:
    largest = b"x" * MAX_FRAME_BYTES
    assert fed(frame(largest)) == ([largest], "")
    with pytest.raises(TooLarge) as caught:
        frame(largest + b"x")
    assert str(caught.value) == "Intercom message too large (1048577 bytes; max 1048576)"


class CountingReader(FrameReader):
    """A reader that counts the bytes it keeps and takes out again."""

    def __init__(self) -> None:
        super().__init__()
        self.copied = 0

    def _hold(self, part: bytes) -> None:
        self.copied += len(part)
        super()._hold(part)

    def _take(self) -> bytes:
        whole = super()._take()
        self.copied += len(whole)
        return whole


class CuttingReader(CountingReader):
    """The obvious one: it cuts one frame from the front and keeps the rest, for each frame."""

    def feed(self, received: bytes) -> Iterator[bytes]:
        self._hold(received)
        while self._held >= self._needed:
            end, whole = self._needed, self._take()
            yield whole[4:end]
            self._hold(whole[end:])


STREAMS = [(read_bytes, payload_bytes) for read_bytes in (1, 7, 1000, 65_536) for payload_bytes in (1, 100, 262_144)]


def read_all(reader: CountingReader, read_bytes: int, payload_bytes: int) -> tuple[int, int]:
    """How many payloads came out, and how many times as many bytes as were fed were copied."""
    stream = frame(b"x" * payload_bytes) * max(1, 200_000 // (payload_bytes + 4))
    count = 0
    for at in range(0, len(stream), read_bytes):
        count += sum(1 for payload in reader.feed(stream[at : at + read_bytes]) if len(payload) == payload_bytes)
    assert count == len(stream) // (payload_bytes + 4)
    return count, reader.copied // len(stream)


@pytest.mark.parametrize(("read_bytes", "payload_bytes"), STREAMS)
def test_cost_is_linear_in_the_bytes(read_bytes: int, payload_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, announced = 0, frames._announced

    def look(*arguments: Any) -> int:
        nonlocal looks
        looks += 1
        return announced(*arguments)

    monkeypatch.setattr(frames, "_announced", look)
    count, times = read_all(CountingReader(), read_bytes, payload_bytes)
    # In and out once, and a rest once more for each frame that a read completes.
    assert times < 3
    assert looks <= 3 * count + 1


def test_counting_shows_a_reader_that_cuts_from_the_front() -> None:
    """The gate closes."""
    assert read_all(CuttingReader(), 65_536, 1)[1] > 100


@pytest.mark.parametrize("read_bytes", [1, 100, 5_000, 65_536])
def test_an_incomplete_frame_is_held_in_pieces_of_bounded_size(read_bytes: int) -> None:
    """None of them moves as it grows, and there are few."""
    reader, raw = FrameReader(), frame(b"x" * 300_000)[:-1]
    for at in range(0, len(raw), read_bytes):
        assert not list(reader.feed(raw[at : at + read_bytes]))
    assert reader.partial_bytes == len(raw)
    assert len(reader._pieces) <= len(raw) // 16_384 + 1
    assert max(map(len, reader._pieces)) <= max(read_bytes, 16_384 + read_bytes)
    assert list(reader.feed(b"x")) == [b"x" * 300_000]
    assert (reader.partial_bytes, reader._pieces) == (0, [])


# ------------------------------------------------------------------ decoding


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b'{"a":1.0}', {"a": 1.0}),
        (b'"\\ud83d"', "\ud83d"),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'"\xff"', "\ufffd"),
        (b'"\xed\xa0\xbd"', "\ufffd\ufffd\ufffd"),
        (b'"\xf0\x9f\x98"', "\ufffd"),
        (b" \t\r\n[1]\n", [1]),
        (b"1e400", float("inf")),
        (b"-1E400", float("-inf")),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\x7f"', "\x7f"),
    ],
)
def test_decoded_as_javascript_does(payload: bytes, value: object) -> None:
    assert decode_json(payload) == value


@pytest.mark.parametrize(
    "payload",
    [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'{"a":NaN}',
        b"",
        b"{",
        b"{'a':1}",
        b"[1,]",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b"0x1",
        b"True",
        b'"a\nb"',
        b'"\x00"',
        b"\xef\xbb\xbf{}",
        b"\xc2\xa0{}",
        b"\x0b1",
        b"{} {}",
        b'"\\x41"',
        b"// c\n1",
    ],
)
def test_what_javascript_refuses_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidFrame):
        decode_json(payload)


@pytest.mark.parametrize("digits", [400, 4_300, 4_301, 100_000])
def test_integer_of_any_length_is_a_number(digits: int) -> None:
    value = decode_json(b"[" + b"9" * digits + b"]")[0]
    assert value > 10**300
    assert decode_json(b"[-" + b"9" * digits + b"]")[0] < -(10**300)


def test_deep_nesting_is_refused_and_survived() -> None:
    for deep in (b"[" * 200_000, b"[" * 200_000 + b"]" * 200_000, b'{"a":' * 200_000 + b"1" + b"}" * 200_000):
        with pytest.raises(InvalidFrame):
            decode_json(deep)
    assert decode_json(b"[" * 100 + b"]" * 100) is not None


@pytest.mark.parametrize("payload", [b"[]", b"null", b"5", b'"type"', b"{}", b'{"type":null}', b'{"type":5}'])
def test_object_needs_a_string_type(payload: bytes) -> None:
    with pytest.raises(InvalidFrame):
        decode_object(payload)


def test_object_with_a_type() -> None:
    assert decode_object(b'{"type":"","x":null}') == {"type": "", "x": None}


# ------------------------------------------------------------------ encoding


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        ({"a": [1, True, None]}, b'{"a":[1,true,null]}'),
        ("é😀", '"é😀"'.encode()),
        ("\ud83d", b'"\\ud83d"'),
        ("a\udc00é", '"a\\udc00é"'.encode()),
        ({"\ud83d": "\ud83d"}, b'{"\\ud83d":"\\ud83d"}'),
        ("\u2028\x7f\t", '"\u2028\x7f\\t"'.encode()),
        ('\\ud83d"', b'"\\\\ud83d\\""'),
    ],
)
def test_encoded_compactly_and_surrogates_stay_escapes(value: object, payload: bytes) -> None:
    assert encode_json(value) == payload
    assert decode_json(payload) == value
    assert json.loads(payload) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": float("-inf")}])
def test_number_that_json_does_not_have_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_json(value)
