"""A router between a fake listener and a fake spool, run the way the shell runs it, on a clock moved by hand.

Owns turns: decide, apply, flush until nothing is observed. Does not own who says what (``conversation``).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from intercomd.core import effects, events
from intercomd.core.limits import Limits
from intercomd.core.router import Router
from libintercom.wire.messages import BrokerHello
from tests.support.fake_listener import FakeListener
from tests.support.spelling import spell_out

if TYPE_CHECKING:
    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from intercomd.core.items import Item
    from tests.support.matching import Json

# Where the monotonic and the wall clock stand at the beginning; far apart, so that mixing them up shows.
START_S = 5_000.0
START_AT_MS = 1_700_000_000_000

# More deadlines than one stretch of time can rightly hold: a router that never lets go of a deadline fails here.
_MAX_DEADLINES = 10_000

HELLO = BrokerHello(
    program="intercomd", version="0.0.0", pid=4242, start_identity=None, starter="test", incarnation="incarnation-1"
)


def make_router(now: float = START_S, incarnation: str = "", **limits: Json) -> Router:
    """A router with a fixed hello, or that of another ``incarnation``; ``limits`` differ from the defaults."""
    hello = HELLO.replace(incarnation=incarnation) if incarnation else HELLO
    return Router(Limits(**limits), hello, START_AT_MS, now)


class Rig:
    """Events go in, effects are carried out by fakes. ``spool``: "stores", "fails", or "waits" for ``stores()``."""

    def __init__(self, router: Router) -> None:
        self.now = START_S
        self.router = router
        self.listener = FakeListener()
        self.log: list[effects.Log] = []
        self.exit: effects.Exit | None = None
        self.spool = "stores"
        # What the spool was given and has not answered for, and what it keeps.
        self.unstored: list[effects.Store] = []
        self.unforgotten: list[str] = []
        self.kept_items: dict[str, Item] = {}
        self._void: set[str] = set()
        # What the endpoint does when it is to be given up: "releases" it, or "waits" for an event by hand.
        self.endpoint = "releases"
        self._queue: deque[Event] = deque()

    @property
    def at_ms(self) -> int:
        return START_AT_MS + round((self.now - START_S) * 1000)

    def run(self, *happened: Event) -> None:
        """Take a turn: these events, and everything the edges then observe."""
        self._queue.extend(happened)
        while True:
            while self._queue:
                self.decide(self._queue.popleft())
            self._queue.extend(self.listener.flush())
            if not self._queue and not self.read_on():
                return

    def decide(self, event: Event) -> None:
        """One event, and its effects carried out."""
        for effect in self.router.handle(event, self.now):
            for one in spell_out(effect):
                self.carry_out(one)

    def read_on(self) -> bool:
        """What a resumed connection or backlog still holds; True when something was decided."""
        return False

    def advance(self, seconds: float) -> None:
        """Let time pass; every deadline on the way fires at its own moment."""
        end = self.now + seconds
        for _round in range(_MAX_DEADLINES):
            deadline = self.router.next_deadline()
            if deadline is None or deadline > end:
                self.now = end
                return
            self.fire(deadline)
        raise AssertionError(f"{_MAX_DEADLINES} deadlines within {seconds} s")

    def fire(self, deadline: float) -> None:
        """The timer fires at ``deadline``, or now if that is later."""
        self.now = max(self.now, deadline)
        for effect in self.router.handle_deadline(self.now):
            self.carry_out(effect)
        self.run()

    def carry_out(self, effect: Effect) -> None:
        """Hand one effect to the fake it is for."""
        if isinstance(effect, effects.Log):
            self.log.append(effect)
        elif isinstance(effect, effects.Forget):
            # What was asked for before it happens before it.
            self._forget(effect)
        elif isinstance(effect, effects.Store):
            self.unstored.append(effect)
            if self.spool != "waits":
                self._queue.extend(self.store_answers(is_stored=self.spool == "stores"))
        elif isinstance(effect, effects.Exit):
            self.exit = effect
        else:
            self.listener.apply(effect)
            if isinstance(effect, effects.StopAccepting) and self.endpoint == "releases":
                self._queue.append(events.EndpointReleased())

    def store_answers(self, *, is_stored: bool) -> list[Any]:
        """What the spool says about everything it was given and has not answered for."""
        waiting, self.unstored = self.unstored, []
        failure = "" if is_stored else "disk full"
        forgotten = [events.Forgotten(key, failure) for key in self.unforgotten]
        self.unforgotten = []
        if not is_stored:
            return [*(events.StoreFailed(effect.item.key, failure) for effect in waiting), *forgotten]
        kept = [effect.item for effect in waiting if effect.item.key not in self._void]
        self.kept_items.update((item.key, item) for item in kept)
        return [*(events.Stored(effect.item.key) for effect in waiting), *forgotten]

    def _forget(self, effect: effects.Forget) -> None:
        key = effect.key
        self.kept_items.pop(key, None)
        if effect.is_answered:
            self.unforgotten.append(key)
            if self.spool != "waits":
                self._queue.extend(self.store_answers(is_stored=self.spool == "stores"))
        if any(effect.item.key == key for effect in self.unstored):
            self._void.add(key)
