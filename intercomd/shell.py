"""The one loop: an event goes to the core, its effects go to the edges, and what the edges observed comes back.

Owns the order of all that, the one timer, and what happens on a bug. Does not own any decision (``core``) nor any
input or output (``edges``, which are handed in).

There is one queue and one consumer. Everything between taking an event and having applied its effects is synchronous,
so no two events ever interleave. Output is flushed when the queue is empty, and what flushing shows is handled before
anything else, so that an acknowledgement follows its message in the same turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from intercomd.core import effects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from intercomd.ports import Clock, Listener, Log, Spool, Timer

    class Core(Protocol):
        """What the shell drives; ``core.router.Router`` is one."""

        def handle(self, event: Event, now: float) -> list[Effect]: ...
        def next_deadline(self) -> float | None: ...
        def handle_deadline(self, now: float) -> list[Effect]: ...


# A timer that fires later than this means that the loop stood still (suspend, SIGSTOP, a freezer): whoever seems late
# may have spoken in time, so sockets are read first (ownership.md section 5).
LAG_S = 1.0
# Rounds of the loop that reading may take then; each reads 64 KiB of every connection that has something.
_CATCH_UP_ROUNDS = 100
# After a bug in a deadline the core may ask for the same one again at once.
_BUG_PAUSE_S = 1.0
# Bugs in one turn, beyond which the rest of the turn waits for a moment, and others have the processor.
_MAX_BUGS = 100

_FOR_LISTENER = (
    effects.Deliver,
    effects.Write,
    effects.WriteRows,
    effects.Close,
    effects.PauseReading,
    effects.ResumeReading,
    effects.PauseAccepting,
    effects.ResumeAccepting,
    effects.StopAccepting,
)


class Shell:
    """Runs one core on its edges until the core asks to exit; ``exit_status`` is then a number."""

    def __init__(self, core: Core, listener: Listener, spool: Spool, log: Log, clock: Clock) -> None:
        self._core, self._listener, self._spool, self._log, self._clock = core, listener, spool, log, clock
        self._queue: deque[Event] = deque()
        # What is being handled, and its effects that are not applied yet: where to go on after a bug.
        self._cause: Event | None = None
        self._steps: Iterator[Effect] = iter(())
        self._is_draining = False
        self._now = clock.now()
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._is_due = False
        self._not_before = 0.0
        self._is_catching_up = False
        self._has_heard = False
        self.exit_status: int | None = None
        self._ended: asyncio.Future[int] | None = None
        self._apply: dict[type[Any], Callable[[Any], None]] = {
            **dict.fromkeys(_FOR_LISTENER, listener.apply),
            effects.Store: spool.apply,
            effects.Forget: spool.apply,
            effects.Log: self._write_log,
            effects.Exit: self._exit,
        }

    async def run(self) -> int:
        """Serve until ``Exit``; its status."""
        self._ended = asyncio.get_running_loop().create_future()
        self.start()
        return await self._ended

    def start(self) -> None:
        """Begin to listen, take over what was spooled, and arm the timer for what the core waits for already.

        No socket is looked at before this returns: nobody meets a broker that does not know yet what was left to it.
        """
        self._listener.start(self.push)
        self._spool.start(self.push)
        self._drain()

    def push(self, events: Iterable[Event]) -> None:
        """Take events in. They are handled before this returns, unless it is called from within a turn."""
        if self.exit_status is None:
            self._queue.extend(events)
            self._has_heard = True
            if not self._is_draining:
                self._drain()

    def _drain(self) -> None:
        """Take a turn. A bug costs the connection that caused it, and the turn goes on behind it."""
        self._is_draining = True
        self._now = max(self._now, self._clock.now())
        try:
            for _ in range(_MAX_BUGS):
                try:
                    self._take_turn()
                    return
                except Exception as error:  # noqa: BLE001 - the broker lives on; one of the two places that may do so
                    self._confess(error)
            self._clock.call_at(self._now + _BUG_PAUSE_S, self._drain)
        finally:
            self._is_draining = False

    def _take_turn(self) -> None:
        """Apply what is left to apply, handle what is queued and flush, until nothing is observed any more."""
        queue, apply, handle, flush = self._queue, self._apply, self._core.handle, self._listener.flush
        while True:
            for effect in self._steps:
                apply[type(effect)](effect)
            if queue:
                self._cause = queue.popleft()
                self._steps = iter(handle(self._cause, self._now))
                continue
            self._cause = None
            self._now = max(self._now, self._clock.now())
            if self._is_due:
                self._is_due = False
                self._steps = iter(self._handle_deadline())
                continue
            queue.extend(flush())
            if not queue:
                break
        if self.exit_status is None:
            self._arm()
        else:
            self._end(self.exit_status)

    def _confess(self, error: Exception) -> None:
        cause, self._cause = self._cause, None
        conn = getattr(cause, "conn", None)
        if conn is not None:
            self._steps = iter([*self._steps, effects.Close(conn, "a bug of the broker")])
        self._log.report_bug(error, cause)

    # -- effects for nobody's connection -------------------------------------------------------------

    def _write_log(self, effect: effects.Log) -> None:
        self._log.write(effect.level, effect.what, effect.parts)

    def _exit(self, effect: effects.Exit) -> None:
        self._log.write("info", "exiting", {"status": effect.status, "reason": effect.reason})
        self.exit_status = effect.status

    def _end(self, status: int) -> None:
        """Everything went out that the kernel took."""
        self._listener.close()
        self._spool.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(status)

    # -- deadlines -----------------------------------------------------------------------------------

    def _arm(self) -> None:
        """See to it that the timer fires at the next deadline, or earlier: then it is set again."""
        deadline = self._core.next_deadline()
        if deadline is None or self._is_catching_up:
            return
        deadline = max(deadline, self._not_before)
        if self._timer is not None:
            if self._timer_at <= deadline:
                return
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._clock.call_at(deadline, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._clock.now() - self._timer_at > LAG_S:
            self._is_catching_up = True
            self._catch_up(_CATCH_UP_ROUNDS)
        else:
            self._meet_deadline()

    def _catch_up(self, rounds: int) -> None:
        """Let every socket be read until nobody says anything more, then look at the time."""
        self._has_heard = False

        def look() -> None:
            if self._has_heard and rounds > 1:
                self._catch_up(rounds - 1)
            else:
                self._meet_deadline()

        self._clock.call_soon(look)

    def _meet_deadline(self) -> None:
        self._is_catching_up = False
        if self.exit_status is None:
            self._is_due = True
            self._drain()

    def _handle_deadline(self) -> list[Effect]:
        """What the core does about what is due. A timer may fire early by a clock's grain, the core never acts so."""
        deadline = self._core.next_deadline()
        if deadline is None or deadline > max(self._now, self._timer_at):
            return []
        self._now = max(self._now, deadline)
        self._not_before = self._now + _BUG_PAUSE_S
        due = self._core.handle_deadline(self._now)
        self._not_before = 0.0
        return due
