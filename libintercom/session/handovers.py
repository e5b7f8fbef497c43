"""Handing messages to the host: when, in which order, and what is known of where they are. Pure.

Owns one hand-over at a time, its checkpoints before and after, the wake, the turn, and recovery. Does not own admission
(``admissions``) nor questions (``answers``).
"""

from __future__ import annotations

from functools import partial

from libintercom.session import entries, steps
from libintercom.session.backlog import (
    ADMITTING,
    HANDED,
    HANDING,
    PASSIVE,
    RETURNING,
    SEEKING,
    STAGED,
    STEER,
    UNCERTAIN,
)
from libintercom.wire.messages import DELIVERIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from libintercom.session.answers import Answers
    from libintercom.session.backlog import Backlog, Item
    from libintercom.session.desk import Desk
    from libintercom.session.placed import PlacedInputs
    from libintercom.wire.messages import Host


class Handovers:
    """``abilities``: what this host can do (sessions.md section 2); what it does not say, it cannot."""

    def __init__(self, desk: Desk, backlog: Backlog, answers: Answers, placed: PlacedInputs, abilities: Host) -> None:
        self._desk, self._backlog, self._answers, self._placed = desk, backlog, answers, placed
        self._abilities = abilities
        # Offers begin once recovery knows what the host has, and end with shutdown.
        self.is_open = False
        self._is_recovering = self._is_closing = False
        self._is_in_turn = False
        self._is_at_prompt = False
        # Placed and waking, and the host was neither woken for it nor seen to read it.
        self._owed: set[str] = set()

    # ---------------------------------------------------------------- when

    def is_due(self, item: Item) -> bool:
        """Whether the host takes this one now."""
        return item.delivery in self._due_deliveries()

    def _due_deliveries(self) -> tuple[str, ...]:
        """The deliveries that the host takes now."""
        if self._abilities.prompt_only:
            return DELIVERIES if self._is_at_prompt else ()
        if not self._is_in_turn:
            return DELIVERIES
        return (STEER,) if self._abilities.steer else ()

    def can_hand_at_once(self, item: Item) -> bool:
        """Whether a message that just came may go with its first checkpoint: nothing before it waits for the same."""
        is_next = not self._backlog.has_any(ADMITTING, STAGED, deliveries=self._due_deliveries())
        return self.is_open and self.is_due(item) and is_next and not self._backlog.has_in_flight()

    def offer(self) -> None:
        """Hand over what is due, if nothing is on its way: breadcrumbs first, then the rest as admitted."""
        if not self.is_open or self._backlog.has_in_flight():
            return
        due = self._due_items()
        batch = [item for item in due if item.delivery == PASSIVE] + [i for i in due if i.delivery != PASSIVE]
        if batch:
            for item in batch:
                self._backlog.move(item, HANDING)
            handed = [self._desk.entry(item.message_id, entries.HANDED) for item in batch]
            self._desk.checkpoint(handed, partial(self.place, batch), partial(self._failed_to_hand, batch))

    def _due_items(self) -> list[Item]:
        due = []
        for item in self._backlog.in_states(STAGED, deliveries=self._due_deliveries()):
            if item.is_locked:
                # It may yet stay: nothing behind it overtakes it.
                break
            due.append(item)
        return due

    # ---------------------------------------------------------------- with the host

    def place(self, batch: Sequence[Item]) -> None:
        """That they go to the host is on record: hand them over, but for those a turn has begun to keep out."""
        # A prompt that was answered meanwhile is still the one that these were taken for.
        due = DELIVERIES if self._abilities.prompt_only else self._due_deliveries()
        late = [item for item in batch if item.delivery not in due and self._backlog.holds(item)]
        going = [item for item in batch if item.delivery in due and self._backlog.holds(item)]
        self._take_back(late, retries=True)
        for item in going:
            self._backlog.move(item, HANDED)
        if going:
            shown = [item.placeable(is_ask_open=self._answers.is_open(item.message_id)) for item in going]
            self._desk.ask(steps.Place(batch=tuple(shown)))

    def placed(self, placements: Mapping[str, str]) -> None:
        """The host has them."""
        self._keep([(item, placements[item.message_id]) for item in self._with_host(placements)])
        self._go_on(retries=True)

    def refused(self, message_ids: Iterable[str], reason: str) -> None:
        """The host has none of them. What was read nevertheless was placed, whatever the host says."""
        items = self._with_host(message_ids)
        self._keep([(item, "") for item in items if item.is_consumed])
        back = [item for item in items if not item.is_consumed]
        if not self._is_recovering:
            for item in back:
                self._desk.ask(steps.Report(message_id=item.message_id, code=steps.HOST_REFUSED, reason=reason))
        self._take_back(back, retries=False)
        self._go_on(retries=False)

    def unsure(self, message_ids: Iterable[str]) -> None:
        """Ask the host for each of them."""
        for item in self._with_host(message_ids):
            self._backlog.move(item, SEEKING)
            self._desk.ask(steps.FindPlacement(message_id=item.message_id))

    def lost(self, message_id: str, reason: str) -> None:
        """The host cannot tell: never placed again unasked."""
        for item in self._with_host([message_id]):
            if item.is_consumed:
                self._keep([(item, "")])
                continue
            self._backlog.move(item, UNCERTAIN)
            told = [self._desk.entry(message_id, entries.UNCERTAIN, reason=reason)]
            self._desk.checkpoint(told, _nothing, partial(self._unrecorded, [item]))
            self._desk.ask(steps.Report(message_id=message_id, code=steps.UNCERTAIN, reason=reason))
        self._go_on(retries=False)

    def consumed(self, message_ids: Iterable[str]) -> None:
        """They were read: those that the host holds without having said so are placed by that."""
        for message_id in message_ids:
            self._owed.discard(message_id)
            item = self._backlog.find(message_id)
            if item is None or not item.is_admitted:
                continue
            item.is_consumed = True
            if item.state not in (HANDED, SEEKING):
                # The host had denied it, or was not given it by this run: what is read was placed.
                self._keep([(item, "")])
        self._placed.consume(message_ids)

    def _with_host(self, message_ids: Iterable[str]) -> list[Item]:
        found = [self._backlog.find(message_id) for message_id in message_ids]
        return [item for item in found if item is not None and item.state in (HANDED, SEEKING)]

    def _keep(self, found: Sequence[tuple[Item, str]]) -> None:
        """Put on record what the host holds; from here on it is never offered again."""
        told = []
        for item, placement in found:
            self._backlog.drop(item)
            self._placed.add(item.message_id)
            self._answers.show(item.message_id)
            told.append(self._desk.entry(item.message_id, entries.PLACED, placement=placement))
            if item.delivery != PASSIVE and not item.is_consumed:
                self._owed.add(item.message_id)
        if told:
            self._desk.checkpoint(told, _nothing, partial(self._unrecorded, [item for item, _placement in found]))
        self._placed.consume([item.message_id for item, _placement in found if item.is_consumed])

    def _take_back(self, items: Sequence[Item], *, retries: bool) -> None:
        """The host does not hold them: back among the staged, once that is on record or cannot be."""
        if items:
            for item in items:
                self._backlog.move(item, RETURNING)
            back = [self._desk.entry(item.message_id, entries.QUEUED) for item in items]
            returned = partial(self._returned, items, retries)
            self._desk.checkpoint(back, returned, partial(self._unreturned, items, retries))

    def _returned(self, items: Sequence[Item], retries: bool) -> None:
        for item in items:
            self._backlog.move(item, STAGED)
        self._go_on(retries=retries)

    def _unreturned(self, items: Sequence[Item], retries: bool, reason: str) -> None:
        self._unrecorded(items, reason)
        self._returned(items, retries)

    def _failed_to_hand(self, items: Sequence[Item], reason: str) -> None:
        # Not offered again before the next occasion: the journal will hardly have recovered by now.
        for item in items:
            self._backlog.move(item, STAGED)
        self._unrecorded(items, reason)

    def _unrecorded(self, items: Sequence[Item], reason: str) -> None:
        for item in items:
            self._desk.ask(steps.Report(message_id=item.message_id, code=steps.UNRECORDED, reason=reason))

    # ---------------------------------------------------------------- turns and waking

    def start_turn(self) -> None:
        self._is_in_turn = bool(self._abilities.turn_end)
        self._is_at_prompt = True
        self.offer()
        # What comes from here on waits for the next prompt; a start that still recovers has not offered yet.
        self._is_at_prompt = self._is_recovering

    def end_turn(self) -> None:
        self._is_in_turn = self._is_at_prompt = False
        self.offer()
        self._wake()

    def _go_on(self, *, retries: bool) -> None:
        """A hand-over may have ended: wake for it, then offer what came meanwhile.

        ``retries``: the host took something; if it took nothing, the next occasion is soon enough.
        """
        if self._is_recovering:
            self._end_recovery()
            return
        self._wake()
        if retries:
            self.offer()

    def _wake(self) -> None:
        """One wake for all that was placed, when nothing is on its way that the same wake could serve."""
        if self._is_in_turn or not self._owed or self._backlog.has_in_flight():
            return
        self._owed.clear()
        if self._abilities.wake and not self._abilities.prompt_only:
            self._desk.ask(steps.Wake())

    # ---------------------------------------------------------------- begin and end

    def recover(self) -> None:
        """Ask the host for everything that was handed to it and never heard of; offers begin when all is answered."""
        for item in self._backlog.in_states(SEEKING):
            self._desk.ask(steps.FindPlacement(message_id=item.message_id))
        self._is_recovering = True
        self._end_recovery()

    def _end_recovery(self) -> None:
        """When the host has answered for all: offer the whole backlog, and wake once, on its last item."""
        if self._backlog.has_in_flight():
            return
        self._is_recovering, self.is_open = False, not self._is_closing
        self.offer()
        self._is_at_prompt = False
        self._wake()

    def close(self) -> None:
        """Begin nothing more."""
        self._is_closing, self.is_open = True, False


def _nothing() -> None:
    """Nothing waits for this checkpoint."""
