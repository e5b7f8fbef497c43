"""The dialer on real sockets: whose they are, full backlogs, sandboxes, and the probe of a broker's own path."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from libintercom import endpoint
from libintercom.endpoint import attempt, dial, dial_nonblocking, probe, read_peer
from libintercom.errors import Busy, ForeignOwner, NotPermitted, NotRunning
from tests.support.executables import ROOT
from tests.support.sandbox import as_user, needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from libintercom.paths import Places


@pytest.fixture
def listener(places: Places, runtime: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(places.socket)
        listening.listen(1)
        yield listening


def fill(path: str) -> list[socket.socket]:
    """Connections that take every place of the backlog."""
    held = []
    while True:
        seen = attempt(path, timeout_s=0.0)
        if seen.connection is None:
            assert seen.outcome == endpoint.BUSY
            return held
        held.append(seen.connection)


def test_a_connection_to_our_own_user(places: Places, listener: socket.socket) -> None:
    with dial(places.socket) as blocking, dial_nonblocking(places.socket) as nonblocking:
        assert blocking.getblocking()
        assert not nonblocking.getblocking()
        accepted = listener.accept()[0]
        with accepted:
            assert read_peer(accepted) == (os.getuid(), os.getpid())
        assert accepted.fileno() == -1


def test_a_socket_without_listener(places: Places, listener: socket.socket) -> None:
    listener.close()
    assert attempt(places.socket).outcome == endpoint.REFUSED
    with pytest.raises(NotRunning, match="no listener behind the socket"):
        dial(places.socket)


def test_a_full_backlog_is_busy_and_not_absent(places: Places, listener: socket.socket) -> None:
    held = fill(places.socket)
    before = time.monotonic()
    with pytest.raises(Busy, match=r"stayed full for 0\.05 s"):
        dial(places.socket, timeout_s=0.05)
    assert 0.04 < time.monotonic() - before < 1.0
    with pytest.raises(Busy):
        dial_nonblocking(places.socket)
    for connection in held:
        connection.close()


def test_a_backlog_that_empties_lets_the_waiting_one_in(places: Places, listener: socket.socket) -> None:
    held = fill(places.socket)

    def nap(_seconds: float) -> None:
        listener.accept()[0].close()

    seen = attempt(places.socket, timeout_s=1.0, sleep=nap)
    assert seen.outcome == endpoint.CONNECTED
    for connection in [*held, seen.require()]:
        connection.close()


def test_a_datagram_socket_is_no_broker(places: Places, runtime: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(places.socket)
        assert attempt(places.socket).outcome == endpoint.FAILED


@needs_root
def test_a_socket_of_another_user(places: Places, listener: socket.socket) -> None:
    os.chown(places.socket, 65534, 65534)
    with pytest.raises(ForeignOwner, match="the socket belongs to uid 65534"):
        dial(places.socket)


@needs_root
def test_a_listener_of_another_user(places: Places, listener: socket.socket) -> None:
    """The file is ours, whoever listens is not: the kernel says who called listen()."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        as_user(65534)
        listener.listen(5)
        ours.close()
        theirs.send(b"x")
        theirs.recv(1)
        os._exit(0)
    theirs.close()
    try:
        assert ours.recv(1) == b"x"
        with pytest.raises(ForeignOwner, match="its listener belongs to uid 65534"):
            dial(places.socket)
    finally:
        # The child reads the end of the file, and ends.
        ours.close()
        os.waitpid(child, 0)


@needs_root
def test_a_directory_of_another_user_is_not_permitted(places: Places, listener: socket.socket) -> None:
    assert outcome_in_child(places.socket, "as_user(65534)") == "not_permitted EACCES"


def test_a_sandbox_that_forbids_connecting_is_not_permitted(places: Places, listener: socket.socket) -> None:
    assert outcome_in_child(places.socket, "forbid_connecting()") == "not_permitted EPERM"


def outcome_in_child(path: str, restriction: str) -> str:
    """What dialing says in a program that was restricted first, and that it is the error NotPermitted."""
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from libintercom.endpoint import attempt
from libintercom.errors import NotPermitted
from tests.support.sandbox import as_user, forbid_connecting
uid = os.getuid()
{restriction}
seen = attempt({path!r}, uid=uid)
assert isinstance(seen.error(), NotPermitted)
assert "not running" not in str(seen.error())
print(seen.outcome, seen.found)
"""
    ended = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_not_permitted_is_an_error_of_its_own() -> None:
    assert not issubclass(NotPermitted, NotRunning)


def test_a_probe_arrives_at_our_own_listener_and_names_us(places: Places, listener: socket.socket) -> None:
    nonce = os.urandom(endpoint.PROBE_NONCE_BYTES)
    seen = probe(places.socket, nonce)
    assert (seen.outcome, seen.peer_pid, seen.connection) == (endpoint.CONNECTED, os.getpid(), None)
    with listener.accept()[0] as accepted:
        assert accepted.recv(100) == endpoint.PROBE_PREAMBLE + nonce
        assert accepted.recv(100) == b""


def test_a_probe_of_a_path_that_leads_elsewhere(places: Places, listener: socket.socket) -> None:
    """Another program took the path: the probe meets its pid, and our listener sees nothing."""
    os.unlink(places.socket)
    assert probe(places.socket, b"n" * 16).outcome == endpoint.ABSENT
    code = f"""
import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind({places.socket!r}); s.listen(5)
print("up", flush=True); sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "up\n"
        seen = probe(places.socket, b"n" * 16)
        assert (seen.outcome, seen.peer_pid) == (endpoint.CONNECTED, other.pid)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_probe_of_a_full_backlog_does_not_wait(places: Places, listener: socket.socket) -> None:
    held = fill(places.socket)
    before = time.monotonic()
    assert probe(places.socket, b"n" * 16).outcome == endpoint.BUSY
    assert time.monotonic() - before < 0.5
    for connection in held:
        connection.close()
