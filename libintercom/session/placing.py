"""Calling a host: one call after the other, in the order in which they were asked for, each with its end.

Owns the order, the time limit, and turning how a call ended into a happening of the inbox. A host that raises what its
contract does not know is unsure, never the end of the session. Does not own what to place (``inbox``).
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque

from libintercom.session import happenings, host
from libintercom.session.faults import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from libintercom.session.host import Host, HostInput
    from libintercom.wire.record import Record

    # A call of the host, and what its end (a finished task, or None when it took too long) means for the inbox.
    HostCall = tuple[Callable[[], Any], Callable[["asyncio.Task[Any] | None"], "Record | None"]]

# Far above what any host needs to take a batch in; a call that hangs longer is given up, and its batch is uncertain.
HOST_TIMEOUT_S = 30.0
TOO_LONG = "the host did not answer in time"


class Placing:
    """The calls of one host. ``tell`` hears how each ended; ``on_failure`` why one did not go through."""

    def __init__(
        self,
        target: Host,
        tell: Callable[[Record], object],
        on_failure: Callable[[str], object],
        timeout_s: float = HOST_TIMEOUT_S,
    ) -> None:
        self._host, self._tell, self._on_failure, self._timeout_s = target, tell, on_failure, timeout_s
        self._calls: deque[HostCall] = deque()
        self._working: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        return self._working is None

    def place(self, batch: Sequence[HostInput]) -> None:
        ids = tuple(one.message_id for one in batch)
        self._add(lambda: self._host.place(batch), lambda task: self._judge_placement(ids, task))

    def wake(self) -> None:
        self._add(self._host.wake, self._judge_wake)

    def find(self, message_id: str) -> None:
        self._add(lambda: self._begin_finding(message_id), lambda task: self._judge_finding(message_id, task))

    def abandon(self) -> None:
        """Forget what was asked for; a call under way is given up."""
        self._calls.clear()
        if self._working is not None:
            self._working.cancel()
            # One that had not begun clears nothing itself.
            self._working = None

    # ------------------------------------------------------------------ one after the other

    def _add(self, call: Callable[[], Any], judge: Callable[[asyncio.Task[Any] | None], Record | None]) -> None:
        self._calls.append((call, judge))
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._calls:
                call, judge = self._calls.popleft()
                reach("session.placing")
                happened = judge(await self._call(call))
                reach("session.answered")
                if happened is not None:
                    self._tell(happened)
        finally:
            self._working = None

    async def _call(self, call: Callable[[], Any]) -> asyncio.Task[Any] | None:
        # A task of its own keeps whatever the host raises.
        task = asyncio.get_running_loop().create_task(settle(call))
        try:
            await asyncio.wait([task], timeout=self._timeout_s)
        finally:
            if not task.done():
                task.cancel()
        return task if task.done() else None

    def _begin_finding(self, message_id: str) -> Any:
        reach("start.asking")
        return self._host.find_placement(message_id)

    # ------------------------------------------------------------------ what an end means

    def _judge_placement(self, ids: tuple[str, ...], task: asyncio.Task[Any] | None) -> Record | None:
        failure = _failure_of(task)
        if isinstance(failure, host.HostRefused):
            return happenings.HostRefused(message_ids=ids, reason=self._say(failure))
        if task is None or failure is not None:
            return happenings.HostUnsure(message_ids=ids, reason=self._say(failure))
        entries = {key: entry for key, entry in task.result().entries.items() if key in ids}
        return happenings.HostPlaced(placements=entries) if entries else None

    def _judge_finding(self, message_id: str, task: asyncio.Task[Any] | None) -> Record:
        failure = _failure_of(task)
        reach("start.told")
        if task is None or failure is not None:
            return happenings.PlacementUnknown(message_id=message_id, reason=self._say(failure))
        found = task.result()
        if isinstance(found, host.Placed):
            return happenings.PlacementFound(message_id=message_id, placement=found.entry_id)
        if isinstance(found, host.Absent):
            return happenings.PlacementAbsent(message_id=message_id)
        return happenings.PlacementUnknown(message_id=message_id, reason=getattr(found, "reason", ""))

    def _judge_wake(self, task: asyncio.Task[Any] | None) -> None:
        failure = _failure_of(task)
        if task is None or failure is not None:
            self._say(failure)

    def _say(self, failure: BaseException | None) -> str:
        if failure is None:
            reason = TOO_LONG
        elif isinstance(failure, (host.HostFailed, host.HostRefused)):
            reason = str(failure)
        else:
            reason = f"{type(failure).__name__}: {failure}"
        self._on_failure(reason)
        return reason


async def settle(call: Callable[[], Any]) -> Any:
    """What a host answers, awaited where its method is a coroutine; it raises inside the task that runs this."""
    result = call()
    return await result if inspect.isawaitable(result) else result


def _failure_of(task: asyncio.Task[Any] | None) -> BaseException | None:
    if task is None:
        return None
    return asyncio.CancelledError() if task.cancelled() else task.exception()
