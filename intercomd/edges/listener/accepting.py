"""The listening socket: who is let in, when nobody is, and giving the endpoint up.

Owns the accept loop, the check of the peer's user and the reserve descriptor. Does not own what becomes of an accepted
socket (``listener``), nor binding and unlinking the path (``binding``, the ownership edge).
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from intercomd.core.events import DescriptorsExhausted, EndpointReleased, StopCancelled
from libintercom.endpoint import read_peer

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable, Iterator

    from intercomd.core.effects import StopAccepting
    from intercomd.core.events import Event
    from intercomd.ports import Log, Report

    # Make a connection of an accepted, non-blocking socket.
    Admit = Callable[[socket.socket], Event]
    # Take the endpoint's names away, then call back; it may have to come back to it, but never blocks.
    Withdraw = Callable[[Callable[[], None]], None]

# Accepted in one turn: the core pauses accepting when too many have not registered, and must hear of them in time.
_ACCEPTS_PER_TURN = 16
# accept(2): the process, the system or the kernel has no room for another socket.
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Acceptor:
    """Accepts on ``listening``, which is bound, listening and non-blocking. Starts paused."""

    def __init__(
        self, listening: socket.socket, loop: asyncio.AbstractEventLoop, log: Log, withdraw: Withdraw, uid: int
    ) -> None:
        self._listening, self._loop, self._log, self._withdraw, self._uid = listening, loop, log, withdraw, uid
        self.is_accepting = False
        self._has_stopped = False
        self._has_no_room = False
        # Given up when descriptors run out, so that a log or a probe can still be opened.
        self._reserve = _open_reserve()

    def start(self, admit: Admit, report: Report) -> None:
        """Begin to accept; each socket of our own user goes to ``admit``, whose event is reported."""
        self._admit, self._report = admit, report
        self.resume()

    def pause(self, _effect: object = None) -> None:
        """Leave who comes in the backlog."""
        if self.is_accepting:
            self._loop.remove_reader(self._listening.fileno())
            self.is_accepting = False

    def resume(self, _effect: object = None) -> None:
        """Accept again; after a stop there is nothing to resume."""
        if self.is_accepting or self._has_stopped:
            return
        if self._reserve < 0:
            self._reserve = _open_reserve()
        self._loop.add_reader(self._listening.fileno(), self._accept_some)
        self.is_accepting = True

    def stop(self, effect: StopAccepting) -> None:
        """Give the endpoint up and report ``EndpointReleased``, or ``StopCancelled`` where somebody waits."""
        if self._has_stopped:
            return
        self.pause()
        # Without a descriptor for a newcomer there is none: who waits will come to the next broker.
        waiting = self._admit_some(1) if effect.is_cancellable else []
        if waiting:
            self.resume()
            self._report([*waiting, StopCancelled()])
            return
        self._has_stopped = True
        self._withdraw(self._finish_stop)

    def replace(self, listening: socket.socket) -> None:
        """Serve another socket at the same path; who waits at the former one is closed and tries again."""
        was_accepting = self.is_accepting
        self.pause()
        self._dismiss_backlog()
        self._listening.close()
        self._listening = listening
        if was_accepting:
            self.resume()

    def close(self) -> None:
        """Stop at once, without giving anything up in order."""
        self.pause()
        self._has_stopped = True
        self._listening.close()
        self._release_reserve()

    def _accept_some(self) -> None:
        observed = self._admit_some(_ACCEPTS_PER_TURN)
        if self._has_no_room:
            # Asking again would find the same at once: the core says when.
            self.pause()
            self._release_reserve()
            observed.append(DescriptorsExhausted())
        if observed:
            self._report(observed)

    def _admit_some(self, limit: int) -> list[Event]:
        """Let in those of our own user who wait; what is to be reported of them."""
        observed: list[Event] = []
        for connected in self._accept(limit):
            if not self._is_own(connected):
                continue
            try:
                observed.append(self._admit(connected))
            except OSError as error:
                # The system watches no more descriptors (epoll_ctl(2): ENOSPC, ENOMEM); this one may try again.
                connected.close()
                self._fail(error)
                break
        return observed

    def _accept(self, limit: int) -> Iterator[socket.socket]:
        """Those who wait, at most ``limit``; afterwards ``_has_no_room`` says whether descriptors ended it."""
        self._has_no_room = False
        for _ in range(limit):
            try:
                connected, _address = self._listening.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                # Gone before its turn.
                continue
            except OSError as error:
                self._fail(error)
                return
            connected.setblocking(False)
            yield connected

    def _fail(self, error: OSError) -> None:
        """Whatever it is, asking again at once would find the same."""
        self._has_no_room = True
        if error.errno not in _NO_ROOM:
            self._log.write("error", "accepting failed", {"reason": error.strerror})

    def _is_own(self, connected: socket.socket) -> bool:
        try:
            uid, pid = read_peer(connected)
        except OSError:
            # macOS does not tell any more of a peer that is gone already.
            connected.close()
            return False
        if uid == self._uid:
            return True
        self._log.write("warning", "refused another user", {"uid": uid, "pid": pid})
        connected.close()
        return False

    def _finish_stop(self) -> None:
        """Nobody finds the path any more: send away who found it before."""
        self._dismiss_backlog()
        self._listening.close()
        self._release_reserve()
        self._report([EndpointReleased()])

    def _dismiss_backlog(self) -> None:
        # Closing the listening socket sends away those for whom there is no descriptor.
        while waiting := list(self._accept(_ACCEPTS_PER_TURN)):
            for connected in waiting:
                connected.close()

    def _release_reserve(self) -> None:
        reserve, self._reserve = self._reserve, -1
        if reserve >= 0:
            os.close(reserve)


def _open_reserve() -> int:
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # None is left even for this; accepting will find the same and wait to be told.
        return -1
