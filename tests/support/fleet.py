"""A person's devices on one machine: a caller with settings and ssh of its own, and others behind an ssh server.

Owns the folders of each device (home, broker, settings), the caller's ssh configuration with its key, and the broker
and recipients of a device. Everything is below one short private folder. Does not own the server (``ssh_server``).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh

from libintercom.client import Client
from libintercom.devices.openssh import OpenSsh
from libintercom.devices.running import Reach, Sender
from libintercom.inbound import AskEnded, Inbound, PeerLeft
from libintercom.paths import find_places
from libintercom.profile import profile_from_environment
from tests.support.ctl import Ctl
from tests.support.daemon import Daemon
from tests.support.ssh_server import SshServer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "remote" / "remote_cli.py"
CALLER = "desk"
# What the remote command looks for, below the home directory of a device.
PLACE = ".local/share/intercom/remote_cli.py"
NODE_PLACE = ".pi/agent/npm/node_modules/@fitchmultz/pi-subagents/dist/pi-intercom/remote-cli.js"
STAND_IN = ROOT / "tests" / "support" / "node_stand_in.py"
_LOOK_S = 0.2


class Recipient:
    """A session of a device, and its ledger: everything that it got, with what it did about it."""

    def __init__(self, device: Device, name: str, *, answers: bool = True, **parts: Any) -> None:
        self.name, self.answers = name, answers
        self.got: list[Inbound] = []
        self.ended: list[AskEnded] = []
        self.left: list[str] = []
        parts.setdefault("native_id", f"{name}-native")
        profile = profile_from_environment(name=name, model="model-b", cwd="/work/api", **parts)
        self._client = Client.join(profile, spawn=False, places=device.places)
        self.peer_id = self._client.session_id
        self._replies: list[tuple[str, str]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._attend, daemon=True)
        self._thread.start()

    def has(self, message_id: str) -> bool:
        return any(inbound.message.id == message_id for inbound in self.got)

    def count(self, message_id: str) -> int:
        return sum(inbound.message.id == message_id for inbound in self.got)

    def is_retired(self, message_id: str) -> bool:
        """Whether the question is known to wait for nobody."""
        return any(end.message_id == message_id for end in self.ended)

    def reply(self, message_id: str, text: str) -> None:
        """Answer a question that came; its session's connection belongs to another thread, which does it."""
        self._replies.append((message_id, text))

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._client.disconnect()

    def _attend(self) -> None:
        while not self._is_over.is_set():
            for event in self._client.events(_LOOK_S):
                self._take(event)
            while self._replies:
                self._client.reply(*self._replies.pop())

    def _take(self, event: object) -> None:
        if isinstance(event, Inbound):
            self.got.append(event)
            if self.answers and event.message.is_ask:
                self._client.reply(event, f"answer to {event.message.content.text}")
        elif isinstance(event, AskEnded):
            self.ended.append(event)
        elif isinstance(event, PeerLeft):
            self.left.append(event.session_id)


class Device:
    """One other device: its own home and namespace; our one-file command is there unless a test takes it away."""

    def __init__(self, folder: str, name: str) -> None:
        self.name, self.folder = name, f"{folder}/{name}"
        self.home, self.runtime = f"{self.folder}/home", f"{self.folder}/run"
        self.daemon: Daemon | None = None
        self.recipients: list[Recipient] = []
        os.makedirs(self.home)
        os.mkdir(self.runtime, 0o700)
        # All that a device has on the PATH of a command that ssh runs.
        os.mkdir(f"{self.folder}/bin")
        os.symlink(sys.executable, f"{self.folder}/bin/python3")
        os.symlink("/bin/sh", f"{self.folder}/bin/sh")
        self.environment = {
            "PATH": f"{self.folder}/bin",
            "HOME": self.home,
            "PI_INTERCOM_RUNTIME_DIR": self.runtime,
            "PI_CODING_AGENT_DIR": f"{self.folder}/agent",
            "LANG": "C.UTF-8",
        }
        self.install()

    @property
    def places(self) -> Any:
        return find_places(self.environment)

    def install(self) -> None:
        """Our file is there, and no other command."""
        place = Path(self.home, PLACE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUNDLE, place)
        Path(self.home, NODE_PLACE).unlink(missing_ok=True)

    def uninstall(self) -> None:
        Path(self.home, PLACE).unlink(missing_ok=True)

    def install_node(self, *, has_node: bool = True, lists_only: bool = False) -> None:
        """Only the Node command is there, as the stand-in; without ``has_node`` its interpreter is not."""
        self.uninstall()
        place = Path(self.home, NODE_PLACE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(STAND_IN, place)
        program = Path(self.folder, "bin", "node")
        program.unlink(missing_ok=True)
        if has_node:
            program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"{" lists" if lists_only else ""}\n')
            program.chmod(0o755)

    def start(self) -> Daemon:
        """Its broker, once."""
        if self.daemon is None or not self.daemon.is_running:
            self.daemon = Daemon(self.runtime, "--idle-exit-s", "600").wait_ready()
        return self.daemon

    def recipient(self, name: str, **parts: Any) -> Recipient:
        self.start()
        recipient = Recipient(self, name, **parts)
        self.recipients.append(recipient)
        return recipient

    def close(self) -> None:
        for recipient in self.recipients:
            recipient.close()
        if self.daemon is not None:
            self.daemon.kill()


class Fleet:
    """The caller's device and the others behind one server."""

    def __init__(self, *names: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="icf-", dir="/tmp")
        self.devices = {name: Device(self.folder, name) for name in names}
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(f"{self.folder}/key")
        os.chmod(f"{self.folder}/key", 0o600)
        self.server = SshServer(key.export_public_key().decode(), lambda name: self.devices[name].environment)
        self.agent_dir = f"{self.folder}/agent"
        os.makedirs(f"{self.agent_dir}/intercom")
        self.settings = Path(self.agent_dir, "intercom", "config.json")
        self.configure(CALLER, *names)
        self._write_ssh(names)
        os.mkdir(f"{self.folder}/run", 0o700)

    def configure(self, own: str, *others: str) -> None:
        self.settings.write_text(json.dumps({"device": own, "otherDevices": list(others)}))

    def ctl(self, **variables: str) -> Ctl:
        """The command line on the caller's device; ``ssh`` is the real one with a configuration of its own."""
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return Ctl(f"{self.folder}/run", PATH=path, PI_CODING_AGENT_DIR=self.agent_dir, **variables)

    @property
    def reach(self) -> Reach:
        return Reach(CALLER, OpenSsh(f"{self.folder}/bin/ssh"))

    @property
    def sender(self) -> Sender:
        return Sender("pi-0123456789abcdef", "web-build", "/work/web")

    def add_host(self, name: str, *lines: str) -> None:
        """Another alias of the caller's ssh configuration; its lines win over those of every host."""
        config = Path(self.folder, "ssh_config")
        own = "".join(f"  {line}\n" for line in lines)
        config.write_text(f"Host {name}\n{own}  HostName 127.0.0.1\n{config.read_text()}")

    def script(self, device: str, script: Any) -> None:
        self.server.scripts[device] = script

    def close(self) -> None:
        for device in self.devices.values():
            device.close()
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_ssh(self, names: tuple[str, ...]) -> None:
        lines = [line for name in names for line in (f"Host {name}", f"  User {name}", "  HostName 127.0.0.1")]
        lines += [
            "Host *",
            f"  Port {self.server.port}",
            f"  IdentityFile {self.folder}/key",
            "  IdentitiesOnly yes",
            "  StrictHostKeyChecking accept-new",
            f"  UserKnownHostsFile {self.folder}/known_hosts",
        ]
        Path(self.folder, "ssh_config").write_text("\n".join(lines) + "\n")
        os.mkdir(f"{self.folder}/bin")
        program = Path(self.folder, "bin", "ssh")
        # The program reads a user's configuration from the password database's home, never from HOME.
        program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh") or "ssh"} -F {self.folder}/ssh_config "$@"\n')
        program.chmod(0o755)


@contextlib.contextmanager
def fleet(*names: str) -> Iterator[Fleet]:
    """Devices for the time of a test; nothing of them may be left."""
    made = Fleet(*names)
    try:
        yield made
    finally:
        made.close()


def children_of(pid: int) -> list[str]:
    """The command lines of a process's own children."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            parent = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            words = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue
        if parent == pid:
            found.append(words)
    return found


def wait_gone(*words: str, pid: int | None = None) -> None:
    """Wait until a process (this one by default) has no child with one of these words in its command line."""
    owner = os.getpid() if pid is None else pid

    def is_gone() -> bool:
        return not [line for line in children_of(owner) if any(word in line for word in words)]

    wait_until(is_gone, f"no child with {' or '.join(words)} to be left")
