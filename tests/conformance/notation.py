"""Short forms of frames, so that a conversation reads in one line a frame.

Owns the short forms. What a client says: ``{"send": to, "id": …, "text"?: …, other members of the message}``, ``ask``
(the same), ``list``, ``health``, ``stats``, ``letters`` (a request id), ``presence`` (its members), ``cancel`` (an
ask), ``take_back`` (a message), ``read`` (a request id; a receipt's with a messageId), ``respond`` (a token),
``park``, ``unpark``, ``woke`` (a child's ID), ``fetch``, ``ack`` (a kept ask), ``register`` (kind, id, session) and
``"unregister"``. What it receives: ``delivered``, ``queued``, ``failed`` (a message id), ``message`` (its id,
``from``: a connection), ``left`` (a connection), ``retired``, ``dead`` (a message id), ``sessions`` (a request id,
``rows``: connections in order), ``parked``, ``wakes`` (a child's ID), ``fetched`` (a state), ``question`` (what its
token is called from now on), ``result`` (a request id, ``code``: it failed so). Anything else is a frame as it is.
"""

from __future__ import annotations

from typing import Any

# What a connection registers as, by the word a vector uses: members of the frame, members of the session.
_KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "native": ({}, {}),
    "topics": ({"topicFrames": True}, {}),
    "ext": ({"ext": 1}, {}),
    "observer": ({"observer": 1}, {}),
    "guarded": ({"guardedDelivery": 1}, {}),
    "reader": ({"ext": 1, "receiptReads": 1}, {}),
    "sibling": ({}, {"pid": 5, "startedAt": 6, "lastActivity": 7}),
}
_REQUESTS = {"list": "list", "health": "health", "stats": "stats", "letters": "dead_letters"}
_READS = {"read": ("read", "requestId"), "respond": ("read_response", "token")}
_ABOUT_CHILDREN = {"park": "park", "unpark": "unpark", "woke": "wake_outcome"}
_ABOUT_REPLIES = {"fetch": "fetch_reply", "ack": "ack_reply"}
_CANCELS = {"cancel": "cancel_ask", "take_back": "cancel_message"}


def registration(conn: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The ``register`` frame of a connection described by kind (``as``), id, members of session and frame."""
    outer, inner = _KINDS[spec.get("as", "native")]
    session = {"cwd": "/w", "model": "m", "name": conn, **inner, **spec.get("session", {})}
    id_member = "sessionId" if spec.get("as") == "sibling" else "requestedId"
    wanted = {id_member: spec.get("id", f"session-{conn}")}
    return {"type": "register", "session": session, **wanted, **outer, **spec.get("frame", {})}


def said(frame: Any, conn: str) -> Any:
    """The frame that a short form stands for, said on ``conn``."""
    if frame == "unregister":
        return {"type": "unregister"}
    if "register" in frame:
        return registration(conn, frame["register"])
    if "presence" in frame:
        return {"type": "presence", **frame["presence"]}
    for word, kind in _REQUESTS.items():
        if word in frame:
            return {"type": kind, "requestId": frame[word], **_without(frame, word)}
    for word, (kind, member) in _READS.items():
        if word in frame:
            rest = _without(frame, word)
            return {"type": kind, member: frame[word], "kind": _kind_of_read(rest), **rest}
    return _said_about_message(frame)


def _said_about_message(frame: Any) -> Any:
    for word, kind in _ABOUT_CHILDREN.items():
        if word in frame:
            return {"type": kind, "childId": frame[word], **_without(frame, word)}
    for word, kind in _ABOUT_REPLIES.items():
        if word in frame:
            request = {"requestId": "f"} if word == "fetch" else {}
            return {"type": kind, "messageId": frame[word], **request, **_without(frame, word)}
    for word, kind in _CANCELS.items():
        if word in frame:
            return {"type": kind, "messageId": frame[word]}
    for word in ("send", "ask"):
        if word in frame:
            return _send(word, dict(frame))
    return frame


def _without(frame: dict[str, Any], word: str) -> dict[str, Any]:
    return {name: member for name, member in frame.items() if name != word}


def _kind_of_read(members: dict[str, Any]) -> str:
    return "receipt" if {"messageId", "receipt"} & members.keys() else "last"


def _send(word: str, frame: dict[str, Any]) -> dict[str, Any]:
    to, text = frame.pop(word), frame.pop("text", "t")
    asks = {"expectsReply": True} if word == "ask" else {}
    message = {"timestamp": 1, "content": {"text": text}, **asks, **frame}
    return {"type": "send", "to": to, "message": message}


def received(pattern: Any) -> Any:
    """The pattern that a short form stands for."""
    if not isinstance(pattern, dict):
        return pattern
    for word, expand in _RECEIVED.items():
        if word in pattern and "type" not in pattern:
            rest = {name: member for name, member in pattern.items() if name != word}
            return expand(pattern[word], rest)
    return pattern


def _delivered(message_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "delivered", "messageId": message_id, **rest}


def _queued(message_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "delivery_queued", "messageId": message_id, "reason": "<string>", **rest}


def _failed(message_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    known = {"reason": "<string>", "retryable": "<any>", "outcomeKnown": True}
    return {"type": "delivery_failed", "messageId": message_id, **known, **rest}


def _message(message_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    sender = {"id": f"<{rest.pop('from')}>", "...": True}
    return {"type": "message", "from": sender, "message": {"id": message_id, **rest, "...": True}}


def _left(conn: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "session_left", "sessionId": f"<{conn}>", **rest}


def _retired(message_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "ask_retired", "messageId": message_id, "askerId": f"<{rest['by']}>", "reason": rest["reason"]}


def _dead(message_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    recipient = f"<{rest['to']}>"
    letter = {"messageId": message_id, "recipientId": recipient, "reason": rest["reason"], "atMs": "<number>"}
    return {"type": "dead_letter", **letter}


def _sessions(request_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    rows = [{"id": f"<{conn}>", "...": True} for conn in rest.pop("rows")]
    return {"type": "sessions", "requestId": request_id, "sessions": rows, **rest}


def _parked(child: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "park_failed" if "code" in rest else "parked", "childId": child, **rest}


def _wakes(child: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "wake_request", "childId": child, **rest}


def _fetched(state: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "fetched_reply", "requestId": "f", "state": state, **rest}


def _question(token: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": "read_request", "token": f"<as:{token}>", "kind": _kind_of_read(rest), **rest}


def _result(request_id: str, rest: dict[str, Any]) -> dict[str, Any]:
    code = rest.pop("code", None)
    told = {} if code is None else {"error": {"code": code, "reason": rest.pop("reason", "<string>")}}
    peer = {"peerId": f"<{rest.pop('by')}>"} if "by" in rest else {}
    return {"type": "read_result", "requestId": request_id, "kind": _kind_of_read(rest), **peer, **rest, **told}


_RECEIVED = {
    "delivered": _delivered,
    "queued": _queued,
    "failed": _failed,
    "message": _message,
    "left": _left,
    "retired": _retired,
    "dead": _dead,
    "sessions": _sessions,
    "parked": _parked,
    "wakes": _wakes,
    "fetched": _fetched,
    "question": _question,
    "result": _result,
}
