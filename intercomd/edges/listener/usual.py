"""Sends as nearly every client writes them, decoded in one step instead of five.

Owns recognizing and decoding them. Not to be recognized is no judgement: such a frame goes the long way (``codec``).
What is recognized obeys the same rules: the decoder proves each by type (``twins.USUAL``), so that nothing is left to
check but what concerns two members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from intercomd.edges.listener.twins import USUAL, twin
from libintercom.wire.messages import Message

if TYPE_CHECKING:
    from intercomd.core.events import Sent

# What stands before the target, and between its closing quote and the message.
_HEAD, _MIDDLE = b'{"type":"send","to":"', b'","message":{'
_TO, _TO_MESSAGE = len(_HEAD), len(_MIDDLE) - 1
_BACKSLASH, _DELETE, _BRACE = 0x5C, 0x7F, 0x7D
_decode = msgspec.json.Decoder(twin(Message, purity=USUAL)).decode


def decode_usual(payload: bytes) -> Sent | None:
    """Target, message, the exact bytes of the ``message`` member, size of the payload; None when it is not usual.

    Without escapes the first quote behind the head ends the target, and what stands from there to the frame's own
    brace is one JSON value or no usual frame: the decoder takes nothing behind it.
    """
    if not (payload.startswith(_HEAD) and payload.isascii() and payload[-1] == _BRACE):
        return None
    if _BACKSLASH in payload or _DELETE in payload:
        return None
    end = payload.find(b'"', _TO)
    if not payload.startswith(_MIDDLE, end):
        return None
    raw = payload[end + _TO_MESSAGE : -1]
    to = payload[_TO:end].decode("ascii")
    try:
        message = _decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    if message.queue_mode is not None or message.passive or not to.isprintable():
        return None
    if message.delivery == "passive" and message.expects_reply:
        return None
    return to, message, raw, len(payload)
