"""Rules that no exchange of frames shows: what a writer refuses, who is accepted, what is printed, logged, flushed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from intercomd.edges.listener.accepting import Acceptor
from libintercom.errors import TooLarge
from libintercom.wire.frames import MAX_FRAME_BYTES, frame
from tests.support.covering import covers
from tests.support.ctl import Ctl
from tests.support.daemon import running_daemon
from tests.support.raw_peer import RawPeer
from tests.support.sayings import register, replace, send
from tests.support.waiting import wait_until, wait_until_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.daemon import Daemon

# Appears in no name, id or path of a run.
SECRET = "Zaubernuss"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    # It must not leave between two tests.
    with running_daemon(environment={"PI_INTERCOM_IDLE_EXIT_S": "none"}) as started:
        yield started


@covers("1-writer-limit", "1-limit")
def test_writer_refuses_what_is_over_the_limit():
    assert len(frame(b"x" * MAX_FRAME_BYTES)) == MAX_FRAME_BYTES + 4
    with pytest.raises(TooLarge, match=r"Intercom message too large \(1048577 bytes; max 1048576\)"):
        frame(b"x" * (MAX_FRAME_BYTES + 1))


class Records:
    """A log that keeps what was written."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str, dict[str, object]]] = []

    def write(self, level: str, what: str, parts: dict[str, object]) -> None:
        self.written.append((level, what, parts))


@covers("14.7-peer-uid")
def test_connection_of_another_user_is_refused_and_logged(tmp_path: Path):
    log = asyncio.run(_connect_as_other(f"{tmp_path}/s"))
    assert [(level, parts["uid"], parts["pid"]) for level, _what, parts in log.written] == [
        ("warning", os.getuid(), os.getpid())
    ]


async def _connect_as_other(path: str) -> Records:
    log, admitted = Records(), []
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen()
    listening.setblocking(False)
    # Whoever connects here is another user than the one that is served.
    acceptor = Acceptor(listening, asyncio.get_running_loop(), log, lambda finish: finish(), os.getuid() + 1)
    acceptor.start(admitted.append, admitted.extend)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.connect(path)
        stranger.setblocking(False)
        await wait_until_async(lambda: log.written, "the refusal to be logged")
        assert stranger.recv(1) == b""
    acceptor.close()
    assert not admitted
    return log


@covers("8.6-start-line")
def test_start_line_is_printed(daemon: Daemon):
    line = f"Intercom broker started (pid: {daemon.pid})\n"
    wait_until(lambda: line in daemon.stdout(), "the start line")


@covers("14.15-no-bodies")
def test_log_holds_no_bodies():
    with running_daemon(environment={"PI_INTERCOM_LOG_LEVEL": "debug"}) as daemon:
        with RawPeer(daemon.socket_path) as alice, RawPeer(daemon.socket_path) as bob:
            alice.say(register("alice"))
            bob.say(register("bob"))
            alice.hear(), bob.hear()
            alice.say(send("bob", "m1", SECRET), send("nobody", "m2", SECRET), send("bob", "m1", f"{SECRET} again"))
            assert {alice.hear()["type"] for _answer in range(3)} == {"delivered", "delivery_failed"}
            assert bob.hear()["message"]["content"]["text"] == SECRET
            alice.say({"type": "nope", "text": SECRET})
            assert alice.hear_payload() == b""
        daemon.stop()
        assert "connection ended" in _logged(daemon)
        assert SECRET not in _logged(daemon)


def _logged(daemon: Daemon) -> str:
    # Every file but the sockets: what was rotated away counts too.
    files = (path for path in Path(daemon.directory).iterdir() if path.is_file())
    return "".join(path.read_text(errors="replace") for path in files)


@covers("14.13-flushed")
def test_sigterm_flushes_the_stage():
    with running_daemon(environment={"PI_INTERCOM_STAGE_DELAY_S": "60"}) as daemon:
        with RawPeer(daemon.socket_path) as alice, RawPeer(daemon.socket_path) as bob:
            alice.say(register("alice"))
            bob.say(register("bob", status="idle"))
            alice.hear(), bob.hear()
            alice.say(replace("bob", "m1", "t", "the last word"))
            assert alice.hear()["type"] == "delivery_queued"
            os.kill(daemon.pid, signal.SIGTERM)
            assert bob.hear()["message"]["content"]["text"] == "the last word"
            assert bob.hear_payload() == b""
        assert daemon.wait_exit() == 0


@covers("9.2-own-programs", "9.2-observer-scope")
def test_command_line_sees_as_the_session_whose_shell_it_runs_in(daemon: Daemon):
    with RawPeer(daemon.socket_path) as main, RawPeer(daemon.socket_path) as kid, RawPeer(daemon.socket_path) as other:
        main.say(register("main", id="main-of-one", rootSessionId="main-of-one"))
        kid.say(register("kid", id="kid-of-one", rootSessionId="main-of-one", parentSessionId="main-of-one"))
        other.say(register("other", id="other-main"))
        main.hear(), kid.hear(), other.hear()
        assert _mains_seen(Ctl(daemon.directory)) == ["main", "other"]
        lineage = {"PI_INTERCOM_ROOT_SESSION_ID": "main-of-one", "PI_INTERCOM_PARENT_SESSION_ID": "main-of-one"}
        assert _mains_seen(Ctl(daemon.directory, **lineage)) == ["main"]
        only_root = Ctl(daemon.directory, PI_INTERCOM_ROOT_SESSION_ID="main-of-one").run("list", "--json")
        assert only_root.status == 2


def _mains_seen(ctl: Ctl) -> list[str]:
    return sorted(row["name"] for row in ctl.run("list", "--json").json["mains"])
