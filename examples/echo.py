"""The smallest agent: it joins the broker, answers every question with its own text, and leaves at the end of input.

Usage: echo.py NAME (stop it with Ctrl-C, or by closing its standard input)
"""

from __future__ import annotations

import asyncio
import sys

from libintercom import AsyncClient, Inbound, profile_from_environment


async def answer_questions(client: AsyncClient) -> None:
    async for event in client.events():
        if isinstance(event, Inbound) and event.message.is_ask:
            await client.reply(event, f"You asked: {event.message.content.text}")


async def main(name: str) -> None:
    profile = profile_from_environment(name=name, status="idle", accepts_asks=True)
    async with await AsyncClient.join(profile) as client:
        answering = asyncio.create_task(answer_questions(client))
        print(f"{name} joined as {client.session_id}", flush=True)
        ending = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await asyncio.wait([answering, asyncio.ensure_future(ending)], return_when=asyncio.FIRST_COMPLETED)


asyncio.run(main(sys.argv[1]))
