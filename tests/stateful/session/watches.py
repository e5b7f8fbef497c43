"""What must hold of an inbox and its tracker, whatever happens.

Owns the invariants. Each looks at what is true in the world, not at what the inbox believes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from libintercom.errors import NoPendingAsk
from libintercom.inbound import AskEnded
from libintercom.session import entries, happenings, steps
from libintercom.session.entries import CLOSING_FACTS
from tests.stateful.watch import Violation

if TYPE_CHECKING:
    from libintercom.wire.record import Record
    from tests.stateful.session.world import World

_ANSWERS_TO_STALE = (steps.Refuse, steps.WithholdReply, steps.RefuseReply)


class Watch:
    """One invariant."""

    name = ""

    def opened(self, world: World) -> None:
        """A new run begins."""

    def happened(self, world: World, happened: Record) -> None:
        """Something is about to be told."""

    def asked(self, world: World, happened: Record, step: Record) -> None:
        """A step was asked for and is not carried out yet."""

    def asked_too_late(self, step: Record) -> None:
        """An inbox whose context is over asked for something."""

    def rest(self, world: World) -> None:
        """All steps of one happening were asked for."""

    def end(self, world: World) -> None:
        """Everything that can end has ended well."""

    def require(self, holds: object, what: str) -> None:
        if not holds:
            raise Violation(self.name, what)


class NothingLost(Watch):
    """What was admitted is with the host, ended by a decision or a newer update, or shown as uncertain."""

    name = "nothing lost"

    def end(self, world: World) -> None:
        shown = {item.message_id for item in world.inbox.uncertain()}
        for one in world.known().values():
            if one.admitted is not None and one.kind not in (
                entries.DISCARDED,
                entries.REPLACED,
                entries.REPLY_RECEIVED,
            ):
                self.require(one.message_id in world.held or one.message_id in shown, f"{one.message_id} is {one.kind}")


class PlacedOnce(Watch):
    """Nobody gets a message twice, unless a person said so."""

    name = "placed once"

    def __init__(self) -> None:
        self.chosen: set[str] = set()

    def happened(self, world: World, happened: Record) -> None:
        if isinstance(happened, happenings.PlaceChosen):
            self.chosen.add(happened.message_id)

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if isinstance(step, steps.Place):
            for one in step.batch:
                again = one.message_id in world.held and one.message_id not in self.chosen
                self.require(not again, f"{one.message_id} is placed again")


class CheckpointFirst(Watch):
    """Nothing takes effect that is not durable."""

    name = "checkpoint first"

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if not isinstance(step, (steps.Place, steps.SendReply, steps.GiveReply)):
            return
        durable = {(entry.message_id, entry.kind) for entry in world.disk}
        if isinstance(step, steps.Place):
            for one in step.batch:
                both = {(one.message_id, entries.ADMITTED), (one.message_id, entries.HANDED)} <= durable
                self.require(both, f"{one.message_id} goes to the host before that is on record")
        elif isinstance(step, steps.SendReply):
            by = [e.body["by"] for e in world.disk if (e.message_id, e.kind) == (step.ask_id, entries.ANSWERING)]
            self.require(step.reply_id in by, f"{step.reply_id} leaves before that is on record")
        elif isinstance(step, steps.GiveReply):
            self.require((step.message_id, entries.REPLY_RECEIVED) in durable, f"{step.message_id} is given unrecorded")


class OrderKept(Watch):
    """Breadcrumbs first, then as admitted; nothing overtakes what waits for the same."""

    name = "order kept"

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if isinstance(step, steps.Place):
            orders = {message_id: one.order for message_id, one in world.known().items()}
            places = [(one.delivery != "passive", orders[one.message_id]) for one in step.batch]
            self.require(places == sorted(places), f"handed over as {[one.message_id for one in step.batch]}")
        for entry in step.entries if isinstance(step, steps.Checkpoint) else ():
            if entry.kind == entries.HANDED:
                self._look_for_rivals(world, entry.message_id)

    def _look_for_rivals(self, world: World, message_id: str) -> None:
        known, message = world.known(with_storing=True), world.messages[message_id].message
        # One that came just now is behind all others.
        order = known[message_id].order if message_id in known else len(world.disk) + world.made
        for other in world.inbox.staged() if not message.is_passive else ():
            is_rival = other.inbound.message.delivery == message.delivery or not world.is_in_turn
            if is_rival and not other.inbound.message.is_passive:
                self.require(known[other.message_id].order > order, f"{message_id} overtakes {other.message_id}")


class NothingRevived(Watch):
    """A question that was answered, expired or retired is never open again, in no later run either."""

    name = "nothing revived"

    def __init__(self) -> None:
        self.over: set[str] = set()

    def opened(self, world: World) -> None:
        self.over = {one.message_id for one in world.known().values() if one.fact in CLOSING_FACTS}

    def happened(self, world: World, happened: Record) -> None:
        if isinstance(happened, happenings.ReplyEnded) and happened.is_accepted:
            self.over.add(happened.ask_id)
        if isinstance(happened, AskEnded) and world.inbox.is_live and happened.message_id in world.arrived:
            self.over.add(happened.message_id)

    def rest(self, world: World) -> None:
        self.over |= {one.message_id for one in world.known().values() if one.fact in CLOSING_FACTS}
        for view in world.inbox.tracker.views():
            self.require(view.message_id not in self.over, f"{view.message_id} is open again")


class RepliedOnce(Watch):
    """While a reply may have left, its question is never answered by a bare reply."""

    name = "replied once"

    def __init__(self) -> None:
        self.left: dict[str, str] = {}

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if isinstance(step, steps.SendReply):
            self.left[step.ask_id] = step.reply_id

    def happened(self, world: World, happened: Record) -> None:
        if isinstance(happened, happenings.ReplyEnded) and happened.is_accepted is False:
            self.left.pop(happened.ask_id, None)

    def rest(self, world: World) -> None:
        try:
            meant = world.inbox.tracker.resolve().message_id
        except NoPendingAsk:
            return
        self.require(meant not in self.left, f"a bare reply would answer {meant} again")


class NothingStale(Watch):
    """What was begun for another generation neither stores nor places."""

    name = "nothing stale"

    def __init__(self) -> None:
        self.is_late = self.was_live = False

    def asked_too_late(self, step: Record) -> None:
        self.require(isinstance(step, _ANSWERS_TO_STALE), f"the old context asks for {step}")

    def happened(self, world: World, happened: Record) -> None:
        self.is_late, self.was_live = world.is_late, world.inbox.is_live

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if self.is_late or not self.was_live:
            self.require(isinstance(step, _ANSWERS_TO_STALE), f"{type(happened).__name__} leads to {step}")


class OneWake(Watch):
    """A recovered backlog wakes once, on its last item; no turn is woken into."""

    name = "one wake"

    def __init__(self) -> None:
        self.wakes, self.is_recovering = 0, False

    def opened(self, world: World) -> None:
        self.wakes, self.is_recovering = 0, True

    def happened(self, world: World, happened: Record) -> None:
        quiet = (
            happenings.Recovered,
            happenings.Checkpointed,
            happenings.HostPlaced,
            happenings.PlacementFound,
            happenings.PlacementAbsent,
            happenings.PlacementUnknown,
        )
        self.is_recovering = self.is_recovering and isinstance(happened, quiet)

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if isinstance(step, steps.Wake):
            self.wakes += 1
            self.require(not (world.is_in_turn and world.abilities.turn_end), "a host is woken that works")
            if self.is_recovering:
                self.require(self.wakes == 1, "recovery wakes twice")
                self.require(not world.inbox.staged(), "recovery wakes before its last item")


class Woken(Watch):
    """Nobody is left with unread work that nothing wakes for."""

    name = "woken"

    def __init__(self) -> None:
        self.unwoken: set[str] = set()

    def opened(self, world: World) -> None:
        # Only what this run places: what an earlier one placed is in the host's own history.
        self.unwoken = set()

    def happened(self, world: World, happened: Record) -> None:
        placed = list(happened.placements) if isinstance(happened, happenings.HostPlaced) else []
        if isinstance(happened, happenings.PlacementFound):
            placed = [happened.message_id]
        self.unwoken |= {one for one in placed if not world.messages[one].message.is_passive}

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if isinstance(step, steps.Wake):
            self.unwoken = set()

    def end(self, world: World) -> None:
        if world.abilities.wake and not world.is_in_turn:
            self.require(self.unwoken <= world.read, f"nothing wakes for {self.unwoken - world.read}")


class AdmittedOnce(Watch):
    """An ID that is on record, by whatever end, is never admitted again."""

    name = "admitted once"

    def asked(self, world: World, happened: Record, step: Record) -> None:
        known = world.known(with_storing=True)
        for entry in step.entries if isinstance(step, steps.Checkpoint) else ():
            if entry.kind in (entries.ADMITTED, entries.REPLY_RECEIVED):
                one = known.get(entry.message_id)
                self.require(one is None or not one.kind, f"{entry.message_id} is admitted again")


class FailedTurn(Watch):
    """A failed turn retires only questions whose text it had read."""

    name = "failed turn"

    def asked(self, world: World, happened: Record, step: Record) -> None:
        for entry in step.entries if isinstance(step, steps.Checkpoint) else ():
            if entry.body.get("reason") == "turn_failed":
                self.require(entry.message_id in world.read_in_turn, f"{entry.message_id} is retired unread")


class ShutdownJoins(Watch):
    """Whoever detaches leaves nothing half done."""

    name = "shutdown joins"

    def asked(self, world: World, happened: Record, step: Record) -> None:
        if isinstance(step, steps.Detach):
            waiting = len(world.storing) + len(world.calls) + len(world.finds) + len(world.leaving)
            self.require(not waiting, f"{waiting} things are under way")
        if world.is_closing and isinstance(happened, happenings.Arrived):
            handed = isinstance(step, steps.Checkpoint) and any(e.kind == entries.HANDED for e in step.entries)
            self.require(not handed, "a new message is offered during shutdown")


class TrueReceipts(Watch):
    """Nothing is said to be placed that the host does not have, nothing replaced that it was handed."""

    name = "true receipts"

    def asked(self, world: World, happened: Record, step: Record) -> None:
        for entry in step.entries if isinstance(step, steps.Checkpoint) else ():
            if entry.kind == entries.PLACED:
                self.require(entry.message_id in world.held, f"{entry.message_id} is not with the host")
            if entry.kind == entries.REPLACED:
                one = world.known(with_storing=True)[entry.message_id]
                self.require(one.kind in (entries.ADMITTED, entries.QUEUED), f"{entry.message_id} was {one.kind}")


class FirstTarget(Watch):
    """At the start of a turn a bare reply means the first unresolved question that was shown."""

    name = "first target"

    def __init__(self) -> None:
        self.has_started = False

    def happened(self, world: World, happened: Record) -> None:
        self.has_started = isinstance(happened, happenings.TurnStarted)

    def rest(self, world: World) -> None:
        if not self.has_started or not world.inbox.is_live:
            return
        shown = [view for view in world.inbox.tracker.views() if view.is_shown and not view.reply_id]
        if shown:
            meant = world.inbox.tracker.resolve().message_id
            self.require(shown[0].is_target and meant == shown[0].message_id, f"a bare reply means {meant}")


class Agreement(Watch):
    """When nothing is under way, memory holds what the journal would bring back."""

    name = "agreement"

    def __init__(self) -> None:
        self.has_failed = False

    def opened(self, world: World) -> None:
        self.has_failed = False

    def happened(self, world: World, happened: Record) -> None:
        self.has_failed |= isinstance(happened, happenings.CheckpointFailed)

    def rest(self, world: World) -> None:
        if self.has_failed or world.storing or world.calls or world.finds or world.leaving or not world.inbox.is_live:
            return
        known = sorted(world.known().values(), key=lambda one: one.order)
        staged = [one.message_id for one in known if one.kind in (entries.ADMITTED, entries.QUEUED)]
        uncertain = [one.message_id for one in known if one.kind == entries.UNCERTAIN]
        asks = [one.message_id for one in known if one.is_open_ask]
        self.require([one.message_id for one in world.inbox.staged()] == staged, f"staged: {staged}")
        self.require([one.message_id for one in world.inbox.uncertain()] == uncertain, f"uncertain: {uncertain}")
        self.require([view.message_id for view in world.inbox.tracker.views()] == asks, f"asks: {asks}")


WATCHES = (
    NothingLost,
    PlacedOnce,
    CheckpointFirst,
    OrderKept,
    NothingRevived,
    RepliedOnce,
    NothingStale,
    OneWake,
    Woken,
    AdmittedOnce,
    FailedTurn,
    ShutdownJoins,
    TrueReceipts,
    FirstTarget,
    Agreement,
)
