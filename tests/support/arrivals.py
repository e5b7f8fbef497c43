"""Messages as a session gets them, and host inputs made of them, in a line.

Owns their shape for tests of a session's parts. Does not own sending any.
"""

from __future__ import annotations

from typing import Any

from libintercom.inbound import Inbound
from libintercom.session.host import HostInput
from libintercom.wire.messages import Message, Row
from libintercom.wire.record import parse_record


def inbound(message_id: str = "m", text: str = "hello", *, sender: str = "pi-peer", **members: Any) -> Inbound:
    """A message; ``members`` are further wire members of it."""
    message = {"id": message_id, "timestamp": 1, "content": {"text": text}, **members}
    row = {"id": sender, "cwd": "/work", "model": "m", "name": "peer"}
    return Inbound(
        row=parse_record(Row, row), message=parse_record(Message, message), raw={"from": row, "message": message}
    )


def ask(message_id: str = "q", **members: Any) -> Inbound:
    """A question."""
    return inbound(message_id, "why?", expectsReply=True, **members)


def host_input(message_id: str = "m") -> HostInput:
    """The same as a host gets it."""
    return HostInput(
        message_id=message_id,
        inbound=inbound(message_id),
        delivery="steer",
        is_ask_open=False,
        received_at_ms=1,
        text_sha256="0" * 64,
        text="framed",
        placed_sha256="0" * 64,
    )
