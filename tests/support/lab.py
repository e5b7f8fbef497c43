"""The container lab: an engine that answers, images made without a registry, and the host's way to packages.

Owns starting and stopping an engine of its own where none answers (one at a time, in a private folder), images by the
list of their packages, and what a container must be given to reach the package index as this machine does. Does not
own what runs inside: see tests/integration.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The Debian release of every image: its Python is the oldest that intercomd supports.
SUITE = "bookworm"

# What a device of the tests is made of; the image that is tried before a run is the one that they use.
DEVICE_PACKAGES = ("openssh-server", "python3", "iptables", "procps", "iproute2")

# Marks what the lab made, so that leftovers of a killed run are found.
LABEL = "intercom.lab"

# dockerd is up in under a second; a cold data folder on a slow disk takes longer.
ENGINE_START_S = 60.0

# mmdebstrap takes 20 to 35 s on a good line.
IMAGE_BUILD_S = 900.0


class LabFailure(RuntimeError):
    """The lab could not do what a test needs: what was run and what it said."""


def missing_programs() -> str:
    """Say what is missing for a container engine, in one sentence; an empty text means nothing is."""
    if shutil.which("docker") is None:
        return "docker is not installed (Debian: apt-get install docker.io iptables mmdebstrap)"
    if _answers(()):
        return ""
    if os.geteuid() != 0:
        return "no engine answers, and only root may start one"
    absent = [name for name in ("dockerd", "iptables", "mmdebstrap") if shutil.which(name) is None]
    return f"no engine answers, and {', '.join(absent)} is not installed to start one" if absent else ""


@dataclass(frozen=True)
class Engine:
    """A container engine that answers. ``origin`` says in a few words whose it is."""

    address: tuple[str, ...]
    origin: str

    def call(self, *arguments: str, timeout_s: float = 60.0, environment: dict[str, str] | None = None) -> str:
        """Run one docker command and return its standard output.

        Raises:
            LabFailure: it ended with another status than 0.

        """
        return _run(["docker", *self.address, *arguments], timeout_s, environment)

    def image(self, packages: Sequence[str]) -> str:
        """The tag of an image with exactly these Debian packages over the smallest base; made when it is not there."""
        names = sorted(set(packages))
        key = hashlib.sha256("\n".join([SUITE, *names]).encode()).hexdigest()[:16]
        tag = f"intercom-lab:{key}"
        if not self.call("images", "--quiet", tag).strip():
            if shutil.which("mmdebstrap") is not None:
                self._import(names, tag, _cache() / f"{key}.tar")
            else:
                self._build(names, tag)
        return tag

    @contextlib.contextmanager
    def container(self, image: str, *options: str, environment: dict[str, str] | None = None) -> Iterator[Container]:
        """A container that runs nothing until it is told to; removed at the end."""
        name = f"intercom-lab-{uuid.uuid4().hex[:12]}"
        start = ["run", "--detach", "--init", "--name", name, "--label", LABEL, *options, image, "sleep", "infinity"]
        self.call(*start, environment=environment)
        try:
            yield Container(self, name)
        finally:
            self.call("rm", "--force", "--volumes", name)

    def _import(self, packages: list[str], tag: str, archive: Path) -> None:
        if not archive.exists():
            partial = archive.with_suffix(f".{os.getpid()}.partial.tar")
            include = f"--include={','.join(packages)}"
            _run(["mmdebstrap", "--quiet", "--variant=minbase", include, SUITE, str(partial)], IMAGE_BUILD_S)
            partial.rename(archive)
        self.call("import", str(archive), tag, timeout_s=IMAGE_BUILD_S)

    def _build(self, packages: list[str], tag: str) -> None:
        install = f"apt-get update && apt-get install -y --no-install-recommends {' '.join(packages)}"
        with tempfile.TemporaryDirectory(prefix="intercom-lab-") as folder:
            Path(folder, "Dockerfile").write_text(f"FROM debian:{SUITE}-slim\nRUN {install}\n", encoding="utf-8")
            # The classic builder needs no second daemon.
            environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
            self.call("build", "--tag", tag, folder, timeout_s=IMAGE_BUILD_S, environment=environment)


@dataclass(frozen=True)
class Container:
    """A running container."""

    engine: Engine
    name: str

    def run(self, script: str, timeout_s: float, *, folder: str = "/") -> int:
        """Run a bash script in ``folder``, its output passed through as it comes; return its exit status."""
        command = ["docker", *self.engine.address, "exec", "--workdir", folder, self.name, "bash", "-euc", script]
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, timeout=timeout_s).returncode

    def read(self, script: str, timeout_s: float = 60.0) -> str:
        """Run a bash script and return what it printed.

        Raises:
            LabFailure: it ended with another status than 0.

        """
        return self.engine.call("exec", self.name, "bash", "-euc", script, timeout_s=timeout_s)


@contextlib.contextmanager
def engine() -> Iterator[Engine]:
    """The engine that answers already, else one of our own that is stopped at the end.

    Raises:
        LabFailure: there is none and none can be started.

    """
    missing = missing_programs()
    if missing:
        raise LabFailure(missing)
    if _answers(()):
        yield Engine((), "an engine that ran already")
        return
    with _exclusive(), _started() as own:
        for leftover in own.call("ps", "--all", "--quiet", "--filter", f"label={LABEL}").split():
            own.call("rm", "--force", "--volumes", leftover)
        yield own


@contextlib.contextmanager
def _started() -> Iterator[Engine]:
    folder = _cache() / "engine"
    folder.mkdir(exist_ok=True)
    address = ("--host", f"unix://{folder}/docker.sock")
    is_leftover = _answers(address)
    # Held until it has ended: a forgotten child is a warning, which fails a test.
    daemon = None if is_leftover else _launch(folder, address)
    try:
        yield Engine(address, "an engine that a killed run had left" if is_leftover else "an engine of our own")
    finally:
        pid = int((folder / "pid").read_text())
        os.kill(pid, signal.SIGTERM)
        if daemon is not None:
            daemon.wait(ENGINE_START_S)
        else:
            wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"dockerd ({pid}) to end", ENGINE_START_S)


def _launch(folder: Path, address: tuple[str, ...]) -> subprocess.Popen[bytes]:
    places = ("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid")
    command = ["dockerd", *places, *address]
    log_path = folder / "dockerd.log"
    with log_path.open("wb") as log:
        # Its own session: an interrupted run still needs it, to remove its containers.
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    wait_until(lambda: daemon.poll() is not None or _answers(address), "dockerd to answer", ENGINE_START_S)
    if daemon.poll() is not None:
        tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-8:])
        message = f"dockerd ended with status {daemon.returncode}:\n{tail}"
        raise LabFailure(message)
    return daemon


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    """Hold the lab: two engines on one machine fight over its bridge and its firewall."""
    with (_cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / "intercom-lab"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _answers(address: Sequence[str]) -> bool:
    try:
        _run(["docker", *address, "info"], timeout_s=10.0)
    except LabFailure:
        return False
    return True


def _run(command: list[str], timeout_s: float, environment: dict[str, str] | None = None) -> str:
    try:
        ended = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment,
        )
    except subprocess.TimeoutExpired as late:
        message = f"{' '.join(command)} did not end within {timeout_s:g} s"
        raise LabFailure(message) from late
    if ended.returncode:
        message = f"{' '.join(command)} ended with status {ended.returncode}:\n{ended.stderr.strip()[-4000:]}"
        raise LabFailure(message)
    return ended.stdout


def main() -> int:
    """Try all of it once: an engine, an image, a container. The last line says what is missing (``.ci/run``)."""
    try:
        with engine() as found, found.container(found.image(DEVICE_PACKAGES)) as container:
            print(f"a container runs: {found.origin}, {container.read('uname -sr').strip()}")
    except (LabFailure, OSError, subprocess.TimeoutExpired) as failure:
        print(" ".join(str(failure).split())[:500])
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
