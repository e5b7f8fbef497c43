"""Bugs planted in the inbox and its parts, each of which must break one invariant where the explorer sees it.

Owns the plants. Does not own finding them (``test_planted``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libintercom.session import states, steps
from libintercom.session.admissions import Admissions
from libintercom.session.answers import Answers
from libintercom.session.backlog import IN_FLIGHT, STAGED, Backlog
from libintercom.session.desk import Desk
from libintercom.session.handovers import Handovers
from libintercom.session.inbox import Inbox
from libintercom.session.tracker import Tracker
from tests.stateful.planted import Plant

if TYPE_CHECKING:
    from collections.abc import Callable


def _nothing(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_arguments, **_named: None


def _always(answer: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda _original: lambda *_arguments, **_named: answer


def _lose_refused(_original: Callable[..., Any]) -> Callable[..., Any]:
    def refused(self: Handovers, message_ids: Any, _reason: str) -> None:
        for item in self._with_host(message_ids):
            self._backlog.drop(item)

    return refused


def _drop_by_name(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, item: original(self, self.find(item.message_id) or item)


def _offer_lost_again(_original: Callable[..., Any]) -> Callable[..., Any]:
    def lost(self: Handovers, message_id: str, _reason: str) -> None:
        self.refused([message_id], "it cannot tell")

    return lost


def _place_lost(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, message_id, _reason: self.placed({message_id: "h"})


def _go_on_at_once(original: Callable[..., Any]) -> Callable[..., Any]:
    def checkpoint(self: Desk, told: Any, stored: Any, failed: Any) -> None:
        original(self, told, _nothing(stored), failed)
        stored()

    return checkpoint


def _go_on_after_failure(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, entry_ids, _reason: original(self, entry_ids, None)


def _last_first(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: original(self)[::-1]


def _overtake(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, item: self.is_open and self.is_due(item)


def _forget_doubt(original: Callable[..., Any]) -> Callable[..., Any]:
    def take_back(self: Tracker, message_id: str, reply_id: str) -> None:
        self._doubted.clear()
        original(self, message_id, reply_id)

    return take_back


def _wake_for_each(_original: Callable[..., Any]) -> Callable[..., Any]:
    def wake(self: Handovers) -> None:
        if self._abilities.wake:
            self._desk.ask(steps.Wake())

    return wake


def _retire_all(_original: Callable[..., Any]) -> Callable[..., Any]:
    def end_turn(self: Answers, *, is_ok: bool) -> None:
        for ask in self.tracker.asks if not is_ok else ():
            self.end(ask.message_id, "turn_failed")

    return end_turn


def _replace_anything(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, thread: [item for item in self if thread and item.thread == thread]


def _detach_at_once(_original: Callable[..., Any]) -> Callable[..., Any]:
    def detach(self: Inbox) -> None:
        if self._is_closing and self.is_live:
            self.context = states.invalidate(self.context)
            self._desk.ask(steps.Detach())

    return detach


def _aim_at_last(_original: Callable[..., Any]) -> Callable[..., Any]:
    def aim(self: Tracker) -> None:
        shown = [ask.message_id for ask in self.asks if ask.message_id in self._shown]
        self._target = shown[-1] if self._is_in_turn and shown else ""
        self.asks.activate(self._target)

    return aim


def _any_generation(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, _generation: isinstance(context, states.Live)


def _keep_staged(_original: Callable[..., Any]) -> Callable[..., Any]:
    def keep(self: Handovers, found: Any) -> None:
        for item, _placement in found:
            self._backlog.move(item, STAGED)

    return keep


def _stage_uncertain(original: Callable[..., Any]) -> Callable[..., Any]:
    def lost(self: Handovers, message_id: str, reason: str) -> None:
        original(self, message_id, reason)
        for item in self._backlog:
            self._backlog.move(item, item.state if item.state in IN_FLIGHT else STAGED)

    return lost


def _skip_shutdown(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _self: None


PLANTS = (
    Plant("what the host refused is forgotten", "nothing lost", "handing over", Handovers, "refused", _lose_refused),
    Plant("a repeated message is dropped by name", "nothing lost", "replacing", Backlog, "drop", _drop_by_name),
    Plant("what is in doubt is offered again", "placed once", "doubt", Handovers, "lost", _offer_lost_again),
    Plant("what was placed is offered again", "placed once", "handing over", Handovers, "_keep", _keep_staged),
    Plant("effects do not wait", "checkpoint first", "handing over", Desk, "checkpoint", _go_on_at_once),
    Plant("a failure counts as success", "checkpoint first", "questions", Desk, "settle", _go_on_after_failure),
    Plant("the backlog is turned round", "order kept", "recovery", Handovers, "_due_items", _last_first),
    Plant("a newcomer overtakes", "order kept", "handing over", Handovers, "can_hand_at_once", _overtake),
    Plant("an answered question stays open", "nothing revived", "questions", Tracker, "close", _nothing),
    Plant("an end before admission is forgotten", "nothing revived", "early ends", Answers, "end_early", _nothing),
    Plant("a doubted reply is forgotten", "replied once", "questions", Tracker, "take_back_reply", _forget_doubt),
    Plant("a reply that left is not remembered", "replied once", "questions", Tracker, "doubt_reply", _nothing),
    Plant("a late callback counts", "nothing stale", "contexts", states, "is_current", _any_generation),
    Plant("every placement wakes", "one wake", "recovery", Handovers, "_wake", _wake_for_each),
    Plant("nobody is woken", "woken", "handing over", Handovers, "_wake", _nothing),
    Plant("a known message is new", "admitted once", "contexts", Admissions, "_known_as", _always("")),
    Plant("a failed turn retires everything", "failed turn", "turns", Answers, "end_turn", _retire_all),
    Plant("shutdown waits for nothing", "shutdown joins", "contexts", Inbox, "_detach_when_done", _detach_at_once),
    Plant("shutdown goes on offering", "shutdown joins", "contexts", Handovers, "close", _skip_shutdown),
    Plant("what is in doubt counts as placed", "true receipts", "doubt", Handovers, "lost", _place_lost),
    Plant("what was handed is replaced", "true receipts", "replacing", Backlog, "staged_of", _replace_anything),
    Plant("a bare reply means the last question", "first target", "turns", Tracker, "_aim", _aim_at_last),
    Plant("what is in doubt is listed as staged", "agreement", "doubt", Handovers, "lost", _stage_uncertain),
)
