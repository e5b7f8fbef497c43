"""How much another device costs beside ssh itself: a list and a send, against ``ssh host true`` with the same options.

Owns a private sshd on the loopback interface, whose one login has a home with the one-file remote command in it and the
measured broker as its device's.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench.brokers import ours, running
from bench.figures.starts import in_turns
from bench.rows import Goal, Row, missing
from bench.sessions import Session
from libintercom.devices.command import INSTALL_FOLDER, INSTALL_NAME, ssh_arguments
from libintercom.devices.naming import DeviceTarget
from libintercom.devices.openssh import OpenSsh
from libintercom.devices.running import Reach, Sender
from libintercom.identity import make_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.brokers import Broker
    from bench.rounds import Bench

_NEEDED = ("ssh", "sshd", "ssh-keygen")
_DEVICE, _RECEIVER = "bench-device", "bench-receiver"
_BUNDLE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "remote")
_LISTENS_S = 10.0
_GOALS = {
    "list of one device": (Goal(1.5, "x ssh"), Goal(60.0, "ms beside ssh")),
    "send to one device": (Goal(1.5, "x ssh"), Goal(60.0, "ms beside ssh")),
}


def measure(bench: Bench) -> list[Row]:
    absent = [name for name in _NEEDED if shutil.which(name) is None]
    if absent:
        return [missing(name, goal, f"{', '.join(absent)} is not here") for name, (goal, _) in _GOALS.items()]
    bench.say("other devices over ssh")
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(running(ours("--limits", "bench"), bench.split.broker))
        stack.enter_context(contextlib.closing(Session(broker.path, _RECEIVER)))
        return _rows(bench, stack.enter_context(_login(broker)))


def _rows(bench: Bench, ssh: str) -> list[Row]:
    reach, sender = Reach("bench", OpenSsh(ssh)), Sender("pi-bench", "bench", "/")
    target = DeviceTarget(_RECEIVER, _DEVICE)
    found = in_turns(bench, {
        "ssh": lambda: _timed(lambda: subprocess.run(ssh_arguments(_DEVICE, "true", ssh), check=True)),
        "list of one device": lambda: _timed(lambda: _require(reach.list_sessions((_DEVICE,))[0].is_listed)),
        "send to one device": lambda: _timed(
            lambda: _require(reach.send(target, sender, "x", {"message_id": make_uuid()}).outcome.is_accepted)
        ),
    })  # fmt: skip
    rows = []
    for name, (ratio, beside) in _GOALS.items():
        note = f"{found[name].text('ms')} against {found['ssh'].text('ms')}"
        rows += [
            Row(name, ratio, found[name].over(found["ssh"]), "x", note),
            Row(f"{name}, beside ssh", beside, found[name].beyond(found["ssh"]), "ms", note),
        ]
    return rows


def _timed(run: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - began_s)


def _require(is_done: bool) -> None:
    if not is_done:
        raise OSError("the device did not take it")


@contextlib.contextmanager
def _login(broker: Broker) -> Iterator[str]:
    """A program that is ssh with a login at the device; its server ends with the block."""
    folder = f"{broker.folder}/ssh"
    port = _free_port()
    if os.geteuid() == 0:
        # Debian's server wants its empty folder.
        os.makedirs("/run/sshd", exist_ok=True)
    _write(folder, broker, port)
    with open(f"{folder}/log", "wb") as log:
        words = [shutil.which("sshd") or "", "-D", "-e", "-f", f"{folder}/sshd"]
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _await_listening(port)
        yield f"{folder}/run-ssh"
    finally:
        server.terminate()
        server.wait()


def _write(folder: str, broker: Broker, port: int) -> None:
    home = f"{folder}/home"
    os.makedirs(f"{home}/{INSTALL_FOLDER}")
    shutil.copy(f"{_BUNDLE}/{INSTALL_NAME}", f"{home}/{INSTALL_FOLDER}/{INSTALL_NAME}")
    keygen = shutil.which("ssh-keygen") or ""
    for name in ("host", "key"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"], check=True)
    path = f"{os.path.dirname(os.path.realpath(sys.executable))}:/usr/bin:/bin"
    exports = f"export HOME='{home}' PI_INTERCOM_RUNTIME_DIR='{broker.folder}' PATH='{path}'"
    _put(f"{folder}/login", f'#!/bin/sh\n{exports}\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n', 0o700)
    with open(f"{folder}/key.pub", encoding="ascii") as public:
        _put(f"{folder}/keys", f'restrict,command="{folder}/login" {public.read()}', 0o600)
    server = f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
    _put(f"{folder}/sshd", f"{server}AuthorizedKeysFile {folder}/keys\nPermitRootLogin yes\n", 0o600)
    client = f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {folder}/key\n"
    trust = "  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  LogLevel ERROR\n"
    _put(f"{folder}/client", f"{client}{trust}  UserKnownHostsFile {folder}/known\n", 0o600)
    _put(f"{folder}/run-ssh", f'#!/bin/sh\nexec ssh -F {folder}/client "$@"\n', 0o700)


def _put(path: str, text: str, mode: int) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_listening(port: int) -> None:
    end = time.monotonic() + _LISTENS_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
