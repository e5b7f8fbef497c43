"""`intercom-mcp` as its users run it: a server of its own behind the official package's client, over pipes.

Owns starting one and calling the tool. Every wait has a deadline. Does not own the broker behind it (``daemon``).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent

from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

# The protocol's package takes a second to load, and several when other programs keep both cores busy.
_START_DEADLINE_S = 4 * DEADLINE_S
PROGRAM = str(Path(sys.executable).with_name("intercom-mcp"))


@dataclass(frozen=True)
class Told:
    """What a call came to."""

    text: str
    facts: dict[str, Any] | None
    is_error: bool


class Agent:
    """One agent with the tool in its hands; ``name`` is what others call it."""

    def __init__(self, session: ClientSession, name: str) -> None:
        self._session, self.name = session, name

    @property
    def session(self) -> ClientSession:
        """The protocol's own end, for what is no call of the tool."""
        return self._session

    async def call(self, action: str, **arguments: Any) -> Told:
        """Call the tool and wait for the result."""
        called = self._session.call_tool("intercom", {"action": action, **arguments})
        result = await asyncio.wait_for(called, DEADLINE_S)
        (block,) = result.content
        assert isinstance(block, TextContent)
        return Told(block.text, result.structured_content, bool(result.is_error))

    async def await_text(self, expected: str, action: str, **arguments: Any) -> Told:
        """Call until the result's text holds ``expected``."""
        async with asyncio.timeout(DEADLINE_S):
            while expected not in (told := await self.call(action, **arguments)).text:
                pass
        return told


@contextlib.asynccontextmanager
async def agent(environment: Mapping[str, str], name: str, *words: str) -> AsyncIterator[Agent]:
    """A server under a name, initialised; it leaves at the end."""
    started = StdioServerParameters(command=PROGRAM, args=["--name", name, *words], env=dict(environment), cwd="/")
    async with stdio_client(started) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await asyncio.wait_for(session.initialize(), _START_DEADLINE_S)
        yield Agent(session, name)
