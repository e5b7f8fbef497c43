"""Admission: a message becomes this session's own, once, by a checkpoint; what it replaces ends in the same one. Pure.

Owns dedupe, the first checkpoint, replacing by thread, discarding, and taking up what an earlier run left. Does not own
handing over (``handovers``) nor questions (``answers``).
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from libintercom.errors import InvalidFrame
from libintercom.inbound import Inbound
from libintercom.session import entries, steps
from libintercom.session.backlog import ADMITTING, HANDING, SEEKING, STAGED, UNCERTAIN, Item
from libintercom.wire.messages import Message, Row
from libintercom.wire.record import parse_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from libintercom.session.answers import Answers
    from libintercom.session.backlog import Backlog
    from libintercom.session.desk import Desk
    from libintercom.session.entries import Standing
    from libintercom.session.handovers import Handovers

# IDs of this run that have ended. With a journal its word stands beside them; without one they are all there is, and a
# broker remembers 4,096 of one sender (wire.md 14.3).
MAX_REMEMBERED = 10_000
# Where the journal says a message is, and where that puts it now; all others are over.
_TAKEN_UP = {
    entries.ADMITTED: STAGED,
    entries.QUEUED: STAGED,
    entries.HANDED: SEEKING,
    entries.UNCERTAIN: UNCERTAIN,
}


class Admissions:
    """What came, and what became of it before it is offered."""

    def __init__(self, desk: Desk, backlog: Backlog, answers: Answers, handovers: Handovers) -> None:
        self._desk, self._backlog, self._answers, self._handovers = desk, backlog, answers, handovers
        self._remembered: OrderedDict[str, None] = OrderedDict()

    # ---------------------------------------------------------------- messages

    def arrive(self, inbound: Inbound, standing: Standing | None) -> None:
        """A message came: admit it, or say why not."""
        message_id = inbound.message.id
        known_as = self._known_as(message_id, standing)
        if known_as:
            self._desk.ask(
                steps.Refuse(message_id=message_id, code=steps.DUPLICATE, reason=f"it is {known_as} already")
            )
            return
        if standing is not None and standing.fact in entries.CLOSING_FACTS:
            # Its admission was not stored then, the end of its question was.
            self._answers.end_early(message_id)
        item = Item(inbound, self._desk.now_ms, ADMITTING)
        older = self._backlog.staged_of(item.thread)
        goes_at_once = self._handovers.can_hand_at_once(item)
        if goes_at_once:
            # One checkpoint says both: it is ours, and it goes to the host.
            item.state = HANDING
        for other in older:
            other.is_locked = True
        self._remember(message_id)
        self._backlog.add(item)
        self._desk.checkpoint(
            self._first_entries(item, older, goes_at_once),
            partial(self._admitted, item, older, goes_at_once),
            partial(self._not_admitted, item, older),
        )

    def _first_entries(self, item: Item, older: Sequence[Item], goes_at_once: bool) -> list[entries.Entry]:
        body = self._first_body(item)
        second = entries.HANDED if goes_at_once else entries.QUEUED
        replaced = [self._desk.entry(one.message_id, entries.REPLACED, by=item.message_id) for one in older]
        return [
            self._desk.entry(item.message_id, entries.ADMITTED, **body),
            self._desk.entry(item.message_id, second),
            *replaced,
        ]

    def _first_body(self, item: Item) -> dict[str, object]:
        return {
            **item.admission,
            "session": self._desk.origin.session,
            "generation": self._desk.origin.incarnation,
        }

    def _admitted(self, item: Item, older: Sequence[Item], goes_at_once: bool) -> None:
        item.is_admitted = True
        for other in older:
            self._end(other)
        if item.inbound.message.is_ask:
            self._answers.open(item.inbound, item.received_at_ms)
        if goes_at_once:
            self._handovers.place([item])
        else:
            self._backlog.move(item, STAGED)
            self._handovers.offer()

    def _not_admitted(self, item: Item, older: Sequence[Item], reason: str) -> None:
        """Nothing of it was stored, so nothing of it happens; the same message may come again."""
        self._backlog.drop(item)
        self._remembered.pop(item.message_id, None)
        for other in older:
            other.is_locked = False
        self._desk.ask(steps.Refuse(message_id=item.message_id, code=steps.NOT_STORED, reason=reason))

    # ---------------------------------------------------------------- replies that an ask of ours waits for

    def take_reply(self, inbound: Inbound, standing: Standing | None) -> None:
        """Record the reply before the ask gets it, so that it is never taken for a message of its own."""
        message = inbound.message
        known_as = self._known_as(message.id, standing)
        if known_as:
            self._withhold(message.id, steps.DUPLICATE, f"it is {known_as} already")
            return
        self._remember(message.id)
        body = self._first_body(Item(inbound, self._desk.now_ms, ADMITTING))
        told = [self._desk.entry(message.id, entries.REPLY_RECEIVED, by=message.reply_to or "", **body)]
        self._desk.checkpoint(told, partial(self._give, message.id), partial(self._lose, message.id))

    def _give(self, message_id: str) -> None:
        self._desk.ask(steps.GiveReply(message_id=message_id))

    def _lose(self, message_id: str, reason: str) -> None:
        self._remembered.pop(message_id, None)
        self._withhold(message_id, steps.NOT_STORED, reason)

    def _withhold(self, message_id: str, code: str, reason: str) -> None:
        self._desk.ask(steps.WithholdReply(message_id=message_id, code=code, reason=reason))

    # ---------------------------------------------------------------- a person's decisions

    def place_again(self, message_id: str) -> None:
        """An uncertain message is to be placed, whether it was before or not."""
        item = self._backlog.find(message_id)
        if item is None or item.state != UNCERTAIN or item.is_locked:
            self._report(message_id, steps.NO_SUCH, "it is not uncertain")
            return
        item.is_locked = True
        told = [self._desk.entry(message_id, entries.QUEUED)]
        self._desk.checkpoint(told, partial(self._staged_again, item), partial(self._undecided, item))

    def discard(self, message_id: str, reason: str) -> None:
        """An uncertain or still staged message is to be placed never."""
        item = self._backlog.find(message_id)
        if item is None or item.state not in (STAGED, UNCERTAIN) or item.is_locked:
            self._report(message_id, steps.NO_SUCH, "it is neither uncertain nor staged")
            return
        item.is_locked = True
        told = [self._desk.entry(message_id, entries.DISCARDED, reason=reason)]
        self._desk.checkpoint(told, partial(self._discarded, item), partial(self._undecided, item))

    def _staged_again(self, item: Item) -> None:
        item.is_locked = False
        if item.state == UNCERTAIN:
            # Else it was read meanwhile, and that it was placed is on record.
            self._backlog.move(item, STAGED)
            self._handovers.offer()

    def _discarded(self, item: Item) -> None:
        self._end(item)
        self._handovers.offer()

    def _undecided(self, item: Item, reason: str) -> None:
        item.is_locked = False
        self._report(item.message_id, steps.UNRECORDED, reason)

    def _end(self, item: Item) -> None:
        self._backlog.drop(item)
        self._answers.close(item.message_id)

    # ---------------------------------------------------------------- what an earlier run left

    def take_up(self, standings: Sequence[Standing]) -> None:
        """Put back in place what the journal holds unfinished, in admission order."""
        for standing in standings:
            if standing.is_unfinished and standing.admitted is not None:
                self._take_up(standing, standing.admitted.body)

    def _take_up(self, standing: Standing, body: dict[str, object]) -> None:
        self._remember(standing.message_id)
        if body.get("session") != self._desk.origin.session:
            self._report(standing.message_id, steps.FOREIGN, "it was admitted by another session and is not adopted")
            return
        try:
            inbound = restore_inbound(body)
            received_at_ms = int(str(body.get("receivedAt")))
        except (InvalidFrame, ValueError) as error:
            # Written by another version of the rules: it stays in the journal, where export shows it.
            self._report(standing.message_id, steps.UNREADABLE, str(error))
            return
        if standing.kind in _TAKEN_UP:
            item = Item(inbound, received_at_ms, _TAKEN_UP[standing.kind])
            item.is_admitted = True
            self._backlog.add(item)
        if standing.is_open_ask:
            self._answers.reopen(standing, inbound, received_at_ms)

    # ---------------------------------------------------------------- dedupe

    def _known_as(self, message_id: str, standing: Standing | None) -> str:
        """What a message is known as; ``""``: it is new. Facts without an admission are not one."""
        if standing is not None and standing.kind:
            return standing.kind
        return "known" if message_id in self._remembered else ""

    def _remember(self, message_id: str) -> None:
        self._remembered[message_id] = None
        if len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)

    def _report(self, message_id: str, code: str, reason: str) -> None:
        self._desk.ask(steps.Report(message_id=message_id, code=code, reason=reason))


def restore_inbound(body: dict[str, object]) -> Inbound:
    """The message of an ``admitted`` or ``reply_received`` entry, as it came.

    Raises:
        InvalidFrame: it breaks a rule of the wire.
    """
    raw = {"from": body.get("from"), "message": body.get("message")}
    return Inbound(row=parse_record(Row, raw["from"]), message=parse_record(Message, raw["message"]), raw=raw)
