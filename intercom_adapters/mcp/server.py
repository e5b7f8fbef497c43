"""The tool behind the Model Context Protocol: what is offered, how a call is answered, progress, cancellation.

Owns everything that touches the official ``mcp`` package. Does not own what a call does (``actions``).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Self

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from intercom_adapters.mcp import tool
from libintercom.printable import make_line
from libintercom.version import __version__

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from intercom_adapters.mcp.actions import Actions
    from intercom_adapters.mcp.results import Result
    from intercom_adapters.mcp.stdout import Stdout
    from libintercom.outcomes import Outcome

SERVER_NAME = "intercom"
# Hosts that give up on a silent call do so after a minute at the earliest, and count from the last progress.
PROGRESS_S = 5.0


class ToolServer:
    """One server for one agent."""

    def __init__(self, actions: Actions, stdout: Stdout) -> None:
        self._actions, self._stdout = actions, stdout
        self._server: Server[Any] = Server(
            SERVER_NAME,
            version=__version__,
            title=tool.TITLE,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def serve(self) -> None:
        """Answer calls until standard input ends."""
        # The package's types ask for one of its own files; it calls these two methods of it.
        async with stdio_server(stdout=self._stdout) as (incoming, outgoing):  # type: ignore[arg-type]
            await self._server.run(incoming, outgoing, self._server.create_initialization_options())

    async def _list_tools(
        self, _request: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[offered()])

    async def _call_tool(
        self, request: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name != tool.NAME:
            return _answer_unknown(params.name)
        arguments = params.arguments or {}
        async with _Progress(request, str(arguments.get("to", "")), self._actions.ask_timeout_s) as progress:
            result = await self._actions.run(arguments, progress.begin)
        if result.shown and request.request_id is not None:
            self._stdout.tell_written(request.request_id, lambda: self._actions.written(result.shown))
        return _answer(result)


class _Progress:
    """While an ask waits its caller hears so, when it asked for progress; the package drops it otherwise."""

    def __init__(self, request: ServerRequestContext[Any], to: str, timeout_s: float) -> None:
        self._request, self._to, self._timeout_s = request, make_line(to), timeout_s
        self._task: asyncio.Task[None] | None = None

    def begin(self, outcome: Outcome) -> None:
        """The question is out; say so from now on."""
        if outcome.is_accepted:
            self._task = asyncio.ensure_future(self._tell())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        began_s = time.monotonic()
        while True:
            passed_s = time.monotonic() - began_s
            text = f"asked {self._to}; waiting for the reply, {passed_s:.0f} s of {self._timeout_s:g} s"
            await self._request.session.report_progress(passed_s, self._timeout_s, text)
            await asyncio.sleep(PROGRESS_S)


def offered() -> types.Tool:
    """The one tool."""
    hints = types.ToolAnnotations(
        title=tool.TITLE, read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
    )
    return types.Tool(
        name=tool.NAME,
        title=tool.TITLE,
        description=tool.DESCRIPTION,
        input_schema=tool.INPUT_SCHEMA,
        annotations=hints,
    )


def _answer(result: Result) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        structured_content=result.facts,
        is_error=result.is_error,
    )


def _answer_unknown(name: str) -> types.CallToolResult:
    text = f'There is no tool "{make_line(name)}" here; there is {tool.NAME}.'
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
