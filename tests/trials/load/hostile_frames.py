"""Frames of nearly 1 MiB that are as hard to read as JSON can be.

Owns their payloads. A message has an id of its own and is valid where its kind can be; what cannot be valid ends its
connection. Does not own sending them (``hostility``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# What of a frame's 1 MiB is left beside the members around the hostile one.
ROOM_BYTES = 1024 * 1024 - 1024
TARGET = "hostile-target"
# Longer than any integer that Python reads without being told to.
_DIGITS = 5_000


def fill(piece: bytes, separator: bytes = b"") -> bytes:
    """As many pieces as fit."""
    size = len(piece) + len(separator)
    return separator.join([piece] * (ROOM_BYTES // size))


def message(number: int, text: bytes = b'"x"', more: bytes = b"") -> bytes:
    """A send of a message with this JSON as its text, and members that nobody knows or that break a rule."""
    head = b'{"type":"send","to":"%b","message":{"id":"h%d","timestamp":1,"content":{"text":'
    return head % (TARGET.encode(), number) + text + b"}" + more + b"}}"


def member(value: bytes) -> bytes:
    return b',"more":' + value


def _object(count: int) -> bytes:
    return b"{" + b",".join(b'"m%06d":0' % number for number in range(count)) + b"}"


# Kind -> a payload for a number.
KINDS: dict[str, Callable[[int], bytes]] = {
    # In a member that nobody knows.
    "deep arrays": lambda n: message(n, more=member(b"[" * (ROOM_BYTES // 2) + b"]" * (ROOM_BYTES // 2))),
    "deep objects": lambda n: message(n, more=member(b'{"a":' * (ROOM_BYTES // 6) + b"1" + b"}" * (ROOM_BYTES // 6))),
    "deep, within reach": lambda n: message(n, more=member(fill(b"[" * 500 + b"]" * 500, b",").join((b"[", b"]")))),
    "wide object": lambda n: message(n, more=member(_object(ROOM_BYTES // 12))),
    "huge array": lambda n: message(n, more=member(b"[" + fill(b'{"a":[]}', b",") + b"]")),
    "floats": lambda n: message(n, more=member(b"[" + fill(b"1.7976931348623157e308", b",") + b"]")),
    "long numbers": lambda n: message(n, more=member(b"[" + fill(b"9" * _DIGITS, b",") + b"]")),
    "duplicates": lambda n: message(n, more=b"," + fill(b'"d":1', b",")),
    "duplicate text": lambda n: message(n, more=b"," + fill(b'"content":{"text":""}', b",")),
    # In the text itself.
    "escapes": lambda n: message(n, b'"' + fill(rb"\n") + b'"'),
    "unicode escapes": lambda n: message(n, b'"' + fill(rb"\u0041") + b'"'),
    "lone surrogates": lambda n: message(n, b'"' + fill(rb"\ud83d") + b'"'),
    "surrogate pairs": lambda n: message(n, b'"' + fill(rb"\ud83d\ude00") + b'"'),
    "mixed surrogates": lambda n: message(n, b'"' + fill(rb"\ud83d\\\ude00\ud83d\ude00") + b'"'),
    "every sentinel": lambda n: message(n, b'"' + _sentinels() + fill(rb"\ud83d")[: ROOM_BYTES - 40_000] + b'"'),
    "invalid UTF-8": lambda n: message(n, b'"' + fill(b"\xff") + b'"'),
    "half characters": lambda n: message(n, b'"' + fill(b"\xf0\x9f\x98") + b'"'),
    "four bytes": lambda n: message(n, b'"' + fill("\U0001f600".encode()) + b'"'),
    # In members that have rules.
    "many attachments": lambda n: message(n, b'"","attachments":[' + fill(_ATTACHMENT, b",") + b"]"),
    "long timestamp": lambda n: message(n, more=b',"timestamp":' + b"9" * _DIGITS),
    "long id": lambda n: message(n, more=b',"id":"' + fill(b"i") + b'"'),
    "long target": lambda n: b'{"type":"send","to":"%b","message":{"id":"h%d"}}' % (fill(b"t"), n),
    # No message.
    "ignored frame": lambda n: b'{"type":"extension_publish","n":%d,"payload":[%b]}' % (n, fill(b'{"a":[]}', b",")),
    "long request id": lambda n: b'{"type":"list","requestId":"%d%b"}' % (n, fill(rb"\u0000")),
    "wide presence": lambda n: b'{"type":"presence","n":%d,"x":%b}' % (n, _object(ROOM_BYTES // 12)),
    "long label": lambda n: b'{"type":"presence","n":%d,"name":"%b"}' % (n, fill(b"n")),
    "no type": lambda n: b'{"n":%d,"payload":[%b]}' % (n, fill(b'{"a":[]}', b",")),
    "not JSON": lambda n: b"%d" % n + fill(b"[}"),
}
_ATTACHMENT = b'{"type":"file","name":"n","content":""}'


def _sentinels() -> bytes:
    return "".join(map(chr, range(0xE000, 0xF900))).encode()
