"""The inbox: what becomes of everything that reaches a session (sessions.md section 1). Pure.

Owns which part answers which happening, the generation, and shutdown. Does not own the journal, the host, the clock or
the connection: it asks for steps and is told what came of them.

Driven so, one ``Inbox`` per generation, by one thread at a time:

1. ``handle(Recovered(journal.unfinished()), …)`` first; what arrives before is admitted and offered after recovery.
2. For each message: look its ID up in the journal, check its guard (``guards``; refused = stop here), then
   ``handle(Arrived(inbound, standing), at_ms, generation)``.
3. Carry out the returned steps in order. ``Checkpoint``: append, and when it settles
   ``handle(Checkpointed(step.entry_ids))`` or ``CheckpointFailed``; without a journal say ``Checkpointed`` at once.
   ``Place``: call the host, then ``HostPlaced``, ``HostRefused`` or ``HostUnsure`` for every message of the batch.
   ``FindPlacement``: ask the host, then say what it answered (``PlacementFound``, ``…Absent``, ``…Unknown``).
4. Replies: ``tracker.resolve``, ``ReplyBegan``, and on ``SendReply`` send, then ``ReplyEnded``.
5. ``ShutdownBegan``, and when ``Detach`` came, let go. After ``ContextInvalidated`` nothing is stored or placed.
6. Give ``PeerLeft`` only where the broker does not tell ``AskEnded`` (no ``ext:1``): a kept ask outlives its asker.

``at_ms`` is Unix milliseconds; ``generation`` the incarnation a callback was made for: another one's are refused.
"""

from __future__ import annotations

from libintercom.inbound import AskEnded, PeerLeft
from libintercom.session import happenings, states, steps
from libintercom.session.admissions import Admissions
from libintercom.session.answers import Answers
from libintercom.session.backlog import IN_FLIGHT, STAGED, UNCERTAIN, Backlog
from libintercom.session.desk import Desk
from libintercom.session.handovers import Handovers
from libintercom.session.placed import PlacedInputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from libintercom.session.backlog import Item
    from libintercom.session.states import Context, Live
    from libintercom.session.tracker import Tracker
    from libintercom.wire.messages import Host
    from libintercom.wire.record import Record

_STALE = "its context is over: the session was replaced or has shut down"


class Inbox:
    """``abilities``: of the host, as its row tells them. ``new_id``: makes a fresh entry ID at each call."""

    def __init__(self, context: Live, abilities: Host, new_id: Callable[[], str]) -> None:
        self.context: Context = context
        self._desk = Desk(new_id, context)
        self._backlog = Backlog()
        self._answers = Answers(self._desk, self._backlog)
        self._placed = PlacedInputs(self._desk)
        self._handovers = Handovers(self._desk, self._backlog, self._answers, self._placed, abilities)
        self._admissions = Admissions(self._desk, self._backlog, self._answers, self._handovers)
        self._is_closing = False
        self._parts: dict[type, Callable[[Any], None]] = {
            happenings.Recovered: self._recovered,
            happenings.Arrived: self._arrived,
            happenings.ReplyArrived: self._reply_arrived,
            happenings.Checkpointed: self._checkpointed,
            happenings.CheckpointFailed: self._checkpoint_failed,
            happenings.HostPlaced: self._host_placed,
            happenings.HostRefused: self._host_refused,
            happenings.HostUnsure: self._host_unsure,
            happenings.PlacementFound: self._placement_found,
            happenings.PlacementAbsent: self._placement_absent,
            happenings.PlacementUnknown: self._placement_unknown,
            happenings.InputConsumed: self._input_consumed,
            happenings.TurnStarted: self._turn_started,
            happenings.TurnEnded: self._turn_ended,
            happenings.RetryDue: self._retry_due,
            happenings.ReplyBegan: self._reply_began,
            happenings.ReplyEnded: self._reply_ended,
            happenings.PlaceChosen: self._place_chosen,
            happenings.DiscardChosen: self._discard_chosen,
            happenings.ShutdownBegan: self._shutdown_began,
            happenings.ContextInvalidated: self._context_invalidated,
            AskEnded: self._ask_ended,
            PeerLeft: self._peer_left,
        }

    @property
    def tracker(self) -> Tracker:
        """The questions that wait for a reply."""
        return self._answers.tracker

    @property
    def is_live(self) -> bool:
        return states.is_current(self.context, self._desk.origin.incarnation)

    def uncertain(self) -> list[Item]:
        """Messages of which nobody knows whether the host has them; a person decides."""
        return self._backlog.in_states(UNCERTAIN)

    def staged(self) -> list[Item]:
        """Messages on record that the host was not offered yet, in admission order."""
        return self._backlog.in_states(STAGED)

    def waiting(self) -> list[Item]:
        """Messages on record that the host was not seen to have, in admission order; without the uncertain ones."""
        return self._backlog.in_states(STAGED, *IN_FLIGHT)

    def handle(self, happened: Record, at_ms: int, generation: str) -> list[Record]:
        """What follows from ``happened``, to be carried out in order."""
        self._desk.now_ms = at_ms
        if not states.is_current(self.context, generation):
            _refuse_stale(self._desk, happened)
        else:
            self._parts[type(happened)](happened)
            self._detach_when_done()
        return self._desk.take_steps()

    # ---------------------------------------------------------------- the life of this generation

    def _recovered(self, happened: happenings.Recovered) -> None:
        self._admissions.take_up(happened.standings)
        self._handovers.recover()

    def _shutdown_began(self, _happened: happenings.ShutdownBegan) -> None:
        self._is_closing = True
        self._handovers.close()

    def _context_invalidated(self, _happened: happenings.ContextInvalidated) -> None:
        self.context = states.invalidate(self.context)

    def _detach_when_done(self) -> None:
        is_busy = not self._desk.is_clear or self._backlog.has_in_flight() or self._answers.has_leaving()
        if self._is_closing and not is_busy and self.is_live:
            self.context = states.invalidate(self.context)
            self._desk.ask(steps.Detach())

    # ---------------------------------------------------------------- the journal

    def _checkpointed(self, happened: happenings.Checkpointed) -> None:
        self._desk.settle(happened.entry_ids, None)

    def _checkpoint_failed(self, happened: happenings.CheckpointFailed) -> None:
        self._desk.settle(happened.entry_ids, happened.reason)

    # ---------------------------------------------------------------- messages and decisions

    def _arrived(self, happened: happenings.Arrived) -> None:
        self._admissions.arrive(happened.inbound, happened.standing)

    def _reply_arrived(self, happened: happenings.ReplyArrived) -> None:
        self._admissions.take_reply(happened.inbound, happened.standing)

    def _place_chosen(self, happened: happenings.PlaceChosen) -> None:
        self._admissions.place_again(happened.message_id)

    def _discard_chosen(self, happened: happenings.DiscardChosen) -> None:
        self._admissions.discard(happened.message_id, happened.reason)

    # ---------------------------------------------------------------- the host

    def _host_placed(self, happened: happenings.HostPlaced) -> None:
        self._handovers.placed(happened.placements)

    def _host_refused(self, happened: happenings.HostRefused) -> None:
        self._handovers.refused(happened.message_ids, happened.reason)

    def _host_unsure(self, happened: happenings.HostUnsure) -> None:
        self._handovers.unsure(happened.message_ids)

    def _placement_found(self, happened: happenings.PlacementFound) -> None:
        self._handovers.placed({happened.message_id: happened.placement})

    def _placement_absent(self, happened: happenings.PlacementAbsent) -> None:
        self._handovers.refused((happened.message_id,), "it does not have it")

    def _placement_unknown(self, happened: happenings.PlacementUnknown) -> None:
        self._handovers.lost(happened.message_id, happened.reason)

    def _input_consumed(self, happened: happenings.InputConsumed) -> None:
        self._answers.consumed(happened.message_ids)
        self._handovers.consumed(happened.message_ids)

    def _turn_started(self, _happened: happenings.TurnStarted) -> None:
        self._answers.start_turn()
        self._handovers.start_turn()

    def _turn_ended(self, happened: happenings.TurnEnded) -> None:
        self._answers.consumed(happened.consumed_ids)
        self._handovers.consumed(happened.consumed_ids)
        self._answers.end_turn(is_ok=happened.is_ok)
        self._handovers.end_turn()

    def _retry_due(self, _happened: happenings.RetryDue) -> None:
        self._handovers.offer()

    # ---------------------------------------------------------------- questions

    def _reply_began(self, happened: happenings.ReplyBegan) -> None:
        self._answers.begin_reply(happened.ask_id, happened.reply_id)

    def _reply_ended(self, happened: happenings.ReplyEnded) -> None:
        self._answers.end_reply(happened.ask_id, happened.reply_id, happened.is_accepted)

    def _ask_ended(self, happened: AskEnded) -> None:
        self._answers.end(happened.message_id, happened.reason)

    def _peer_left(self, happened: PeerLeft) -> None:
        self._answers.leave(happened.session_id)


def _refuse_stale(desk: Desk, happened: Record) -> None:
    """Whoever waits for an answer is told; nothing is stored, nothing is placed."""
    if isinstance(happened, happenings.Arrived):
        desk.ask(steps.Refuse(message_id=happened.inbound.message.id, code=steps.STALE, reason=_STALE))
    elif isinstance(happened, happenings.ReplyArrived):
        desk.ask(steps.WithholdReply(message_id=happened.inbound.message.id, code=steps.STALE, reason=_STALE))
    elif isinstance(happened, happenings.ReplyBegan):
        desk.ask(steps.RefuseReply(ask_id=happened.ask_id, reply_id=happened.reply_id, reason=_STALE))
