"""An event loop in a thread of its own, for programs without one.

Owns calling a coroutine from another thread, the end of the thread, and that a program which ends without a word still
ends in order. Does not own what runs there (``blocking``).
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future

from libintercom.session.errors import Forked, NotLive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    T = TypeVar("T")


class LoopThread:
    """A running loop. No daemon: the program ends only when ``stop`` was asked for, or its main thread has ended.

    ``on_abandoned`` is called on the loop when the main thread ended without ``stop``; it must bring ``stop`` about.
    """

    def __init__(self, on_abandoned: Callable[[], object]) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._on_abandoned = on_abandoned
        self._thread = threading.Thread(target=self._turn, name="intercom-session")
        self._thread.start()
        _WATCH.add(self)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, run on the loop. An interrupted wait cancels it.

        Raises:
            Forked: the loop is in the program that this one was forked from.
            NotLive: the loop has ended.
            RuntimeError: called on the loop itself, where waiting would never end.

        """
        checked = self._checked(coroutine)
        future: Future[T] = Future()
        # Not run_coroutine_threadsafe: an interrupt that falls inside it would leave nothing to cancel.
        try:
            self._loop.call_soon_threadsafe(_start, checked, future)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def finish(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Run a last coroutine, to its end whatever interrupts the wait for it, and end the thread behind it."""
        future = asyncio.run_coroutine_threadsafe(self._checked(coroutine), self._loop)
        future.add_done_callback(lambda _future: self.stop())
        try:
            future.result()
        finally:
            # The thread ends by itself even when this wait is interrupted.
            self._thread.join()

    def stop(self) -> None:
        """End the loop, from whichever thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def check_owner(self) -> None:
        """Raises Forked in a program forked from the one that made this."""
        if os.getpid() != self._pid:
            raise Forked(self._pid)

    def _checked(self, coroutine: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        try:
            self.check_owner()
            self._check_caller()
        except BaseException:
            coroutine.close()
            raise
        return coroutine

    def _check_caller(self) -> None:
        if not self.is_running:
            raise NotLive("use it", "has left")
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError("a blocking session was called from its own callback: use another thread")

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            _WATCH.drop(self)
            _cancel_all(self._loop)
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def abandon(self) -> None:
        """The main thread has ended; from whichever thread."""
        try:
            self._loop.call_soon_threadsafe(self._on_abandoned)
        except RuntimeError:
            # It was closed: somebody did stop it.
            pass


class _Watch:
    """Loops to be told when the main thread ends.

    The interpreter then joins every thread that is no daemon, and would wait for ever for a session that nobody leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: set[LoopThread] = set()
        self._pid = 0

    def add(self, loop: LoopThread) -> None:
        with self._lock:
            self._loops.add(loop)
            if self._pid != os.getpid():
                # The first here; after a fork, the first in this program.
                self._pid = os.getpid()
                threading.Thread(target=self._wait, name="intercom-session-watch", daemon=True).start()

    def drop(self, loop: LoopThread) -> None:
        with self._lock:
            self._loops.discard(loop)

    def _wait(self) -> None:
        threading.main_thread().join()
        with self._lock:
            left = list(self._loops)
        for loop in left:
            loop.abandon()


_WATCH = _Watch()


def _start(coroutine: Coroutine[Any, Any, T], future: Future[T]) -> None:
    """Run a coroutine for a caller in another thread, who may have given up already, or may yet."""
    if future.cancelled():
        coroutine.close()
        return
    loop = asyncio.get_running_loop()
    task = loop.create_task(coroutine)
    task.add_done_callback(lambda done: _hand_over(done, future))
    future.add_done_callback(lambda ended: _give_up(loop, task, ended))


def _hand_over(done: asyncio.Task[T], future: Future[T]) -> None:
    failure = asyncio.CancelledError() if done.cancelled() else done.exception()
    if not future.set_running_or_notify_cancel():
        # Nobody waits any more.
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(done.result())


def _give_up(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T], ended: Future[T]) -> None:
    if ended.cancelled():
        loop.call_soon_threadsafe(task.cancel)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
