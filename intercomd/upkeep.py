"""Staying the owner: the regular look whether the path still leads here, and what follows (ownership.md section 5).

Owns when to look, carrying a probe from the path to our own listener, and leaving the endpoint without blocking the
loop. Does not own what is concluded (``edges.ownership.selfcheck``) nor the files (``edges.ownership.holding``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from intercomd.edges.ownership import selfcheck
from intercomd.edges.ownership.holding import LEAVE_DEADLINE_S, TOUCH_INTERVAL_S
from intercomd.edges.ownership.outcomes import ALREADY, CLAIMED
from libintercom.endpoint import CONNECTED, PROBE_NONCE_BYTES, probe
from libintercom.errors import IntercomError

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable
    from typing import Protocol

    from intercomd.edges.ownership.holding import Ownership
    from intercomd.ports import Log
    from libintercom.endpoint import Attempt

    class Endpoint(Protocol):
        """What the listener offers: seeing a nonce arrive, and serving another socket."""

        @property
        def is_accepting(self) -> bool: ...
        def expect(self, nonce: bytes, seen: Callable[[], None]) -> None: ...
        def forget(self, nonce: bytes) -> None: ...
        def replace(self, listening: socket.socket) -> None: ...


# The first other look after one that proved nothing, or when somebody held a lock: long enough for a start to be over.
_RETRY_S = 1.0
# Between two tries to take the start lock when leaving; it is held for milliseconds.
_LOCK_RETRY_S = 0.01


class Upkeep:
    """Looks every ``CHECK_INTERVAL_S`` and when asked; calls ``leave``, with a reason, when it is not the owner."""

    def __init__(
        self,
        ownership: Ownership,
        endpoint: Endpoint,
        loop: asyncio.AbstractEventLoop,
        log: Log,
        leave: Callable[[str], None],
    ) -> None:
        self._ownership, self._endpoint, self._loop, self._log, self._leave = ownership, endpoint, loop, log, leave
        self._timer: asyncio.TimerHandle | None = None
        self._touched_at = loop.time()
        self._retry_s = _RETRY_S
        # What was logged last of each kind, since it may stay true for days.
        self._told: dict[str, dict[str, object]] = {}
        self._is_looking = False
        self._has_ended = False

    def start(self) -> None:
        self._again(selfcheck.CHECK_INTERVAL_S)

    def stop(self) -> None:
        """Look no more: the endpoint is being given up."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """Probe the path now; what follows is decided once the probe arrived or too long did not."""
        if self._has_ended or self._is_looking:
            return
        self._is_looking = True
        nonce = os.urandom(PROBE_NONCE_BYTES)
        waiting = _Waiting()
        self._endpoint.expect(nonce, lambda: self._settle(waiting, nonce, is_back=True))
        waiting.found = probe(self._ownership.places.socket, nonce)
        # Where the system says that another program listens there, no nonce will come back.
        is_foreign = waiting.found.peer_pid not in (None, os.getpid())
        if waiting.found.outcome == CONNECTED and not is_foreign:
            timeout = self._loop.call_later(
                selfcheck.NONCE_TIMEOUT_S, lambda: self._settle(waiting, nonce, is_back=False)
            )
            waiting.timeout = timeout
        else:
            self._settle(waiting, nonce, is_back=None)

    def withdraw(self, done: Callable[[], None]) -> None:
        """Take our names away and call ``done``; where a lock stays held, leave the files and go on."""
        self.stop()
        end = self._loop.time() + LEAVE_DEADLINE_S

        def attempt() -> None:
            if self._has_withdrawn() or self._loop.time() >= end:
                done()
            else:
                self._loop.call_later(_LOCK_RETRY_S, attempt)

        attempt()

    def _has_withdrawn(self) -> bool:
        try:
            return self._ownership.withdraw()
        except (OSError, IntercomError) as error:
            self._log.write("error", "files left behind", {"reason": str(error)})
            return True

    def _settle(self, waiting: _Waiting, nonce: bytes, *, is_back: bool | None) -> None:
        self._endpoint.forget(nonce)
        self._is_looking = False
        if waiting.timeout is not None:
            waiting.timeout.cancel()
        if self._has_ended or waiting.found is None:
            return
        echo = selfcheck.Echo(
            outcome=waiting.found.outcome,
            peer_pid=waiting.found.peer_pid,
            is_nonce_back=is_back,
            is_accepting=self._endpoint.is_accepting,
            is_adopted=False,
        )
        try:
            self._follow(selfcheck.decide(self._ownership.check(), echo))
        except OSError as error:
            # A directory that was closed to us, a full disk: the next look may find it mended.
            self._tell("error", "self-check failed", {"reason": str(error)})
            self._retry()

    def _follow(self, decision: str) -> None:
        if decision != selfcheck.KEEP:
            self._tell("warning", "self-check", {"decision": decision, "path": self._ownership.places.socket})
        if decision == selfcheck.LEAVE:
            self._leave("somebody else serves the path")
        elif decision == selfcheck.REPUBLISH:
            self._republish()
        elif decision == selfcheck.KEEP or (decision == selfcheck.RESTORE_RECORD and self._ownership.restore_record()):
            self._rest()
        else:
            self._retry()

    def _republish(self) -> None:
        outcome = self._ownership.republish()
        if outcome is None:
            self._endpoint.replace(self._ownership.listening)
            self._log.write("info", "published again", {"path": self._ownership.places.socket})
            self._rest()
        elif outcome.kind == ALREADY:
            self._leave(outcome.reason)
        else:
            self._tell("warning", "not published again", {"kind": outcome.kind, "reason": outcome.reason})
            self._retry() if outcome.kind == CLAIMED else self._again(selfcheck.CHECK_INTERVAL_S)

    def _touch(self) -> None:
        if self._loop.time() - self._touched_at < TOUCH_INTERVAL_S:
            return
        self._touched_at = self._loop.time()
        try:
            self._ownership.touch()
        except OSError as error:
            self._log.write("warning", "files not touched", {"reason": error.strerror})

    def _rest(self) -> None:
        """Everything is in its place."""
        self._told.clear()
        self._retry_s = _RETRY_S
        self._touch()
        self._again(selfcheck.CHECK_INTERVAL_S)

    def _retry(self) -> None:
        """Look again in a moment, and then less and less soon."""
        self._again(self._retry_s)
        self._retry_s = min(2 * self._retry_s, selfcheck.CHECK_INTERVAL_S)

    def _tell(self, level: str, what: str, parts: dict[str, object]) -> None:
        """Log it, unless nothing changed since it was logged last."""
        if self._told.get(what) != parts:
            self._told[what] = parts
            self._log.write(level, what, parts)

    def _again(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._has_ended:
            self._timer = self._loop.call_later(delay_s, self.look)


class _Waiting:
    """One probe on its way."""

    def __init__(self) -> None:
        self.found: Attempt | None = None
        self.timeout: asyncio.TimerHandle | None = None
