"""A question under way: asked, waited for, and the wait shown on a terminal.

Owns the event loop of `intercomctl ask` and its progress line. Does not own the command nor what it prints.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from intercomctl import joining, output

if TYPE_CHECKING:
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Answered
    from libintercom.profile import Profile

# How often the progress line moves.
_TICK_S = 1.0


def ask(
    profile: Profile, session_id: str | None, to: str, text: str, timeout_s: float, options: SendOptions
) -> Answered:
    """Join, ask, wait and leave; how it ended. An interrupted wait withdraws the question.

    Raises:
        IntercomError: the session could not join; nothing was sent.

    """
    return asyncio.run(_ask(profile, session_id, to, text, timeout_s, options))


async def _ask(
    profile: Profile, session_id: str | None, to: str, text: str, timeout_s: float, options: SendOptions
) -> Answered:
    client = await joining.speak_async(profile, session_id)
    progress = asyncio.create_task(_show_progress(to, timeout_s))
    try:
        return await client.ask(to, text, timeout_s=timeout_s, **options)
    finally:
        progress.cancel()
        output.show_progress("")
        await client.disconnect()


async def _show_progress(to: str, timeout_s: float) -> None:
    started = time.monotonic()
    while True:
        passed_s = time.monotonic() - started
        output.show_progress(f"asked {to}; waiting for the reply, {passed_s:.0f} s of {timeout_s:g} s")
        await asyncio.sleep(_TICK_S)
