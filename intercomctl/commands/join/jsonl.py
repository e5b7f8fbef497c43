"""A joined session's face towards a script: one action a line in, one event a line out.

Owns the events, and that every action is answered exactly once (an ask twice: ``sent``, then ``message`` or
``error``), whatever happens and in whatever order. Pure: what it says goes to the callable it is given. Does not own
carrying the actions out (``membership``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomctl import shapes
from intercomctl.commands.join.actions import ASK, BadLine, read_action
from libintercom.outcomes import DELIVERED, Outcome, unknown
from libintercom.wire.record import dump_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from intercomctl.commands.join.actions import Action
    from libintercom.inbound import AskEnded, Inbound, LetterDied
    from libintercom.outcomes import Listing
    from libintercom.session.aio import AsyncSession

# What became of the question, and how the wait for its reply ended.
_ASK_ANSWERS = 2


class JsonLines:
    """Reads actions and says events. ``emit`` prints the members of one event."""

    def __init__(self, emit: Callable[[Mapping[str, Any]], None]) -> None:
        self._emit = emit
        # How many answers each action still gets.
        self._owed: dict[Action, int] = {}
        self._has_ended = False

    def read(self, line: str) -> Action | None:
        """The action of a line; a bad line is answered at once and is no action."""
        try:
            action = read_action(line)
        except BadLine as bad:
            self._say("error", bad.request_id, error=bad.reason)
            return None
        self._owed[action] = _ASK_ANSWERS if action.kind == ASK else 1
        return action

    def refuse(self, reason: str) -> None:
        """A line could not be read."""
        self._say("error", None, error=reason)

    # ------------------------------------------------------------------ answers to actions

    def sent(self, action: Action, outcome: Outcome) -> None:
        """What became of a send, a reply, or the question of an ask."""
        if self._settle(action):
            self._say("sent", action.request_id, **shapes.outcome(outcome))

    def replied(self, action: Action, reply: Inbound) -> None:
        """The reply to an ask. It proves that the question arrived, if nobody has said so yet."""
        if self._owed.get(action) == _ASK_ANSWERS:
            self.sent(action, _proven(reply.message.reply_to or ""))
        if self._settle(action):
            self._say("message", action.request_id, **reply.raw)

    def listed(self, action: Action, _session: AsyncSession, listing: Listing) -> None:
        """The sessions there are."""
        if self._settle(action):
            self._say("sessions", action.request_id, **shapes.listing(listing))

    def told_pending(self, action: Action, views: Iterable[Mapping[str, Any]]) -> None:
        """The questions that wait for a reply of this session, oldest first."""
        if self._settle(action):
            self._say("pending", action.request_id, asks=[shapes.pending(view) for view in views])

    def changed(self, action: Action) -> None:
        """The presence is what the action said."""
        if self._settle(action):
            self._say("ok", action.request_id)

    def failed(self, action: Action, reason: str, ended_by: str = "") -> None:
        """An action could not be carried out, or an ask ended without a reply."""
        if self._owed.get(action) == _ASK_ANSWERS:
            self.sent(action, unknown(action.message.get("message_id") or "", reason))
        if self._settle(action):
            self._say("error", action.request_id, error=reason, **({"endedBy": ended_by} if ended_by else {}))

    # ------------------------------------------------------------------ what happens by itself

    def joined(self, session: AsyncSession) -> None:
        """The session is there; always the first event, and the first after ``disconnected``."""
        self._say(
            "registered",
            None,
            sessionId=session.session_id,
            name=session.profile.name,
            broker=shapes.broker(session.broker),
        )

    def arrived(self, inbound: Inbound) -> None:
        """A message that no ask of this session waited for."""
        self._say("message", None, **inbound.raw)

    def peer_left(self, session_id: str) -> None:
        """A session that this one exchanged messages with is gone."""
        self._say("peer_left", None, sessionId=session_id)

    def ask_retired(self, ended: AskEnded) -> None:
        """Nobody waits for an answer to a question any more."""
        self._say("ask_retired", None, **dump_record(ended))

    def letter_died(self, letter: LetterDied) -> None:
        """An accepted message can no longer arrive."""
        self._say("error", None, error="an accepted message can no longer arrive", **dump_record(letter))

    def disconnected(self, reason: str) -> None:
        """The broker is gone; the session joins again by itself."""
        self._say("disconnected", None, reason=reason)

    def end(self, reason: str) -> None:
        """Answer what is still owed; nothing is said after it."""
        for action in list(self._owed):
            self.failed(action, reason)
        self._has_ended = True

    def _settle(self, action: Action) -> bool:
        """Count one answer; False when the action has had all of its answers."""
        count = self._owed.pop(action, 0)
        if count > 1:
            self._owed[action] = count - 1
        return count > 0

    def _say(self, event: str, request_id: str | int | None, **members: Any) -> None:
        if self._has_ended:
            return
        mark = {} if request_id is None else {"requestId": request_id}
        self._emit({"event": event, **mark, **members})


def _proven(message_id: str) -> Outcome:
    return Outcome(outcome=DELIVERED, message_id=message_id, accepted=True, delivered=True, delivery_unknown=False)
