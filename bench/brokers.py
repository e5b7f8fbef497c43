"""The brokers that are measured: this one, the floors, and a peer that runs already.

Owns starting each in a private folder, pinned to a processor, and stopping it by its own process id. Talks to a
broker by its socket only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench import machine, watching
from bench.building import FOLDER
from bench.sessions import Session, await_session
from libintercom.launching import clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.building import Programs

OURS = "intercomd"
C = "C"
ECHO = "echo"
PEER = "peer"
# Names another broker that speaks the same frames.
PEER_VARIABLE = "INTERCOM_BENCH_PEER"
# struct ucred (unix(7)): pid, uid, gid.
_UCRED = struct.Struct("3i")
_STOP_S = 10.0
KEEPER = "bench-keeper"


@dataclass(frozen=True)
class Subject:
    """A broker that can be measured. ``command`` is empty for one that runs already at ``path``.

    ``{folder}`` in a word stands for the private folder of one run.
    """

    name: str
    command: tuple[str, ...]
    path: str = "{folder}/broker.sock"


def ours(*options: str) -> Subject:
    """This broker, started as its clients start it. ``options`` of ``serve``, for instance ``--limits bench``."""
    return Subject(OURS, (sys.executable, "-I", "-m", "intercomd", "serve", *options))


def subjects(programs: Programs) -> list[Subject]:
    """All that can be measured here, floors first, each with rate limits raised where it has any."""
    found = [Subject(ECHO, (sys.executable, "-I", f"{FOLDER}/floors/echo.py", "{folder}/broker.sock"))]
    if programs.broker:
        found.insert(0, Subject(C, (programs.broker, "{folder}/broker.sock")))
    if os.environ.get(PEER_VARIABLE):
        found.append(Subject(PEER, (), os.environ[PEER_VARIABLE]))
    return [*found, ours("--limits", "bench")]


@dataclass
class Broker:
    """One that runs. ``keeper`` is a session that only keeps it from leaving; its answer holds the hello."""

    name: str
    pid: int
    path: str
    folder: str
    keeper: Session

    @property
    def limits(self) -> dict[str, Any]:
        found: dict[str, Any] = self.keeper.answer.get("limits") or {}
        return found


@contextlib.contextmanager
def running(subject: Subject, cpu: int | None = None) -> Iterator[Broker]:
    """The broker, started for this run where it is not a peer, on one processor if one is given."""
    if not subject.command:
        with _borrowed(subject, cpu) as broker:
            yield broker
        return
    with private_folder() as folder, placed(cpu):
        process = launch(subject, folder)
        try:
            path = subject.path.format(folder=folder)
            keeper = await_session(path, KEEPER)
            with contextlib.closing(keeper), unplaced():
                yield Broker(subject.name, process.pid, path, folder, keeper)
        finally:
            stop(process)


def launch(subject: Subject, folder: str) -> subprocess.Popen[bytes]:
    """The program, in a broker's clean environment. What it says goes to files in ``folder``."""
    environment = {**clean_environment(os.environ), "PI_INTERCOM_RUNTIME_DIR": folder}
    command = [word.format(folder=folder) for word in subject.command]
    with open(f"{folder}/said", "ab") as said:
        return subprocess.Popen(command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=said, stderr=said)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to leave, and end it if it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def private_folder() -> Iterator[str]:
    """Private, and short: a socket's path has 100 bytes at most, and TMPDIR may be long."""
    folder = tempfile.mkdtemp(prefix="icb-", dir="/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def placed(cpu: int | None) -> Iterator[None]:
    with machine.pinned(cpu) if cpu is not None else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def unplaced() -> Iterator[None]:
    """Inside ``placed``: this program itself may run anywhere again."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def find_pid(session: Session) -> int:
    """Whose socket a session is connected to (unix(7), SO_PEERCRED)."""
    raw = session.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    found: int = _UCRED.unpack(raw)[0]
    return found


@contextlib.contextmanager
def _borrowed(subject: Subject, cpu: int | None) -> Iterator[Broker]:
    """A peer that belongs to somebody: pinned while it is measured, then as it was."""
    keeper = Session(subject.path, KEEPER)
    pid = find_pid(keeper)
    before = watching.affinity(pid)
    try:
        if cpu is not None:
            watching.pin(pid, cpu)
        yield Broker(subject.name, pid, subject.path, "", keeper)
    finally:
        keeper.close()
        for thread, cpus in before.items():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, cpus)
