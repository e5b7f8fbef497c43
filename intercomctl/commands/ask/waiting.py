"""A question under way: asked, waited for, and the wait shown on a terminal.

Owns the event loop of `intercomctl ask` and its progress line. Does not own the command nor what it prints.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intercomctl import joining, keeping, output
from libintercom.errors import IntercomError
from libintercom.identity import make_uuid
from libintercom.outcomes import UNKNOWN, Answered, not_sent, unknown

if TYPE_CHECKING:
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Outcome
    from libintercom.profile import Profile

# How often the progress line moves.
_TICK_S = 1.0
# How an interrupted ask ends, and the code of one that never left.
_CANCELLED = "cancelled"


@dataclass(frozen=True)
class Asked:
    """A question: whom, what, how long it waits, and for how long a late reply is kept (0: the question is withdrawn).

    ``options`` are the message's, its ID among them.
    """

    to: str
    text: str
    timeout_s: float
    keep_s: float
    options: SendOptions

    @property
    def message_id(self) -> str:
        return self.options["message_id"] or ""


def ask(profile: Profile, session_id: str | None, asked: Asked) -> Answered:
    """Join, ask, wait and leave; how it ended. With a ``reply_token`` a late reply is kept.

    Raises:
        IntercomError: the session could not join, or the question not be kept; nothing was sent.
        KeyboardInterrupt: a second interrupt, while the first one's end was still told.

    """
    try:
        answered = asyncio.run(_ask(profile, session_id, asked))
    except IntercomError:
        keeping.drop(asked.message_id)
        raise
    if answered.reply is not None or not _may_be_answered(answered.outcome):
        keeping.drop(asked.message_id)
        return answered.replace(reply_token=None) if answered.reply_token else answered
    return answered


def _may_be_answered(outcome: Outcome) -> bool:
    return outcome.is_accepted or outcome.outcome == UNKNOWN


async def _ask(profile: Profile, session_id: str | None, asked: Asked) -> Answered:
    """What is known when an interrupt cancels this task is the result; it never hides a word that had come."""
    message_id = asked.message_id
    known = [not_sent(message_id, _CANCELLED, "interrupted before the question was sent")]
    try:
        client = await joining.speak_async(profile, session_id)
    except asyncio.CancelledError:
        return Answered(outcome=known[-1], ended_by=_CANCELLED)
    keeping_options = _keep(asked, has_ext=client.has_ext)
    token = {"reply_token": keeping_options["reply_token"]} if keeping_options else {}
    known.append(unknown(message_id, "interrupted before an acknowledgement came"))
    progress: list[asyncio.Task[None]] = []
    to, timeout_s = asked.to, asked.timeout_s

    def tell(outcome: Outcome) -> None:
        known.append(outcome)
        if outcome.is_accepted:
            _draw(to, 0, timeout_s)
            progress.append(asyncio.create_task(_show_progress(to, timeout_s)))

    try:
        answered = await client.ask(
            to, asked.text, timeout_s=timeout_s, on_outcome=tell, **asked.options, **keeping_options
        )
    except asyncio.CancelledError:
        answered = Answered(outcome=known[-1], ended_by=_CANCELLED, **token)
    finally:
        for task in progress:
            task.cancel()
        output.show_progress("")
        # The broker sees the end of the connection by itself, should nobody wait for its goodbye.
        with contextlib.suppress(asyncio.CancelledError):
            await client.disconnect()
    return answered


def _keep(asked: Asked, *, has_ext: bool) -> dict[str, Any]:
    """Write the question down, so that its reply can be fetched whatever happens to this program; the ask's options."""
    if not asked.keep_s or not has_ext:
        return {}
    token = make_uuid().replace("-", "")
    keeping.keep(asked.message_id, token, asked.to, int(time.time() * 1000), asked.keep_s)
    return {"keep_reply_s": asked.keep_s, "reply_token": token}


async def _show_progress(to: str, timeout_s: float) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(_TICK_S)
        _draw(to, time.monotonic() - started, timeout_s)


def _draw(to: str, passed_s: float, timeout_s: float) -> None:
    output.show_progress(f"asked {to}; waiting for the reply, {passed_s:.0f} s of {timeout_s:g} s")
