"""Bytes <-> frames: 4-byte big-endian length, then that many bytes of UTF-8 JSON (wire.md section 1).

Owns framing, its 1 MiB limit and the JSON dialect that JavaScript peers speak. Does not own what an object
means (``messages``).
"""

from __future__ import annotations

import json
import re

from libintercom.errors import InvalidFrame, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any, NoReturn

# wire.md section 1: the limit counts the JSON payload, not the 4 bytes before it.
MAX_FRAME_BYTES = 1_048_576
HEADER_BYTES = 4
# A part of a frame that is kept as it came; smaller ones are gathered up to this size. A socket brings 64 KiB at once.
_PIECE_BYTES = 16 * 1024
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Longer integers are beyond a double anyway; Python refuses to convert more than 4300 digits.
_MAX_INTEGER_DIGITS = 400


def frame(payload: bytes) -> bytes:
    """One frame for a payload.

    Raises:
        TooLarge: the payload passes ``MAX_FRAME_BYTES``; nothing may be written then.
    """
    if len(payload) > MAX_FRAME_BYTES:
        raise TooLarge(len(payload), MAX_FRAME_BYTES)
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


def encode_json(value: object) -> bytes:
    """Compact UTF-8 JSON; a lone surrogate stays the escape it was, so peers get it back unchanged.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text).encode()


def decode_json(payload: bytes) -> Any:
    """The JSON value of a payload as a JavaScript peer would read it; invalid UTF-8 is replaced.

    Raises:
        InvalidFrame: no JSON, ``NaN`` or ``Infinity``, or nested beyond what the decoder can follow.
    """
    text = payload.decode("utf-8", "replace")
    try:
        return _load(text)
    except RecursionError:
        raise InvalidFrame("JSON is nested too deeply") from None
    except ValueError as error:
        raise InvalidFrame(f"not JSON: {error}") from None


def _load(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # An integer beyond Python's digit limit: a JavaScript peer reads it as a double.
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_long_integer)


def _parse_long_integer(digits: str) -> float | int:
    return float(digits) if len(digits) > _MAX_INTEGER_DIGITS else int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidFrame(f"not JSON: {name}")


def decode_object(payload: bytes) -> dict[str, Any]:
    """The object of a payload, which must have a string member ``type``.

    Raises:
        InvalidFrame: anything else; the connection that carried it must end.
    """
    value = decode_json(payload)
    if not isinstance(value, dict):
        raise InvalidFrame("the payload is not an object")
    if not isinstance(value.get("type"), str):
        raise InvalidFrame("the object has no string member type")
    return value


class FrameReader:
    """Cut a byte stream into payloads, whatever the split; linear in the bytes fed.

    An incomplete frame is held in pieces: one buffer would be moved as it grows, and leave holes of its size behind.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        # What is too small to be a piece of its own.
        self._tail = bytearray()
        # Bytes held, and needed before there is something to cut.
        self._held, self._needed = 0, HEADER_BYTES

    @property
    def partial_bytes(self) -> int:
        """Bytes held of a frame that is not complete."""
        return self._held

    def feed(self, received: bytes) -> Iterator[bytes]:
        """Yield each complete payload in order. Exhaust the iterator before feeding again.

        Raises:
            InvalidFrame: a zero or over-limit length was announced; what came before it was yielded,
                nothing after it is.
        """
        if not self._held:
            start = yield from _cut(received)
            self._hold(received[start:])
            return
        self._hold(received)
        if self._held < self._needed:
            return
        # One cut a call: cutting at every frame would copy the rest once per frame.
        whole = self._take()
        start = yield from _cut(whole)
        self._hold(whole[start:])

    def _hold(self, part: bytes) -> None:
        """Keep a part of an incomplete frame."""
        if len(part) >= _PIECE_BYTES and not self._tail:
            self._pieces.append(part)
        else:
            self._tail += part
            if len(self._tail) >= _PIECE_BYTES:
                self._pieces.append(bytes(self._tail))
                self._tail = bytearray()
        had_header = self._held >= HEADER_BYTES
        self._held += len(part)
        if not had_header and self._held >= HEADER_BYTES:
            self._needed = HEADER_BYTES + _announced(self._pieces[0] if self._pieces else self._tail, 0)

    def _take(self) -> bytes:
        """Everything that is held; nothing is afterwards."""
        whole = b"".join((*self._pieces, self._tail))
        self._pieces, self._tail = [], bytearray()
        self._held, self._needed = 0, HEADER_BYTES
        return whole


def _cut(source: bytes) -> Generator[bytes, None, int]:
    """Yield the complete payloads of ``source``; return where the incomplete rest starts."""
    start, end, from_bytes = 0, len(source), int.from_bytes
    while end - start >= HEADER_BYTES:
        begin = start + HEADER_BYTES
        size = from_bytes(source[start:begin], "big")
        if not 0 < size <= MAX_FRAME_BYTES:
            raise _misannounced(size)
        stop = begin + size
        if stop > end:
            break
        yield source[begin:stop]
        start = stop
    return start


def _announced(source: bytes | bytearray, start: int) -> int:
    size = int.from_bytes(source[start : start + HEADER_BYTES], "big")
    if not 0 < size <= MAX_FRAME_BYTES:
        raise _misannounced(size)
    return size


def _misannounced(size: int) -> InvalidFrame:
    return InvalidFrame(f"a frame announced {size} bytes (1 to {MAX_FRAME_BYTES} allowed)")
