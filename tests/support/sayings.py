"""What clients say, as JSON objects with only the interesting members to write down.

Owns plausible defaults for frames of the three public kinds of client and of ours. Does not own sending them.
"""

from __future__ import annotations

from typing import Any

# A JSON object.
Object = dict[str, Any]

# Any moment: a sender's clock is never compared with ours.
TIMESTAMP_MS = 1_700_000_000_000


def session(name: str | None = None, **members: object) -> Object:
    """The ``session`` of a native client; a member given as ``None`` is left out."""
    return _present({"cwd": "/home/pi", "model": "test-model", "name": name, **members})


def register(name: str | None = None, *, id: str | None = None, **members: object) -> Object:  # noqa: A002 - the member's name
    """A registration of a native client without extensions; ``session`` members beside ``name`` by keyword.

    ``ext``, ``observer``, ``topicFrames``, ``sessionId``, ``guardedDelivery`` and ``receiptReads`` are members of the
    frame.
    """
    names = ("ext", "observer", "topicFrames", "sessionId", "guardedDelivery", "receiptReads")
    outer: Object = {name: members.pop(name) for name in names if name in members}
    wanted = {"requestedId": id} if id is not None else {}
    return {"type": "register", "session": session(name, **members), **wanted, **outer}


def register_sibling(name: str, *, id: str | None = None, **members: object) -> Object:  # noqa: A002 - the member's name
    """A registration of the sibling client."""
    times = {"pid": 77, "startedAt": TIMESTAMP_MS, "lastActivity": TIMESTAMP_MS}
    wanted = {"sessionId": id} if id is not None else {}
    return {"type": "register", "session": session(name, **{**times, **members}), **wanted}


def message(id: str, text: str = "hello", **members: object) -> Object:  # noqa: A002 - the member's name
    return _present({"id": id, "timestamp": TIMESTAMP_MS, "content": {"text": text}, **members})


def send(to: str, id: str, text: str = "hello", **members: object) -> Object:  # noqa: A002 - the member's name
    """A plain send; message members by keyword."""
    return {"type": "send", "to": to, "message": message(id, text, **members)}


def ask(to: str, id: str, text: str = "well?", **members: object) -> Object:  # noqa: A002 - the member's name
    return send(to, id, text, expectsReply=True, **members)


def reply(to: str, id: str, reply_to: str, text: str = "so", **members: object) -> Object:  # noqa: A002 - the member's name
    return send(to, id, text, replyTo=reply_to, **members)


def replace(to: str, id: str, thread: str, text: str = "news", **members: object) -> Object:  # noqa: A002 - the member's name
    """A send that later ones of its thread replace while it is staged."""
    return send(to, id, text, delivery="queue", queueMode="replace", threadId=thread, **members)


def list_sessions(request_id: str = "l1", **members: object) -> Object:
    return {"type": "list", "requestId": request_id, **members}


def presence(**members: object) -> Object:
    return {"type": "presence", **members}


def stats(request_id: str = "s1") -> Object:
    return {"type": "stats", "requestId": request_id}


def _present(members: Object) -> Object:
    return {name: value for name, value in members.items() if value is not None}
