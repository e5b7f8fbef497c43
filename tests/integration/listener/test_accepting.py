"""The listening socket: admission, pausing, exhausted descriptors, giving the endpoint up, and serving another."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.core.effects import StopAccepting
from intercomd.core.events import ConnectionAccepted, DescriptorsExhausted, EndpointReleased, StopCancelled
from intercomd.edges.listener import accepting
from intercomd.edges.listener.accepting import Acceptor
from tests.integration.listener.conftest import LOOPS
from tests.support.daemon import runtime_directory
from tests.support.fakes import FakeLog
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from intercomd.core.events import Event

AT_MS = 5


class Desk:
    """An acceptor on a real path, with the clients that come to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: str) -> None:
        self.loop, self.directory = loop, directory
        self.log = FakeLog()
        self.observed: list[Event] = []
        self.admitted: list[socket.socket] = []
        self.clients: list[socket.socket] = []
        self.withdrawals: list[Callable[[], None]] = []
        self.uid = os.getuid()
        self.listening = self.bind("a.sock")
        self.acceptor = Acceptor(self.listening, loop, self.log, self.withdrawals.append, self.uid)
        self.acceptor.start(self._admit, self.observed.extend)

    def bind(self, name: str) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.setblocking(False)
        listening.bind(f"{self.directory}/{name}")
        listening.listen(64)
        return listening

    def _admit(self, connected: socket.socket) -> Event:
        assert not connected.getblocking()
        self.admitted.append(connected)
        return ConnectionAccepted(len(self.admitted), AT_MS)

    def call(self, name: str = "a.sock") -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.setblocking(False)
        client.connect(f"{self.directory}/{name}")
        self.clients.append(client)
        return client

    def run_until(self, predicate: Callable[[], object], what: str) -> None:
        self.loop.run_until_complete(wait_until_async(predicate, what))

    def await_events(self, count: int) -> list[Event]:
        self.run_until(lambda: len(self.observed) >= count, f"{count} events")
        found = list(self.observed)
        self.observed.clear()
        assert len(found) == count, found
        return found

    def is_ended(self, client: socket.socket) -> bool:
        try:
            return client.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.acceptor.close()
        for each in (*self.admitted, *self.clients):
            each.close()
        self.loop.close()


@pytest.fixture(params=list(LOOPS))
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with runtime_directory() as directory:
        made = Desk(LOOPS[request.param](), directory)
        yield made
        made.close()


def test_everybody_of_our_own_user_is_admitted(desk: Desk) -> None:
    for _ in range(40):
        desk.call()
    desk.run_until(lambda: len(desk.observed) == 40, "forty connections")
    assert desk.observed == [ConnectionAccepted(number, AT_MS) for number in range(1, 41)]


def test_another_user_is_refused_and_logged_and_never_reported(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "read_peer", lambda _connected: (desk.uid + 1, 77))
    client = desk.call()
    desk.run_until(lambda: desk.is_ended(client), "the refusal")
    assert desk.observed == []
    assert desk.log.records == [("warning", "refused another user", {"uid": desk.uid + 1, "pid": 77})]


def test_pausing_leaves_who_comes_in_the_backlog(desk: Desk) -> None:
    desk.acceptor.pause()
    desk.acceptor.pause()
    client = desk.call()
    desk.loop.run_until_complete(asyncio.sleep(0.05))
    assert desk.observed == []
    assert not desk.is_ended(client)
    desk.acceptor.resume()
    desk.acceptor.resume()
    assert desk.await_events(1) == [ConnectionAccepted(1, AT_MS)]


class NoRoom:
    """A listening socket whose accept fails for want of descriptors, until ``has_room``."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening, self.has_room, self.tries = listening, False, 0

    def accept(self) -> Any:
        self.tries += 1
        if not self.has_room:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listening.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listening, name)


def test_without_descriptors_it_says_so_once_and_waits_to_be_told(desk: Desk) -> None:
    desk.acceptor._listening = room = NoRoom(desk.listening)  # type: ignore[assignment]
    desk.call()
    assert desk.await_events(1) == [DescriptorsExhausted()]
    assert not desk.acceptor.is_accepting
    desk.loop.run_until_complete(asyncio.sleep(0.05))
    assert room.tries == 1
    # The descriptor that was kept for this moment is free for a log or a probe.
    assert desk.acceptor._reserve == -1
    room.has_room = True
    desk.acceptor.resume()
    assert desk.await_events(1) == [ConnectionAccepted(1, AT_MS)]
    assert desk.acceptor._reserve >= 0


def test_stopping_withdraws_first_then_sends_everybody_away(desk: Desk) -> None:
    desk.acceptor.stop(StopAccepting("SIGTERM"))
    desk.acceptor.stop(StopAccepting("again"))
    waiting = [desk.call() for _ in range(40)]
    assert desk.observed == []
    assert len(desk.withdrawals) == 1
    os.unlink(f"{desk.directory}/a.sock")
    desk.withdrawals[0]()
    assert desk.observed == [EndpointReleased()]
    assert all(desk.is_ended(client) for client in waiting)
    assert desk.admitted == []
    desk.acceptor.resume()
    assert not desk.acceptor.is_accepting


def test_an_idle_stop_is_cancelled_by_who_waits(desk: Desk) -> None:
    desk.acceptor.pause()
    client = desk.call()
    desk.acceptor.resume()
    desk.acceptor.stop(StopAccepting("idle", is_cancellable=True))
    assert desk.observed == [ConnectionAccepted(1, AT_MS), StopCancelled()]
    assert desk.withdrawals == []
    assert desk.acceptor.is_accepting
    assert not desk.is_ended(client)


def test_an_idle_stop_with_nobody_waiting_goes_on(desk: Desk) -> None:
    desk.acceptor.stop(StopAccepting("idle", is_cancellable=True))
    assert len(desk.withdrawals) == 1


def test_another_endpoint_can_be_served(desk: Desk) -> None:
    desk.acceptor.pause()
    stale = desk.call()
    desk.acceptor.resume()
    desk.acceptor.replace(desk.bind("b.sock"))
    assert desk.is_ended(stale)
    desk.call("b.sock")
    assert desk.await_events(1) == [ConnectionAccepted(1, AT_MS)]


class Failing(NoRoom):
    """A listening socket whose first accept fails as it is told."""

    def __init__(self, listening: socket.socket, error: OSError) -> None:
        super().__init__(listening)
        self._errors = [error]

    def accept(self) -> Any:
        self.tries += 1
        if self._errors:
            raise self._errors.pop()
        return self._listening.accept()


def test_a_caller_that_gave_up_costs_nobody_else_anything(desk: Desk) -> None:
    error = ConnectionAbortedError(errno.ECONNABORTED, "Software caused connection abort")
    desk.acceptor._listening = Failing(desk.listening, error)  # type: ignore[assignment]
    desk.call()
    assert desk.await_events(1) == [ConnectionAccepted(1, AT_MS)]


def test_a_listener_that_fails_is_left_alone_for_a_while(desk: Desk) -> None:
    desk.acceptor._listening = Failing(desk.listening, OSError(errno.EPERM, "no"))  # type: ignore[assignment]
    desk.call()
    assert desk.await_events(1) == [DescriptorsExhausted()]
    assert [(level, what) for level, what, _ in desk.log.records] == [("error", "accepting failed")]
    desk.acceptor.resume()
    assert desk.await_events(1) == [ConnectionAccepted(1, AT_MS)]


def test_a_caller_whose_user_cannot_be_read_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_connected: socket.socket) -> tuple[int, int | None]:
        raise OSError(errno.ENOTCONN, "Socket is not connected")

    with monkeypatch.context() as patch:
        patch.setattr(accepting, "read_peer", refuse)
        client = desk.call()
        desk.run_until(lambda: desk.is_ended(client), "the refusal")
    desk.call()
    assert desk.await_events(1) == [ConnectionAccepted(1, AT_MS)]


def test_who_cannot_be_watched_is_sent_away_and_the_others_are_reported(desk: Desk) -> None:
    """epoll_ctl(2): the system has a bound on how many descriptors are watched."""

    def admit(connected: socket.socket) -> Event:
        event = desk._admit(connected)
        if len(desk.admitted) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return event

    desk.acceptor._admit = admit
    desk.acceptor.pause()
    clients = [desk.call() for _ in range(2)]
    desk.acceptor.resume()
    assert desk.await_events(2) == [ConnectionAccepted(1, AT_MS), DescriptorsExhausted()]
    assert desk.is_ended(clients[1])
    assert not desk.is_ended(clients[0])
