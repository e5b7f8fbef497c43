"""How long a call of the agents' tool takes, beyond the official package's own empty tool."""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bench import machine
from bench.brokers import ours, running
from bench.building import FOLDER
from bench.rows import Goal, Row, missing
from bench.spreads import Spread
from libintercom.launching import clean_environment

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from bench.brokers import Broker
    from bench.rounds import Bench

_FIGURE = "MCP: a list call through the server, beyond the package's own empty tool"
_GOAL = Goal(3.0, "ms")
# Calls of one round, of each server in turns; the first round does not count.
_CALLS, _QUICK_CALLS = 200, 50


def measure(bench: Bench) -> list[Row]:
    bench.say("calls of the tool through MCP")
    if find_spec("mcp") is None:
        return [missing(_FIGURE, _GOAL, "the package mcp is not installed (pip install 'intercomd[mcp]')")]
    with running(ours("--limits", "bench"), bench.split.broker) as broker:
        return [asyncio.run(_measure(bench, broker))]


async def _measure(bench: Bench, broker: Broker) -> Row:
    environment = {**clean_environment({}), "PI_INTERCOM_RUNTIME_DIR": broker.folder, "HOME": broker.folder}
    environment["XDG_STATE_HOME"] = f"{broker.folder}/state"
    program = os.path.join(os.path.dirname(sys.executable), "intercom-mcp")
    floor: list[float] = []
    found: list[float] = []
    async with contextlib.AsyncExitStack() as stack:
        with machine.pinned(bench.split.generator):
            empty = await _open(stack, [sys.executable, "-I", f"{FOLDER}/floors/empty_tool.py"], environment)
            tool = await _open(stack, [program, "--name", "bench-tool"], environment)
        for turn in range(bench.rounds + 1):
            emptied, listed = await _one_round(bench.choose(_CALLS, _QUICK_CALLS), empty, tool)
            if turn:
                floor.append(emptied)
                found.append(listed)
    beyond = Spread(tuple(mine - theirs for mine, theirs in zip(found, floor, strict=True)))
    note = f"{Spread(tuple(found)).text('ms')} against {Spread(tuple(floor)).text('ms')}"
    return Row(_FIGURE, _GOAL, beyond, "ms", note)


async def _open(
    stack: contextlib.AsyncExitStack, command: list[str], environment: dict[str, str]
) -> ClientSession:
    # Imported here: the package takes half a second, and every other figure does without it.
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    started = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    incoming, outgoing = await stack.enter_async_context(stdio_client(started))
    session = await stack.enter_async_context(ClientSession(incoming, outgoing))
    await session.initialize()
    return session


async def _one_round(calls: int, empty: ClientSession, tool: ClientSession) -> tuple[float, float]:
    """The median milliseconds of both, call by call in turns."""
    floor: list[float] = []
    found: list[float] = []
    for _call in range(calls):
        floor.append(await _time(empty, "empty", {}))
        found.append(await _time(tool, "intercom", {"action": "list"}))
    return statistics.median(floor), statistics.median(found)


async def _time(session: ClientSession, name: str, arguments: dict[str, str]) -> float:
    began_s = time.perf_counter()
    await session.call_tool(name, arguments)
    return 1000 * (time.perf_counter() - began_s)
