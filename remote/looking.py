"""The commands that change nothing: ``list``, ``check`` and ``inventory``.

Owns which sessions of this device are told to another one, and what a device says of itself.
"""

from __future__ import annotations

import os
import sys
import time

from libintercom.devices.settings import read_devices
from libintercom.devices.words import ID_PREFIX, MAX_LINE_BYTES
from libintercom.endpoint import CONNECTED, attempt
from libintercom.errors import IntercomError
from libintercom.paths import find_places
from libintercom.version import __version__
from libintercom.wire.frames import encode_json
from libintercom.wire.record import dump_record
from remote.joining import NoBroker, Refusal, join_for_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.wire.messages import Row

PROGRAM = "intercom-remote"
# The fields of a main that leave its device (seeds).
_TOLD = (
    "id", "name", "cwd", "model", "projectId", "status", "acceptsAsks", "pendingAsks", "lastSeen",
    "lastIntercomActivity",
)  # fmt: skip
# Native peer IDs start like this; a main whose ID another session has says its root.
_NATIVE_PREFIX = "pi-"
# For what stands around the rows of a list.
_MARGIN_BYTES = 64 * 1024


def list_mains(request: dict[str, Any]) -> dict[str, Any]:
    """The main sessions of this device; nobody without a broker. Raises Refusal."""
    try:
        with join_for_list(_origin(request)) as client:
            rows = client.list_sessions().rows
            own_id = client.session_id
    except NoBroker:
        return {"now": _now_ms(), "sessions": []}
    except IntercomError as failure:
        raise Refusal(str(failure)) from None
    mains = [_told(row) for row in rows if row.id != own_id and _is_main(row)]
    return _fit({"now": _now_ms(), "sessions": mains})


def check(request: dict[str, Any]) -> dict[str, Any]:
    """What answers here, and whether its broker runs."""
    try:
        with join_for_list(_origin(request)) as client:
            hello = client.broker
            broker: Any = {"running": True, "version": hello.version if hello is not None else None}
    except NoBroker:
        broker = None
    found = {
        "program": PROGRAM,
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "broker": broker,
        **_own_device(),
    }
    return {"check": found}


def inventory(request: dict[str, Any]) -> dict[str, Any]:
    """The endpoints that this user's sessions may be at; with ``connect`` also who is in the shared namespace."""
    places = find_places()
    old = os.path.join(places.agent_dir, "intercom", "broker.sock")
    found: dict[str, Any] = {
        "shared": {"path": places.socket, "state": _state(places.socket)},
        "old": [{"path": old, "agentDir": places.agent_dir, "state": _state(old)}],
        "peers": None,
        "cannotKnow": ["processes and their environments", "sessions at brokers of other agent directories"],
    }
    if request.get("connect") is True and found["shared"]["state"] == CONNECTED:
        found["peers"] = [row["id"] for row in list_mains(request)["sessions"]]
    return {"inventory": found}


def _origin(request: dict[str, Any]) -> str:
    origin = request.get("origin")
    if not isinstance(origin, str) or not origin:
        raise Refusal("Invalid request: origin is not a text.")
    return origin


def _is_main(row: Row) -> bool:
    """Whether a row is a session of its own: no child, no bridge, none of these commands."""
    is_native = row.id.startswith(_NATIVE_PREFIX) or row.root_session_id is not None
    return is_native and row.parent_session_id is None and not row.id.startswith(ID_PREFIX)


def _told(row: Row) -> dict[str, Any]:
    dumped = dump_record(row)
    return {name: dumped[name] for name in _TOLD if name in dumped}


def _fit(reply: dict[str, Any]) -> dict[str, Any]:
    """The same with so many rows as one line holds; the others are counted."""
    sessions, left = [], MAX_LINE_BYTES - _MARGIN_BYTES
    for told in reply["sessions"]:
        left -= len(encode_json(told)) + 1
        if left < 0:
            break
        sessions.append(told)
    omitted = len(reply["sessions"]) - len(sessions)
    return {**reply, "sessions": sessions, **({"omitted": omitted} if omitted else {})}


def _own_device() -> dict[str, Any]:
    try:
        return {"device": read_devices(find_places().session_settings).own or None}
    except IntercomError as failure:
        return {"device": None, "configuration": str(failure)}


def _state(path: str) -> str:
    found = attempt(path)
    if found.connection is not None:
        found.connection.close()
    return found.outcome


def _now_ms() -> int:
    return int(time.time() * 1000)
