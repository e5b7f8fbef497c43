"""The pollers alone: what is ready is told, and what is not watched is left alone."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

import pytest

from intercomd.edges.listener.polling import EpollPoller, SelectorPoller, make_poller
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from intercomd.edges.listener.polling import Poller

    Ready = tuple[int, bool, bool]


class Watch:
    """A poller on a loop, with what it told. ``on_ready`` may be replaced."""

    def __init__(self, poller: Poller) -> None:
        self.poller, self.loop = poller, asyncio.SelectorEventLoop()
        self.told: list[Ready] = []
        self.on_ready: Callable[[int, bool, bool], None] = lambda *ready: self.told.append(ready)
        # Those whose peers are gone.
        self.gone: list[int] = []
        self.on_gone: Callable[[list[int]], None] = self.gone.extend
        poller.start(self.loop, self._hear, self._hear_gone)
        self._sockets: list[socket.socket] = []

    def _hear(self, fd: int, is_readable: bool, is_writable: bool) -> None:
        self.on_ready(fd, is_readable, is_writable)

    def _hear_gone(self, fds: list[int]) -> None:
        self.on_gone(fds)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        pair = socket.socketpair()
        for each in pair:
            each.setblocking(False)
        self._sockets += pair
        return pair

    def run_until(self, predicate: Callable[[], object], what: str) -> None:
        self.loop.run_until_complete(wait_until_async(predicate, what))

    def close(self) -> None:
        self.poller.close()
        self.loop.close()
        for each in self._sockets:
            each.close()


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def watch(request: pytest.FixtureRequest) -> Iterator[Watch]:
    made = Watch(request.param())
    yield made
    made.close()


def stuff(full: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            full.send(b"x" * 4096)


def drain(reading: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            reading.recv(1 << 20)


def test_this_system_has_epoll() -> None:
    poller = make_poller()
    assert isinstance(poller, EpollPoller)


def test_readable_and_writable_are_told_apart(watch: Watch) -> None:
    ours, theirs = watch.pair()
    fd = ours.fileno()
    watch.poller.watch(fd, reading=True, writing=False)
    theirs.send(b"x")
    watch.run_until(lambda: watch.told, "a readable socket")
    assert set(watch.told) == {(fd, True, False)}
    watch.poller.watch(fd, reading=False, writing=True)
    watch.told.clear()
    watch.run_until(lambda: watch.told, "a writable socket")
    assert set(watch.told) == {(fd, False, True)}
    watch.poller.watch(fd, reading=True, writing=True)
    watch.told.clear()
    watch.run_until(lambda: watch.told, "both")
    assert set(watch.told) == {(fd, True, True)}


def test_a_full_socket_is_not_writable_until_its_peer_reads(watch: Watch) -> None:
    ours, theirs = watch.pair()
    stuff(ours)
    watch.poller.watch(ours.fileno(), reading=False, writing=True)
    other, its_peer = watch.pair()
    watch.poller.watch(other.fileno(), reading=True, writing=False)
    its_peer.send(b"x")
    watch.run_until(lambda: watch.told, "the other socket")
    assert {fd for fd, _readable, _writable in watch.told} == {other.fileno()}
    drain(theirs)
    watch.run_until(lambda: any(fd == ours.fileno() for fd, _r, _w in watch.told), "room again")


def test_what_is_watched_for_nothing_is_left_alone(watch: Watch) -> None:
    ours, theirs = watch.pair()
    watch.poller.watch(ours.fileno(), reading=True, writing=False)
    watch.poller.watch(ours.fileno(), reading=False, writing=False)
    watch.poller.watch(ours.fileno(), reading=False, writing=False)
    theirs.send(b"x")
    theirs.close()
    other, its_peer = watch.pair()
    watch.poller.watch(other.fileno(), reading=True, writing=False)
    its_peer.send(b"x")
    watch.run_until(lambda: watch.told, "the other socket")
    assert {fd for fd, _readable, _writable in watch.told} == {other.fileno()}


def test_an_ended_peer_is_told_to_whoever_waits_for_either(watch: Watch) -> None:
    reading, its_peer = watch.pair()
    writing, other_peer = watch.pair()
    stuff(writing)
    watch.poller.watch(reading.fileno(), reading=True, writing=False)
    watch.poller.watch(writing.fileno(), reading=False, writing=True)
    its_peer.close()
    other_peer.close()
    watch.run_until(lambda: len({fd for fd, _r, _w in watch.told} | set(watch.gone)) == 2, "both ends")
    if isinstance(watch.poller, EpollPoller):
        assert not watch.told
        assert set(watch.gone) == {reading.fileno(), writing.fileno()}
    else:
        assert set(watch.told) == {(reading.fileno(), True, False), (writing.fileno(), False, True)}
        assert not watch.gone


def test_a_peer_that_only_stopped_writing_is_not_gone(watch: Watch) -> None:
    ours, theirs = watch.pair()
    watch.poller.watch(ours.fileno(), reading=True, writing=False)
    theirs.shutdown(socket.SHUT_WR)
    watch.run_until(lambda: watch.told, "its end")
    assert set(watch.told) == {(ours.fileno(), True, False)}
    assert not watch.gone


def test_one_that_is_dropped_while_others_are_told_is_not_told_itself(watch: Watch) -> None:
    pairs = [watch.pair() for _ in range(3)]
    fds = [ours.fileno() for ours, _theirs in pairs]
    for ours, theirs in pairs:
        watch.poller.watch(ours.fileno(), reading=True, writing=False)
        theirs.send(b"x")
    told: list[int] = []

    def drop_all(fd: int, _is_readable: bool, _is_writable: bool) -> None:
        told.append(fd)
        for each in fds:
            watch.poller.watch(each, reading=False, writing=False)

    watch.on_ready = drop_all
    watch.run_until(lambda: told, "the first")
    watch.loop.run_until_complete(asyncio.sleep(0))
    assert len(told) == 1


def test_whoever_speaks_does_not_wait_for_all_who_leave() -> None:
    watch = Watch(EpollPoller())
    leaving = [watch.pair() for _ in range(400)]
    speaking, its_peer = watch.pair()
    for ours, theirs in leaving:
        watch.poller.watch(ours.fileno(), reading=True, writing=False)
        theirs.close()
    watch.poller.watch(speaking.fileno(), reading=True, writing=False)
    its_peer.send(b"x")
    order: list[int] = []

    def put_aside(fds: list[int]) -> None:
        order.extend(fds)
        for fd in fds:
            watch.poller.watch(fd, reading=False, writing=False)

    watch.on_ready = lambda fd, _readable, _writable: put_aside([fd])
    watch.on_gone = put_aside
    watch.run_until(lambda: len(order) == 401, "everybody")
    # In one look, whoever speaks is told first.
    assert order[0] == speaking.fileno()
    assert sorted(order) == sorted([speaking.fileno(), *(ours.fileno() for ours, _theirs in leaving)])
    watch.close()


def test_more_than_one_turn_takes_come_in_the_next(watch: Watch) -> None:
    pairs = [watch.pair() for _ in range(1_100)]
    for ours, theirs in pairs:
        watch.poller.watch(ours.fileno(), reading=True, writing=False)
        theirs.send(b"x")
    heard: set[int] = set()

    def read(fd: int, _is_readable: bool, _is_writable: bool) -> None:
        heard.add(fd)
        watch.poller.watch(fd, reading=False, writing=False)

    watch.on_ready = read
    watch.run_until(lambda: len(heard) == len(pairs), "all of them")


def test_more_ready_ones_than_a_turn_takes_all_have_their_turn(watch: Watch) -> None:
    """None of them is read, so each stays ready."""
    watched = set()
    for _ in range(1_100):
        ours, theirs = watch.pair()
        theirs.send(b"x")
        watch.poller.watch(ours.fileno(), reading=True, writing=False)
        watched.add(ours.fileno())
    watch.run_until(lambda: {fd for fd, _, _ in watch.told} == watched, "everybody's turn")
