"""A question under way: asked, waited for, and the wait shown on a terminal.

Owns the event loop of `intercomctl ask` and its progress line. Does not own the command nor what it prints.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from intercomctl import joining, output
from libintercom.outcomes import Answered, not_sent, unknown

if TYPE_CHECKING:
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Outcome
    from libintercom.profile import Profile

# How often the progress line moves.
_TICK_S = 1.0
# How an interrupted ask ends, and the code of one that never left.
_CANCELLED = "cancelled"


def ask(
    profile: Profile, session_id: str | None, to: str, text: str, timeout_s: float, options: SendOptions
) -> Answered:
    """Join, ask, wait and leave; how it ended. An interrupted wait withdraws the question.

    Raises:
        IntercomError: the session could not join; nothing was sent.
        KeyboardInterrupt: a second interrupt, while the first one's end was still told.

    """
    return asyncio.run(_ask(profile, session_id, to, text, timeout_s, options))


async def _ask(
    profile: Profile, session_id: str | None, to: str, text: str, timeout_s: float, options: SendOptions
) -> Answered:
    """What is known when an interrupt cancels this task is the result; it never hides a word that had come."""
    message_id = options["message_id"] or ""
    known = [not_sent(message_id, _CANCELLED, "interrupted before the question was sent")]
    try:
        client = await joining.speak_async(profile, session_id)
    except asyncio.CancelledError:
        return Answered(outcome=known[-1], ended_by=_CANCELLED)
    known.append(unknown(message_id, "interrupted before an acknowledgement came"))
    progress: list[asyncio.Task[None]] = []

    def tell(outcome: Outcome) -> None:
        known.append(outcome)
        if outcome.is_accepted:
            _draw(to, 0, timeout_s)
            progress.append(asyncio.create_task(_show_progress(to, timeout_s)))

    try:
        answered = await client.ask(to, text, timeout_s=timeout_s, on_outcome=tell, **options)
    except asyncio.CancelledError:
        answered = Answered(outcome=known[-1], ended_by=_CANCELLED)
    finally:
        for task in progress:
            task.cancel()
        output.show_progress("")
        # The broker sees the end of the connection by itself, should nobody wait for its goodbye.
        with contextlib.suppress(asyncio.CancelledError):
            await client.disconnect()
    return answered


async def _show_progress(to: str, timeout_s: float) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(_TICK_S)
        _draw(to, time.monotonic() - started, timeout_s)


def _draw(to: str, passed_s: float, timeout_s: float) -> None:
    output.show_progress(f"asked {to}; waiting for the reply, {passed_s:.0f} s of {timeout_s:g} s")
