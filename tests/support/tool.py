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

from libintercom.identity import make_uuid
from libintercom.paths import find_places
from libintercom.profile import profile_from_environment
from libintercom.session.aio import AsyncSession
from libintercom.session.host import QueueHost
from libintercom.wire.messages import Host as Abilities
from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from tests.support.ctl import Ctl

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


def run(conversation: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A test's conversation on an event loop of its own."""
    asyncio.run(conversation())


class Native(QueueHost):
    """A host that can do everything, as those of the seeds' lineage can."""

    @property
    def abilities(self) -> Abilities:
        return Abilities(steer=True, wake=True, turn_end=True)


@contextlib.asynccontextmanager
async def program(ctl: Ctl, name: str, host: QueueHost | None = None) -> AsyncIterator[AsyncSession]:
    """A session in this program, for what an agent's peer may be."""
    native_id = make_uuid()
    profile = profile_from_environment(name=name, native_id=native_id, environ={}, cwd="/")
    places = find_places(ctl.environment)
    session = await AsyncSession.join(
        profile, native_id=native_id, host=host, places=places, spawn=False, journal=False
    )
    async with session:
        yield session


def two(ctl: Ctl, conversation: Callable[[Agent, Agent], Awaitable[None]], *words: str) -> None:
    """A conversation of two agents; ``words`` are options of the first one's server."""

    async def talk() -> None:
        async with agent(ctl.environment, "asker", *words) as one, agent(ctl.environment, "reviewer") as other:
            await conversation(one, other)

    run(talk)
