"""Where a connection to a device may fail, and how: each as a script of the ssh server.

Owns the steps of one request and the two ways in which it ends there. Does not own what is then true (``matrix``).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.ssh_server import Cut

if TYPE_CHECKING:
    from tests.support.ssh_server import Login

# The steps in their order. Before ``marker`` nothing of a request may have been written.
STEPS = (
    "login",  # logged in, and nothing was run
    "noise",  # only a notice came
    "marker",  # the command began, the request stays at the server
    "half",  # the command has a part of the request
    "forwarded",  # the command has the request
    "answer",  # the command's first answer stays at the server
    "answered",  # the first answer came; what follows does not
    "reply",  # all but the reply came
)
CUT, STALL = "cut", "stall"
WAYS = (CUT, STALL)
# A notice as a login may print it.
NOTICE = b"Welcome to this machine\nlast login yesterday\n"
# From the last bytes that pass to the cut: an aborted connection discards what its own buffers still hold.
_FLUSH_S = 0.1


class Fault:
    """One step and one way, as a script. ``is_reached`` says that it came to it."""

    def __init__(self, step: str, way: str) -> None:
        self.step, self.way = step, way
        self.is_reached = False
        self._chunks = 0
        self._login: Login

    def __repr__(self) -> str:
        return f"{self.way} at {self.step}"

    async def __call__(self, login: Login) -> int:
        self._login = login
        if self.step in {"login", "noise"}:
            if self.step == "noise":
                await login.say(NOTICE)
            await self._happen()
        return await login.run(inward=self._inward, outward=self._outward)

    async def _happen(self) -> None:
        self.is_reached = True
        if self.way == CUT:
            await asyncio.sleep(_FLUSH_S)
            raise Cut
        await self._login.stall()

    async def _inward(self, chunk: bytes) -> bytes:
        self._chunks += 1
        if self.step == "marker" or (self.step == "half" and self._chunks > 1):
            await self._happen()
        if self.step == "forwarded" and chunk.endswith(b"\n"):
            self.is_reached = True
            if self.way == CUT:
                connection = self._login.process.channel.get_connection()
                asyncio.get_running_loop().call_later(_FLUSH_S, connection.abort)
        return chunk

    async def _outward(self, chunk: bytes) -> bytes:
        """Hold back from a certain line on: the first answer, what follows it, or the reply."""
        if self.step == "forwarded" and self.is_reached:
            await self._login.stall()
        if self.step == "answer" and b"{" in chunk:
            await self._happen()
        if self.step == "answered" and b"{" in chunk:
            await self._pass(chunk, chunk.find(b"\n", chunk.find(b"{")) + 1)
        if self.step == "reply" and b'"reply"' in chunk:
            await self._pass(chunk, chunk.rfind(b"\n", 0, chunk.find(b'"reply"')) + 1)
        return chunk

    async def _pass(self, chunk: bytes, length: int) -> None:
        await self._login.say(chunk[:length])
        await self._happen()
