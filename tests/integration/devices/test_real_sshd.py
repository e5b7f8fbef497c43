"""The real OpenSSH server on a port of the loopback interface: a key login, faults of its processes, multiplexing.

The login is the user who runs the tests; a forced command gives it the device's own home.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from libintercom.devices.naming import DeviceTarget
from libintercom.outcomes import NOT_SENT, UNKNOWN
from tests.integration.devices.matrix import RETIRED_S, impatient
from tests.support.ctl import PROGRAM
from tests.support.fleet import Fleet, fleet, wait_gone
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.needs("ssh", "sshd", "ssh-keygen")

DEVICE = "real"


class Sshd:
    """One sshd, its host key and its configuration below the fleet's folder; its own pid file tells its sessions."""

    def __init__(self, devices: Fleet) -> None:
        self.folder = f"{devices.folder}/sshd"
        os.mkdir(self.folder, 0o700)
        self.port = _free_port()
        self._write(devices)
        # It insists on being started by its absolute path.
        words = [shutil.which("sshd") or "sshd", "-D", "-e", "-f", f"{self.folder}/config"]
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: "Server listening" in self.log(), "sshd to listen")
        devices.add_host(DEVICE, f"Port {self.port}", f"User {getpass.getuser()}")

    def log(self) -> str:
        return Path(self.folder, "log").read_text(errors="replace")

    def stop(self) -> None:
        for number in (signal.SIGCONT, signal.SIGTERM):
            self.process.send_signal(number)
        self.process.wait(10)

    def _write(self, devices: Fleet) -> None:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/host"], check=True)
        public = subprocess.run(
            ["ssh-keygen", "-y", "-f", f"{devices.folder}/key"], check=True, capture_output=True, text=True
        ).stdout
        environment = devices.devices[DEVICE].environment
        exports = "\n".join(f"export {name}='{value}'" for name, value in environment.items())
        login = Path(self.folder, "login")
        login.write_text(f'#!/bin/sh\n{exports}\ncd "$HOME"\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n')
        login.chmod(0o700)
        keys = Path(self.folder, "keys")
        keys.write_text(f'restrict,command="{login}" {public}')
        keys.chmod(0o600)
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.folder}/host",
            f"PidFile {self.folder}/pid",
            f"AuthorizedKeysFile {keys}",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "UsePAM no",
            "StrictModes no",
            "PermitRootLogin yes",
        ]
        Path(self.folder, "config").write_text("\n".join(lines) + "\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Fleet, Sshd]]:
    # Debian's sshd wants its empty folder; only root can make it, and only root may log others in.
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    with fleet(DEVICE) as devices, contextlib.ExitStack() as stack:
        sshd = Sshd(devices)
        stack.callback(sshd.stop)
        devices.devices[DEVICE].recipient("api-fix")
        devices.devices[DEVICE].recipient("silent", answers=False)
        yield devices, sshd


@pytest.fixture
def devices(shared: tuple[Fleet, Sshd]) -> Iterator[Fleet]:
    yield shared[0]
    wait_gone("ssh -F", "ssh -o")


@pytest.fixture
def sshd(shared: tuple[Fleet, Sshd]) -> Sshd:
    return shared[1]


def test_list_send_and_ask(devices: Fleet) -> None:
    ctl = devices.ctl()
    listed = ctl.run("list", "--device", DEVICE)
    assert "**Main sessions on real (2):**" in listed.out, listed
    assert ctl.run("send", f"api-fix@{DEVICE}", "x").status == 0
    assert ctl.run("ask", f"api-fix@{DEVICE}", "which?").out == "**Reply from api-fix@real:**\nanswer to which?\n"
    assert "reached; intercom-remote" in ctl.run("device", "check", DEVICE).out


def test_a_stopped_server_is_unreachable_and_nothing_was_sent(devices: Fleet, sshd: Sshd) -> None:
    sshd.process.send_signal(signal.SIGSTOP)
    try:
        with impatient():
            target = DeviceTarget("api-fix", DEVICE)
            result = devices.reach.send(target, devices.sender, "x", {"message_id": "m-stop"})
    finally:
        sshd.process.send_signal(signal.SIGCONT)
    assert (result.outcome.outcome, result.outcome.code) == (NOT_SENT, "unreachable")
    assert not any(recipient.has("m-stop") for recipient in devices.devices[DEVICE].recipients)


def sessions_of(sshd: Sshd) -> list[int]:
    """The server's own processes for connections, found by their parent."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            parent = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            if parent == sshd.process.pid:
                found.append(int(name))
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_a_session_that_dies_in_the_middle_of_an_ask(devices: Fleet, sshd: Sshd, number: signal.Signals) -> None:
    silent = devices.devices[DEVICE].recipients[1]
    message_id = f"m-{number.name}"
    ctl = devices.ctl()
    asked = subprocess.Popen(
        [PROGRAM, "ask", f"silent@{DEVICE}", "?", "--message-id", message_id, "--timeout", "60"],
        env=ctl.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: silent.has(message_id), "the question to arrive")
        struck = sessions_of(sshd)
        assert struck
        for pid in struck:
            os.kill(pid, number)
        began = time.monotonic()
        # A dead session ends the connection at once, one that stands still after two unanswered keep-alives (15 s).
        _, err = asked.communicate(timeout=30)
        took_s = time.monotonic() - began
    finally:
        asked.kill()
        asked.wait()
        for pid in struck:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert asked.returncode == 5, err
    assert "The ask reached real, and the connection was lost before a reply came (" in err
    assert took_s < (3 if number == signal.SIGKILL else 20)
    wait_until(lambda: silent.is_retired(message_id), "the question to be retired", RETIRED_S)


def test_a_killed_caller_retires_its_question(devices: Fleet) -> None:
    silent = devices.devices[DEVICE].recipients[1]
    ctl = devices.ctl()
    words = [PROGRAM, "ask", f"silent@{DEVICE}", "?", "--message-id", "m-kill"]
    with subprocess.Popen(words, env=ctl.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as caller:
        wait_until(lambda: silent.has("m-kill"), "the question to arrive")
        caller.kill()
    wait_until(lambda: silent.is_retired("m-kill"), "the question to be retired", RETIRED_S)


def test_through_a_multiplexing_master(devices: Fleet) -> None:
    path = f"{devices.folder}/master"
    devices.add_host(DEVICE, "ControlMaster auto", f"ControlPath {path}", "ControlPersist 30")
    try:
        for _ in range(3):
            assert devices.ctl().run("ask", f"api-fix@{DEVICE}", "which?").status == 0
        assert Path(path).exists()
        target = DeviceTarget("silent", DEVICE)
        with impatient():
            result = devices.reach.ask(target, devices.sender, "?", {"message_id": "m-mux"}, 1)
        assert (result.ended_by, result.exit_status) == ("timeout", 5)
    finally:
        subprocess.run([f"{devices.folder}/bin/ssh", "-O", "exit", DEVICE], check=False, capture_output=True)
    assert result.outcome.outcome != UNKNOWN
