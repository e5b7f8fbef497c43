"""Questions that wait for this session: opened, answered, expired, retired; each fact on record. Pure.

Owns what feeds the tracker and the two checkpoints around a reply. Does not own where a question's text is
(``handovers``).
"""

from __future__ import annotations

from functools import partial

from libintercom.session import entries, steps
from libintercom.session.tracker import Tracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from libintercom.inbound import Inbound
    from libintercom.session.backlog import Backlog
    from libintercom.session.desk import Desk
    from libintercom.session.entries import Standing

# The broker's word for a wait that ran out (wire.md 9.6); any other end of a wait retires its question.
_TIMEOUT = "timeout"
_NO_LONGER_OPEN = "nobody waits for a reply to it any more"


class Answers:
    """``tracker`` is what callers read."""

    def __init__(self, desk: Desk, backlog: Backlog) -> None:
        self._desk, self._backlog = desk, backlog
        self.tracker = Tracker()
        # Ended before their first checkpoint settled: they are never opened, should that one fail and they come again.
        self._ended_early: set[str] = set()
        # Replies between their first checkpoint and the broker's word; the question may end meanwhile.
        self._leaving: set[str] = set()
        # Questions that this turn read; only these can be retired with it.
        self._read: set[str] = set()

    def open(self, inbound: Inbound, received_at_ms: int) -> None:
        """An admitted message: its question waits from now on, if it is one."""
        message_id = inbound.message.id
        if message_id in self._ended_early:
            return
        evicted = self.tracker.open(inbound, received_at_ms)
        if evicted:
            self._record(evicted, entries.RETIRED, reason=steps.EVICTED)
            self._desk.ask(steps.Report(message_id=evicted, code=steps.EVICTED, reason="too many questions wait"))

    def reopen(self, standing: Standing, inbound: Inbound, received_at_ms: int) -> None:
        """An open question of an earlier run. A reply that was about to leave then may have left."""
        self.open(inbound, received_at_ms)
        for reply_id in standing.answers:
            self.tracker.doubt_reply(standing.message_id, reply_id)
        if standing.kind in (entries.PLACED, entries.CONSUMED):
            self.tracker.show(standing.message_id)

    def is_open(self, message_id: str) -> bool:
        return message_id in self.tracker

    def has_leaving(self) -> bool:
        """Whether a reply of ours is under way."""
        return bool(self._leaving)

    def show(self, message_id: str) -> None:
        self.tracker.show(message_id)

    def end_early(self, message_id: str) -> None:
        """A question that is over before it is admitted."""
        self._ended_early.add(message_id)

    def close(self, message_id: str) -> None:
        """Its text was discarded or replaced, and that is on record."""
        self.tracker.close(message_id)

    # ---------------------------------------------------------------- ends that others bring

    def end(self, message_id: str, reason: str) -> None:
        """The broker says that nobody waits any more."""
        item = self._backlog.find(message_id)
        if item is not None and not item.is_admitted and item.inbound.message.is_ask:
            self.end_early(message_id)
        elif not self.tracker.close(message_id):
            return
        self._record(message_id, entries.EXPIRED if reason == _TIMEOUT else entries.RETIRED, reason=reason)

    def leave(self, session_id: str) -> None:
        """A session is gone, and so is everybody who waited in it."""
        waiting = [ask.message_id for ask in self.tracker.asks if ask.sender_id == session_id]
        coming = [item.message_id for item in self._backlog if item.inbound.row.id == session_id]
        for message_id in dict.fromkeys(waiting + coming):
            self.end(message_id, "asker_left")

    # ---------------------------------------------------------------- turns

    def start_turn(self) -> None:
        self._read.clear()
        self.tracker.start_turn()

    def consumed(self, message_ids: Iterable[str]) -> None:
        self._read.update(message_id for message_id in message_ids if message_id in self.tracker)

    def end_turn(self, *, is_ok: bool) -> None:
        """A failed turn retires what it had read, and nothing that still waits to be read."""
        read, self._read = self._read, set()
        self.tracker.end_turn()
        if not is_ok:
            for ask in self.tracker.asks:
                # A reply that is on its way speaks for itself.
                if ask.message_id in read and not ask.is_leaving:
                    self.end(ask.message_id, "turn_failed")

    # ---------------------------------------------------------------- our replies

    def begin_reply(self, ask_id: str, reply_id: str) -> None:
        """Put on record that a reply leaves, then let it."""
        if not self.tracker.begin_reply(ask_id, reply_id):
            self._refuse(ask_id, reply_id, _NO_LONGER_OPEN)
            return
        self._leaving.add(reply_id)
        told = [self._desk.entry(ask_id, entries.ANSWERING, by=reply_id)]
        self._desk.checkpoint(told, partial(self._may_leave, ask_id, reply_id), partial(self._keep, ask_id, reply_id))

    def end_reply(self, ask_id: str, reply_id: str, is_accepted: bool | None) -> None:
        """What became of it."""
        self._leaving.discard(reply_id)
        if is_accepted is None:
            self.tracker.doubt_reply(ask_id, reply_id)
        elif is_accepted:
            self.tracker.close(ask_id)
            self._record(ask_id, entries.REPLIED, by=reply_id)
        else:
            self.tracker.take_back_reply(ask_id, reply_id)
            self._record(ask_id, entries.UNANSWERED, by=reply_id)

    def _may_leave(self, ask_id: str, reply_id: str) -> None:
        if ask_id in self.tracker:
            self._desk.ask(steps.SendReply(ask_id=ask_id, reply_id=reply_id))
        else:
            self._refuse(ask_id, reply_id, _NO_LONGER_OPEN)

    def _keep(self, ask_id: str, reply_id: str, reason: str) -> None:
        self.tracker.take_back_reply(ask_id, reply_id)
        self._refuse(ask_id, reply_id, f"the journal cannot record it: {reason}")

    def _refuse(self, ask_id: str, reply_id: str, reason: str) -> None:
        self._leaving.discard(reply_id)
        self._desk.ask(steps.RefuseReply(ask_id=ask_id, reply_id=reply_id, reason=reason))

    def _record(self, message_id: str, kind: str, **body: str) -> None:
        told = [self._desk.entry(message_id, kind, **body)]
        self._desk.checkpoint(told, self._recorded, partial(self._unrecorded, message_id))

    def _recorded(self) -> None:
        """Nothing waits for it."""

    def _unrecorded(self, message_id: str, reason: str) -> None:
        self._desk.ask(steps.Report(message_id=message_id, code=steps.UNRECORDED, reason=reason))
