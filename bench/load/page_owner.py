"""The other side of a `last`: a session whose response is read, and a plain client that messages reach.

Usage: ``python page_owner.py OWNER RECEIVER UNITS``, the two names and the length of the response. Says ``joined``,
and leaves at the end of its stdin.
"""

from __future__ import annotations

import asyncio
import sys

from libintercom.aio import AsyncClient
from libintercom.profile import Profile
from libintercom.session.aio import AsyncSession

_WORDS = "a completed response is prose, and a reader takes it page by page. "


async def main(owner_name: str, receiver_name: str, units: int) -> None:
    receiving = await AsyncClient.join(_profile(receiver_name), spawn=False)
    reading = asyncio.create_task(_read(receiving))
    async with await AsyncSession.join(_profile(owner_name), native_id=owner_name, spawn=False) as owner:
        owner.record_response((_WORDS * (units // len(_WORDS) + 1))[:units])
        print("joined", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await receiving.disconnect()
    await reading


async def _read(client: AsyncClient) -> None:
    async for _event in client.events():
        pass


def _profile(name: str) -> Profile:
    return Profile(cwd="/", model="bench", name=name)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
