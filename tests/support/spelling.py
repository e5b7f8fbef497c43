"""Events and effects that stand for several, spelled out one by one. Owns what each of them stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core import effects, events
from libintercom.wire.answers import Delivered
from libintercom.wire.requests import Send

if TYPE_CHECKING:
    from collections.abc import Iterable

    from intercomd.core.effects import Effect
    from intercomd.core.events import Event

# The members of a message that a usual send has none of (``events.SendsReceived``).
_RARE = ("queue_mode", "thread_id", "keep_reply_ms", "reply_token", "guard", "reply_hint")


def spell_out(effect: Effect) -> list[Effect]:
    """The effects that one stands for."""
    match effect:
        case effects.DeliverAll(conn, tokens, sender, messages):
            pairs = zip(tokens, messages, strict=True)
            return [effects.Deliver(conn, token, sender, message) for token, message in pairs]
        case effects.Acknowledge(conn, message_ids):
            return [effects.Write(conn, Delivered(message_id=message_id)) for message_id in message_ids]
    return [effect]


def is_usual(event: Event) -> bool:
    """Whether a ``SendsReceived`` may stand for this event."""
    if not isinstance(event, events.FrameReceived) or not isinstance(event.frame, Send):
        return False
    message = event.frame.message
    return not message.passive and all(getattr(message, name) is None for name in _RARE)


def gather(happened: Iterable[Event]) -> list[Event]:
    """The same events, with a ``SendsReceived`` for usual sends of one connection behind one another."""
    gathered: list[Event] = []
    for event in happened:
        if not isinstance(event, events.FrameReceived) or not is_usual(event):
            gathered.append(event)
            continue
        frame = event.frame
        assert isinstance(frame, Send)
        sent = (frame.to, frame.message, event.message, event.size_bytes)
        before = gathered[-1] if gathered else None
        if isinstance(before, events.SendsReceived) and (before.conn, before.at_ms) == (event.conn, event.at_ms):
            before.sends.append(sent)
        else:
            gathered.append(events.SendsReceived(event.conn, event.at_ms, [sent]))
    return gathered
