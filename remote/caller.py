"""The other end of the ssh connection: the one request that comes, the lines that go, and noticing that it has gone.

Owns standard input and output. Does not own what is asked (``commands``).
"""

from __future__ import annotations

import os
import select
import signal

from libintercom.devices.words import VERSION
from libintercom.errors import InvalidFrame
from libintercom.wire.frames import decode_json, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

_STDIN, _STDOUT = 0, 1
_READ_BYTES = 64 * 1024
# A message of one frame (1 MiB), its escapes, and what stands around it.
_MAX_REQUEST_BYTES = 8 * 1024 * 1024
# How often a waiting ask shows that it lives, and looks whether its caller does (seeds).
_BEAT_S = 1.0


class CallerGone(BaseException):
    """Nobody waits any more: the caller withdrew the request, left, or this command was told to end.

    No ``Exception``: it passes everything on its way that could take it for a failure of its own.
    """


class InvalidRequest(Exception):
    """What came is no request."""


def read_request() -> dict[str, Any]:
    """The request: one line of JSON, or all there is where the caller closes behind it.

    Raises:
        InvalidRequest: a part of one, something else, or another version.
    """
    line = _read_line()
    try:
        request = decode_json(line)
    except InvalidFrame as error:
        raise InvalidRequest(f"Invalid request: {error.reason}.") from None
    if not isinstance(request, dict):
        raise InvalidRequest("Invalid request: it is not a JSON object.")
    version = request.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InvalidRequest(f"Unsupported version {version!r:.40}; this command speaks version {VERSION}.")
    return request


def _read_line() -> bytes:
    received = b""
    while b"\n" not in received:
        chunk = os.read(_STDIN, _READ_BYTES)
        received += chunk
        if not chunk:
            break
        if len(received) > _MAX_REQUEST_BYTES:
            raise InvalidRequest(f"Invalid request: it has more than {_MAX_REQUEST_BYTES} bytes.")
    return received.partition(b"\n")[0]


def say(members: Mapping[str, Any]) -> None:
    """Print one reply as a line of its own.

    Raises:
        CallerGone: nobody reads it.
    """
    line = memoryview(encode_json({"version": VERSION, **members}) + b"\n")
    try:
        while line:
            line = line[os.write(_STDOUT, line) :]
    except OSError:
        raise CallerGone from None


class Watch:
    """Looks once a second whether the caller still waits; raises CallerGone where the program stands, if not.

    ``holds_input``: the caller keeps standard input open for as long as it waits. Use it in a ``with`` block, on the
    main thread: it is a timer's signal, which also interrupts a wait for the broker.
    """

    def __init__(self, *, holds_input: bool) -> None:
        self._holds_input, self._is_beating = holds_input, False

    def beat(self) -> None:
        """From now on print an empty line at each look; its writing is how a closed connection is noticed."""
        self._is_beating = True

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, _BEAT_S, _BEAT_S)
        return self

    def __exit__(self, *_raised: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _look(self, _number: int, _frame: object) -> None:
        if self._holds_input and _is_readable(_STDIN) and not os.read(_STDIN, _READ_BYTES):
            raise CallerGone
        # A connection that stands still takes nothing; its end is told by ssh, not by a blocked write.
        if self._is_beating and _is_writable(_STDOUT):
            try:
                os.write(_STDOUT, b"\n")
            except OSError:
                raise CallerGone from None


def _leave(_number: int, _frame: object) -> None:
    raise CallerGone


def _is_readable(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))


def _is_writable(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    return bool(poller.poll(0))
