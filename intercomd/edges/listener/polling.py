"""Which sockets are ready: one poller of our own for all connections, itself watched by the event loop.

Owns the readiness of connections. Does not own what is done about it (``listener``).

The loop's own ``add_reader`` would do, but for two things: uvloop forgets a socket on which the kernel reports an
error, though what its peer sent before may still be unread (a peer that leaves with unread messages is such a case);
and a loop keeps a kilobyte for each socket.
"""

from __future__ import annotations

import select
import selectors
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    # Called with a descriptor, whether it can be read, and whether it takes bytes; an error counts as both.
    OnReady = Callable[[int, bool, bool], None]
    # Called with descriptors whose peers closed both ways; they are told of until they are watched for nothing.
    OnGone = Callable[[list[int]], None]
    Ready = tuple[selectors.SelectorKey, int]

# Descriptors looked at in one turn of the loop; the others come in the next one.
_MAX_READY = 1024
# Of these, peers that closed: thousands may at once, and whoever speaks then waits until so many are put aside.
_MAX_GONE = 64
# So many keep nobody waiting.
_FEW_GONE = 4


class Poller(Protocol):
    """Watches descriptors. One that is watched for neither reading nor writing is left alone altogether."""

    def start(self, loop: asyncio.AbstractEventLoop, on_ready: OnReady, on_gone: OnGone) -> None:
        """Call ``on_ready`` for each ready descriptor from now on, and ``on_gone`` for those who are gone.

        Where the system does not tell who is gone, they are ready like any other.
        """

    def watch(self, fd: int, *, reading: bool, writing: bool) -> None:
        """Watch a descriptor for exactly this. Must be told to watch for nothing before it is closed."""

    def close(self) -> None:
        """Watch nothing any more."""


class EpollPoller:
    """Linux."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, int] = {}

    def start(self, loop: asyncio.AbstractEventLoop, on_ready: OnReady, on_gone: OnGone) -> None:
        self._loop, self._on_ready, self._on_gone = loop, on_ready, on_gone
        loop.add_reader(self._epoll.fileno(), self._dispatch)

    def watch(self, fd: int, *, reading: bool, writing: bool) -> None:
        wanted = (select.EPOLLIN if reading else 0) | (select.EPOLLOUT if writing else 0)
        before = self._watched.get(fd, 0)
        if wanted == before:
            return
        if not wanted:
            del self._watched[fd]
            self._epoll.unregister(fd)
            return
        if before:
            self._epoll.modify(fd, wanted)
        else:
            self._epoll.register(fd, wanted)
        self._watched[fd] = wanted

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _dispatch(self) -> None:
        found = self._epoll.poll(0, _MAX_READY)
        gone = [fd for fd, ready in found if ready & select.EPOLLHUP]
        # A few are told of in their place: what others say behind one finds that it is gone.
        are_few = len(gone) <= _FEW_GONE
        for fd, ready in found:
            if not ready & select.EPOLLHUP:
                self._tell(fd, ready)
            elif are_few:
                self._tell_gone([fd])
        if not are_few:
            # Whoever speaks does not wait for a crowd.
            self._tell_gone(gone[:_MAX_GONE])

    def _tell(self, fd: int, ready: int) -> None:
        # What came before in this look may have ended the connection, or changed what it waits for.
        wanted = self._watched.get(fd, 0)
        if wanted:
            is_readable = bool(wanted & select.EPOLLIN and ready & ~select.EPOLLOUT)
            self._on_ready(fd, is_readable, bool(wanted & select.EPOLLOUT and ready & ~select.EPOLLIN))

    def _tell_gone(self, fds: list[int]) -> None:
        still = [fd for fd in fds if fd in self._watched]
        if still:
            self._on_gone(still)


class SelectorPoller:
    """Any other system, by whatever the standard library selects there."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        # Where the next turn begins among those that are ready.
        self._first = 0

    def start(self, loop: asyncio.AbstractEventLoop, on_ready: OnReady, _on_gone: OnGone) -> None:
        self._loop, self._on_ready = loop, on_ready
        loop.add_reader(self._fileno(), self._dispatch)

    def watch(self, fd: int, *, reading: bool, writing: bool) -> None:
        wanted = (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)
        is_watched = fd in self._selector.get_map()
        if not wanted:
            if is_watched:
                self._selector.unregister(fd)
        elif is_watched:
            self._selector.modify(fd, wanted)
        else:
            self._selector.register(fd, wanted)

    def close(self) -> None:
        self._loop.remove_reader(self._fileno())
        self._selector.close()

    def _choose(self, ready: list[Ready]) -> list[Ready]:
        """This turn's share. The kernel's own order would give the same ones every turn."""
        if len(ready) <= _MAX_READY:
            return ready
        first = self._first % len(ready)
        self._first = first + _MAX_READY
        return (ready[first:] + ready[:first])[:_MAX_READY]

    def _fileno(self) -> int:
        # epoll and kqueue can be watched themselves; a system that has neither is none of ours.
        return int(self._selector.fileno())

    def _dispatch(self) -> None:
        for key, ready in self._choose(self._selector.select(0)):
            watched = self._selector.get_map().get(key.fd)
            if watched is not None:
                wanted = ready & watched.events
                self._on_ready(key.fd, bool(wanted & selectors.EVENT_READ), bool(wanted & selectors.EVENT_WRITE))


def make_poller() -> Poller:
    """The one for this system."""
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()
