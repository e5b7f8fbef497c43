"""Who gets in: only our own user, and only as many as there are descriptors for."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.support import sayings as say
from tests.support.daemon import running_daemon
from tests.support.raw_peer import RawPeer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.daemon import Daemon

# "nobody" everywhere that matters here; it owns nothing.
FOREIGN_UID = 65534
# Enough for the broker itself and some clients.
DESCRIPTORS = 48


def speak_as(uid: int, path: str) -> bytes:
    """What a client of another user gets to read after it registered; ``b"!"`` when it could not connect."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        heard = b"!"
        try:
            os.setresuid(uid, uid, uid)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.settimeout(5)
                peer.connect(path)
                heard = b"."
                peer.sendall(b"\x00\x00\x00\x02{}")
                heard += peer.recv(100)
        except ConnectionError:
            pass
        finally:
            os.write(write_end, heard)
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        heard = pipe.read()
    os.waitpid(child, 0)
    return heard


@pytest.mark.skipif(os.getuid() != 0, reason="only root can speak as another user")
def test_another_user_is_refused_and_logged(daemon: Daemon) -> None:
    os.chmod(daemon.directory, 0o711)
    os.chmod(daemon.socket_path, 0o666)
    try:
        assert speak_as(FOREIGN_UID, daemon.socket_path) == b"."
    finally:
        os.chmod(daemon.directory, 0o700)
        os.chmod(daemon.socket_path, 0o600)
    record = wait_until(
        lambda: next((r for r in daemon.log_records() if r["what"] == "refused another user"), None), "the refusal"
    )
    assert record["uid"] == FOREIGN_UID
    with RawPeer(daemon.socket_path) as ann:
        answer = ann.join(say.register("ann", ext=1))
        ann.say(say.stats())
        # The refused one was never a connection.
        assert ann.hear()["gauges"]["connections"] == 1
        assert answer["sessionId"]


def test_without_descriptors_accepting_pauses_and_goes_on() -> None:
    lowered = ("sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh")
    with running_daemon("--idle-exit-s", "60", prefix=lowered) as daemon:
        joined = [RawPeer(daemon.socket_path) for _ in range(DESCRIPTORS)]
        for number, peer in enumerate(joined):
            peer.say(say.register(f"s{number}"))
        paused = wait_until(
            lambda: [r for r in daemon.log_records() if r["what"] == "accepting paused"], "accepting to pause"
        )
        assert paused[0]["reason"] == "descriptors"
        # Those in the backlog are served as others leave.
        while joined:
            peer = joined.pop(0)
            assert peer.hear()["type"] == "registered"
            peer.socket.close()
        with RawPeer(daemon.socket_path) as late:
            late.join(say.register("late"))
