"""A floor: what the official MCP package takes for a tool that does nothing.

One tool, one empty text, standard input and output. Usage: ``python empty_tool.py``, started by an MCP client.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

NAME = "empty"


async def list_tools(
    _request: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=NAME, input_schema={"type": "object"})])


async def call_tool(_request: ServerRequestContext[Any], _params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text="")])


async def main() -> None:
    server = Server("floor", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
