"""A floor: what a bare asyncio.Protocol with the standard library's json costs, and nothing around it.

Speaks register, list and send. Checks nothing, limits nothing, buffers without bound and writes each frame as it
comes: the obvious first broker in Python. Usage: ``python echo.py <socket path>``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, cast

# The length before each payload.
_HEADER_BYTES = 4
# One frame's payload at most; a list is cut below it, with room for the members around the rows.
_LIST_BYTES = 1024 * 1024 - 1024


class Peer(asyncio.Protocol):
    """One connection. ``roster`` is shared: peer ID -> peer."""

    def __init__(self, roster: dict[str, Peer]) -> None:
        self.roster = roster
        self.received = b""
        self.row: dict[str, Any] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        self.roster.pop(self.row.get("id", ""), None)

    def data_received(self, received: bytes) -> None:
        self.received += received
        start, end = 0, len(self.received)
        while end - start >= _HEADER_BYTES:
            length = int.from_bytes(self.received[start : start + 4], "big")
            if end - start - 4 < length:
                break
            self.hear(json.loads(self.received[start + 4 : start + 4 + length]))
            start += 4 + length
        self.received = self.received[start:]

    def say(self, frame: dict[str, Any]) -> None:
        payload = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
        self.transport.write(len(payload).to_bytes(4, "big") + payload)

    def hear(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "send":
            self.forward(frame["to"], frame["message"])
        elif kind == "list":
            self.list(frame["requestId"])
        elif kind == "register":
            self.row = {"id": frame["requestedId"], **frame["session"]}
            self.roster[self.row["id"]] = self
            self.say({"type": "registered", "sessionId": self.row["id"]})

    def forward(self, to: str, message: dict[str, Any]) -> None:
        target = self.roster.get(to)
        if target is None:
            self.say({"type": "delivery_failed", "messageId": message["id"], "reason": "Session not found"})
            return
        target.say({"type": "message", "from": self.row, "message": message})
        self.say({"type": "delivered", "messageId": message["id"]})

    def list(self, request_id: str) -> None:
        rows = [peer.row for peer in self.roster.values()]
        # Rows of one run are of one size, so counting a frame's rows is enough.
        step = max(1, _LIST_BYTES // len(json.dumps(rows[0])))
        for first in range(0, len(rows), step):
            more = first + step < len(rows)
            part = rows[first : first + step]
            self.say({"type": "sessions", "requestId": request_id, "sessions": part, "more": more})


async def serve(path: str) -> None:
    roster: dict[str, Peer] = {}
    server = await asyncio.get_running_loop().create_unix_server(lambda: Peer(roster), path, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
