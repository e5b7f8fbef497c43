"""One session's surroundings: a disk that stores late or never, a host that answers anything, and crashes.

Owns what is true (what the host holds, what is durable) and every step that can be taken. Does not own what must hold
(``watches``).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from libintercom.errors import NoPendingAsk
from libintercom.inbound import AskEnded
from libintercom.session import happenings, steps
from libintercom.session.inbox import Inbox
from libintercom.session.states import Live
from tests.stateful.session.watches import WATCHES
from tests.support.inbox_rig import FULL, SESSION, fold_all, inbound

if TYPE_CHECKING:
    from libintercom.session.entries import Entry, Standing
    from libintercom.wire.messages import Host
    from libintercom.wire.record import Record

KINDS_SEEN: set[str] = set()

SHAPES: dict[str, dict[str, Any]] = {
    "steer": {},
    "ask": {"expectsReply": True},
    "queue": {"delivery": "queue"},
    "later ask": {"delivery": "queue", "expectsReply": True},
    "passive": {"delivery": "passive"},
    "update": {"delivery": "queue", "queueMode": "replace", "threadId": "t"},
}
# Enough that order, replacing and dedupe meet.
MAX_MESSAGES = 5
# Draining ends long before, or does not end.
_DRAINING_STEPS = 200


class World:
    """``can_tell``: whether the host knows, when asked, what it holds."""

    def __init__(self, abilities: Host = FULL, *, can_tell: bool = True, max_messages: int = MAX_MESSAGES) -> None:
        self.abilities, self.can_tell, self.max_messages = abilities, can_tell, max_messages
        self.made = self.generations = 0
        self.disk: list[Entry] = []
        self.messages: dict[str, Any] = {}
        # What the host holds, how often it was placed there, what of it was read, what nobody was woken for.
        self.held: list[str] = []
        self.read: set[str] = set()
        self.read_in_turn: set[str] = set()
        self.is_in_turn = False
        self.replies_made = 0
        self.old: tuple[Inbox, str, list[Record]] | None = None
        self.is_broken = self.is_late = False
        self.watches = [watch() for watch in WATCHES]
        self.open()

    # ---------------------------------------------------------------- the session's own program

    def open(self) -> None:
        """A start: all that is known is what is durable."""
        self.durable = fold_all(self.disk)
        # What this run has heard of or found unfinished: about no other can it know that nobody waits any more.
        self.arrived = {one.message_id for one in self.durable.values() if one.is_unfinished}
        self.generations += 1
        self.generation = f"g{self.generations}"
        self.storing: deque[steps.Checkpoint] = deque()
        self.calls: deque[steps.Place] = deque()
        self.finds: deque[str] = deque()
        self.leaving: deque[tuple[str, str]] = deque()
        self.is_detached = self.is_closing = False
        self.inbox = Inbox(Live(session=SESSION, incarnation=self.generation), self.abilities, self.new_id)
        for watch in self.watches:
            watch.opened(self)
        unfinished = sorted((one for one in self.known().values() if one.is_unfinished), key=lambda one: one.order)
        self.tell(happenings.Recovered(standings=tuple(unfinished)))

    def new_id(self) -> str:
        self.made += 1
        return f"e{self.made}"

    def known(self, *, with_storing: bool = False) -> dict[str, Standing]:
        """The journal's word on every message."""
        if not with_storing or not self.storing:
            return self.durable
        coming = [entry for step in self.storing for entry in step.entries]
        return fold_all(coming, self.durable, len(self.disk))

    def _make_durable(self, step: steps.Checkpoint) -> None:
        self.durable = fold_all(step.entries, self.durable, len(self.disk))
        self.disk += step.entries

    def tell(self, happened: Record, generation: str = "") -> bool:
        KINDS_SEEN.add(type(happened).__name__)
        for watch in self.watches:
            watch.happened(self, happened)
        asked = self.inbox.handle(happened, self.made, generation or self.generation)
        for step in asked:
            KINDS_SEEN.add(type(step).__name__)
            for watch in self.watches:
                watch.asked(self, happened, step)
            self._take(step)
        for watch in self.watches:
            watch.rest(self)
        return True

    def _take(self, step: Record) -> None:
        if isinstance(step, steps.Checkpoint):
            self.storing.append(step)
        elif isinstance(step, steps.Place):
            self.calls.append(step)
        elif isinstance(step, steps.FindPlacement):
            self.finds.append(step.message_id)
        elif isinstance(step, steps.SendReply):
            self.leaving.append((step.ask_id, step.reply_id))
        elif isinstance(step, steps.Refuse) and step.code == steps.NOT_STORED:
            self.arrived.discard(step.message_id)
        elif isinstance(step, steps.Detach):
            self.is_detached = True

    # ---------------------------------------------------------------- what comes

    def arrive(self, shape: str) -> bool:
        if len(self.messages) >= self.max_messages:
            return False
        message_id = f"m{len(self.messages) + 1}"
        self.messages[message_id] = inbound(message_id, **SHAPES[shape])
        return self._arrive(message_id)

    def arrive_again(self, number: int) -> bool:
        message_id = f"m{number}"
        return message_id in self.messages and self._arrive(message_id)

    def _arrive(self, message_id: str) -> bool:
        self.arrived.add(message_id)
        standing = self.known(with_storing=True).get(message_id)
        happened = happenings.ReplyArrived if self.messages[message_id].message.reply_to else happenings.Arrived
        return self.tell(
            happened(inbound=self.messages[message_id], **({} if standing is None else {"standing": standing}))
        )

    def reply_arrives(self) -> bool:
        if len(self.messages) >= self.max_messages:
            return False
        message_id = f"m{len(self.messages) + 1}"
        self.messages[message_id] = inbound(message_id, replyTo="our question")
        return self._arrive(message_id)

    def end_ask(self, reason: str) -> bool:
        asks = [m for m, one in self.messages.items() if one.message.is_ask]
        return bool(asks) and self.tell(AskEnded(message_id=asks[0], asker_id="pi-ann00001", reason=reason))

    # ---------------------------------------------------------------- the disk

    def store(self) -> bool:
        if not self.storing:
            return False
        step = self.storing.popleft()
        self._make_durable(step)
        return self.tell(happenings.Checkpointed(entry_ids=step.entry_ids))

    def fail_to_store(self) -> bool:
        if not self.storing:
            return False
        step = self.storing.popleft()
        return self.tell(happenings.CheckpointFailed(entry_ids=step.entry_ids, reason="disk full"))

    # ---------------------------------------------------------------- the host

    def take(self) -> bool:
        if not self.calls:
            return False
        batch = self._put()
        return self.tell(happenings.HostPlaced(placements={message_id: f"h-{message_id}" for message_id in batch}))

    def refuse(self) -> bool:
        if not self.calls:
            return False
        batch = tuple(one.message_id for one in self.calls.popleft().batch)
        return self.tell(happenings.HostRefused(message_ids=batch, reason="full"))

    def break_off(self, is_held: bool) -> bool:
        if not self.calls:
            return False
        batch = self._put() if is_held else tuple(one.message_id for one in self.calls.popleft().batch)
        return self.tell(happenings.HostUnsure(message_ids=tuple(batch), reason="no answer"))

    def _put(self) -> list[str]:
        batch = [one.message_id for one in self.calls.popleft().batch]
        self.held += batch
        return batch

    def find(self) -> bool:
        if not self.finds:
            return False
        message_id = self.finds.popleft()
        if not self.can_tell:
            return self.tell(happenings.PlacementUnknown(message_id=message_id, reason="no index"))
        if message_id in self.held:
            return self.tell(happenings.PlacementFound(message_id=message_id, placement=f"h-{message_id}"))
        return self.tell(happenings.PlacementAbsent(message_id=message_id))

    def start_turn(self) -> bool:
        if self.is_in_turn:
            return False
        self.is_in_turn, self.read_in_turn = True, set()
        return self.tell(happenings.TurnStarted())

    def end_turn(self, is_ok: bool) -> bool:
        """What was placed is read by the end of a turn that went well; a failed one read what it was seen to read."""
        if not self.is_in_turn:
            return False
        read = self._read() if is_ok else ()
        self.is_in_turn = False
        return self.tell(happenings.TurnEnded(is_ok=is_ok, consumed_ids=read))

    def consume(self) -> bool:
        read = self._read() if self.is_in_turn else ()
        return bool(read) and self.tell(happenings.InputConsumed(message_ids=read))

    def _read(self) -> tuple[str, ...]:
        unread = tuple(dict.fromkeys(message_id for message_id in self.held if message_id not in self.read))
        self.read.update(unread)
        self.read_in_turn.update(unread)
        return unread

    def retry(self) -> bool:
        return self.tell(happenings.RetryDue())

    # ---------------------------------------------------------------- replies and decisions

    def begin_reply(self) -> bool:
        try:
            ask = self.inbox.tracker.resolve()
        except NoPendingAsk:
            return False
        return self._reply_to(ask.message_id)

    def begin_named_reply(self) -> bool:
        views = self.inbox.tracker.views()
        return bool(views) and self._reply_to(views[0].message_id)

    def _reply_to(self, ask_id: str) -> bool:
        self.replies_made += 1
        return self.tell(happenings.ReplyBegan(ask_id=ask_id, reply_id=f"r{self.replies_made}"))

    def end_reply(self, is_accepted: bool | None) -> bool:
        if not self.leaving:
            return False
        ask_id, reply_id = self.leaving.popleft()
        known = {} if is_accepted is None else {"is_accepted": is_accepted}
        return self.tell(happenings.ReplyEnded(ask_id=ask_id, reply_id=reply_id, **known))

    def choose(self, is_placing: bool) -> bool:
        uncertain = self.inbox.uncertain()
        if not uncertain:
            return False
        chosen = uncertain[0].message_id
        if is_placing:
            return self.tell(happenings.PlaceChosen(message_id=chosen))
        return self.tell(happenings.DiscardChosen(message_id=chosen, reason="not needed"))

    def discard_staged(self) -> bool:
        staged = self.inbox.staged()
        return bool(staged) and self.tell(happenings.DiscardChosen(message_id=staged[0].message_id, reason="old"))

    # ---------------------------------------------------------------- ends and beginnings

    def crash(self, is_held: bool) -> bool:
        """SIGKILL: what was not durable is gone; whether the host took what it was just handed is up to chance."""
        while is_held and self.calls:
            self._put()
        self.is_in_turn, self.old = False, None
        self.open()
        return True

    def shut_down(self) -> bool:
        if self.is_closing:
            return False
        self.is_closing = True
        return self.tell(happenings.ShutdownBegan())

    def reopen(self) -> bool:
        if not self.is_detached:
            return False
        self.is_in_turn = False
        self.open()
        return True

    def replace_context(self) -> bool:
        """The native session was replaced under it; its callbacks are still under way."""
        pending: list[Record] = [happenings.Checkpointed(entry_ids=step.entry_ids) for step in self.storing]
        pending += [
            happenings.HostPlaced(placements={one.message_id: "h"}) for call in self.calls for one in call.batch
        ]
        while self.calls:
            self._put()
        for step in self.storing:
            self._make_durable(step)
        self.storing.clear()
        self.tell(happenings.ContextInvalidated())
        self.old = self.inbox, self.generation, pending
        self.is_in_turn = False
        self.open()
        return True

    def call_back_late(self) -> bool:
        """What was begun for the old context ends now, wherever it is told."""
        if self.old is None or not self.old[2]:
            return False
        inbox, generation, pending = self.old
        happened = pending.pop(0)
        for watch in self.watches:
            for step in inbox.handle(happened, self.made, generation):
                watch.asked_too_late(step)
        self.is_late = True
        self.tell(happened, generation)
        self.is_late = False
        return True

    # ---------------------------------------------------------------- for the explorer

    def perform(self, action: Any) -> bool:
        try:
            return bool(getattr(self, action.method)(*action.arguments))
        except AssertionError:
            self.is_broken = True
            raise

    def outline(self) -> tuple[object, ...]:
        """What tells one state from another."""
        known = self.known(with_storing=True)
        return (
            [(one.message_id, one.kind, one.fact) for one in known.values()],
            len(self.storing),
            len(self.calls),
            len(self.finds),
            len(self.leaving),
            self.held,
            sorted(self.read),
            self.is_in_turn,
            self.is_closing,
            self.is_detached,
            [(view.message_id, view.is_target, view.reply_id) for view in self.inbox.tracker.views()],
            self.generations,
        )

    def wind_down(self) -> None:
        """Everything that can end does, well."""
        for _step in range(_DRAINING_STEPS):
            if not (
                self.store() or self.find() or self.take() or self.end_reply(True) or self.reopen() or self._rouse()
            ):
                break
        for watch in self.watches:
            watch.end(self)

    def _rouse(self) -> bool:
        """One more occasion for what waits for one."""
        if self.is_in_turn:
            return self.end_turn(True)
        waiting = [item for item in self.inbox.staged() if not item.is_locked]
        if not waiting:
            return False
        return self.start_turn() if self.abilities.prompt_only else self.retry()
