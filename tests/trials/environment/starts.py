"""Starting a broker from the middle of a hostile place, and looking at what became of it.

Owns the kinds of starter, the kinds of hostility and the judgement. The broker is looked at from outside, in /proc:
its environment, the files it has mapped, its descriptors, umask, signals and limits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.executables import ROOT
from tests.support.waiting import DEADLINE_S, NotSeen, wait_until
from tests.trials.environment.hostile import HostilePlace
from tests.trials.namespaces import Namespace, namespace
from tests.trials.witness.path import Peer

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).parent
# The oldest Python that the library runs on, and those that may be installed beside it.
_MINORS = range(9, 16)
INTERCOMCTL = "intercomctl"

# The broker's whole environment, besides its settings (ownership.md section 4 and bars.md section 1).
_ALLOWED = {"LANG", "PATH", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"}
_PATH = "/usr/local/bin:/usr/bin:/bin"
_WANTED_FDS = 65_536
_RAISED = ("AS", "CPU", "DATA", "FSIZE", "STACK")
# Ignored by every Python by itself.
_KEPT_SIGNALS = {signal.SIGPIPE, signal.SIGXFSZ}
# Nobody is connected when it is told to leave.
_LEAVING_S = 3.0
# Far more than any broker has before its first client, far fewer than what is leaked here.
_MOST_FDS = 40


@dataclasses.dataclass(frozen=True)
class Hostility:
    """``outside``: variables of the client program; ``inside``: those that it sets itself; ``attributes`` of it.

    Values may hold ``{folder}``, ``{shadows}``, ``{programs}``, ``{home}``, ``{libraries}`` and ``{library}``.
    ``leaves_marks``: whether the client itself must have been marked, which shows that the hostile things work.
    ``refusal``: words with which a client may refuse to start a broker at all.
    ``is_deadly``: the command line itself does not start amid it, since it is found beside its own interpreter.
    """

    name: str
    outside: dict[str, str] = dataclasses.field(default_factory=dict)
    inside: dict[str, str] = dataclasses.field(default_factory=dict)
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    leaves_marks: bool = False
    needs_compiler: bool = False
    refusal: str = ""
    is_deadly: bool = False


_CODE = {
    "PYTHONPATH": "{folder}",
    "HOME": "{home}",
    "XDG_CONFIG_HOME": "{home}/.config",
    "PYTHONUSERBASE": "{home}/.local",
}
_PYTHON = {
    "PYTHONPATH": "{shadows}:{folder}",
    "PYTHONHOME": "{folder}",
    "PYTHONSTARTUP": "{folder}/startup.py",
    "PYTHONINSPECT": "1",
    "PYTHONWARNINGS": "error::msgspec.Hostile",
    "PYTHONPYCACHEPREFIX": "{folder}/cache",
    "PYTHONPLATLIBDIR": "{folder}",
    "PYTHONEXECUTABLE": "{programs}/python",
    "PYTHONBREAKPOINT": "msgspec.breakpoint",
    "PYTHONOPTIMIZE": "2",
    "PYTHONIOENCODING": "ascii",
    "PYTHONMALLOC": "debug",
    "__PYVENV_LAUNCHER__": "{programs}/python",
}
# Believed by Python from 3.11 on: what such a client takes for its own interpreter is somebody else's program.
_INTERPRETER = {"PYTHONEXECUTABLE": "{programs}/python", "__PYVENV_LAUNCHER__": "{programs}/python"}
_LOADER = {
    "LD_PRELOAD": "{library}",
    "LD_LIBRARY_PATH": "{libraries}",
    "LD_AUDIT": "{library}",
    "GCONV_PATH": "{libraries}",
}
_SHELL = {
    "PATH": "{programs}",
    "BASH_ENV": "{folder}/shell",
    "ENV": "{folder}/shell",
    "IFS": "/",
    "TMPDIR": "{folder}",
    "SOME_API_KEY": "secret",
    "LC_ALL": "xx_YY.wrong",
    "NOTIFY_SOCKET": "{folder}/notify",
    "LISTEN_FDS": "3",
    "UV_USE_IO_URING": "1",
    "PI_INTERCOM_ROOT_SESSION_ID": "a-main",
    "PI_INTERCOM_PARENT_SESSION_ID": "a-main",
}
_IGNORED = [signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1, signal.SIGALRM]
_BLOCKED = [signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGHUP]
_LIMITS = {
    "NOFILE": 64,
    "CORE": 1 << 40,
    "FSIZE": 1 << 20,
    "CPU": 900,
    "AS": 1 << 30,
    "STACK": 1 << 20,
    "DATA": 1 << 29,
}
_LEAKED_FDS = 4_000

HOSTILITIES = (
    Hostility("code around it", outside=_CODE, leaves_marks=True),
    Hostility("Python's own variables", inside=_PYTHON),
    Hostility("a made-up interpreter", outside=_INTERPRETER, refusal="was named by PYTHONEXECUTABLE", is_deadly=True),
    Hostility("a preloaded library", outside={"LD_PRELOAD": "{library}"}, leaves_marks=True, needs_compiler=True),
    Hostility("the loader's variables", inside=_LOADER, needs_compiler=True),
    Hostility("programs, shells and secrets", inside=_SHELL),
    Hostility("umask 0", attributes={"umask": 0}),
    *(
        Hostility(f"closed streams {closed}", attributes={"close": closed})
        for closed in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2])
    ),
    Hostility("thousands of descriptors", attributes={"open": _LEAKED_FDS}),
    Hostility("signals ignored and blocked", attributes={"ignore": _IGNORED, "block": _BLOCKED}),
    Hostility("low limits", attributes={"limits": _LIMITS}),
    Hostility(
        "everything at once",
        outside=_CODE,
        inside={**_SHELL, **_PYTHON, **_LOADER},
        attributes={
            "umask": 0,
            "close": [0, 1, 2],
            "open": _LEAKED_FDS,
            "ignore": _IGNORED,
            "block": _BLOCKED,
            "limits": {**_LIMITS, "NOFILE": _LEAKED_FDS + 64},
        },
        leaves_marks=True,
        needs_compiler=True,
    ),
)


def find_pythons() -> dict[str, str]:
    """Every Python from 3.9 on that runs here: its version and path; this one first, as it can run the broker."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    found = {"this Python": sys.executable}
    for minor in _MINORS:
        name = f"python3.{minor}"
        paths = [shutil.which(name), *sorted(glob.glob(f"{pyenv}/versions/3.{minor}.*/bin/{name}"), reverse=True)]
        path = next((path for path in paths if path and _runs(path, minor)), None)
        if path is not None:
            found[f"Python 3.{minor}"] = path
    return found


def find_starters() -> Iterator[tuple[str, str, Hostility]]:
    """Every starter with its Python and every hostility that it can live through."""
    for starter, python in {**find_pythons(), INTERCOMCTL: ""}.items():
        for hostility in HOSTILITIES:
            if python or not hostility.is_deadly:
                yield starter, python, hostility


def _runs(path: str, minor: int) -> bool:
    code = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
    return subprocess.run([path, "-I", "-c", code], capture_output=True, check=False).returncode == 0


@dataclasses.dataclass
class Start:
    """One start: who, amid what, and what was wrong with the broker."""

    starter: str
    hostility: str
    client_marks: int = 0
    was_refused: bool = False
    violations: list[str] = dataclasses.field(default_factory=list)

    def violate(self, what: str) -> None:
        self.violations.append(f"{self.starter}, {self.hostility}: {what}")


def start_amid(starter: str, python: str, hostility: Hostility, *, before: str = "", fault: str = "") -> Start:
    """Let ``starter`` start a broker amid ``hostility``.

    ``before`` may plant a fault in the broker, ``fault`` one in the library of the client.
    """
    start = Start(starter, hostility.name)
    with namespace() as own:
        place = HostilePlace(own.parent)
        if before:
            own.use_executable(before=before)
        elif python not in ("", sys.executable):
            own.environment["PI_INTERCOM_EXECUTABLE"] = os.path.join(os.path.dirname(sys.executable), "intercomd")
        _run(own, place, python, hostility, fault)
        pid = _find_broker(own, hostility, start)
        if pid:
            for finding in _examine(own, place, pid):
                start.violate(finding)
            own.kill(pid, signal.SIGTERM)
        for left in own.wait_empty(_LEAVING_S):
            start.violate(f"pid {left} did not end on SIGTERM")
        _judge_marks(place, hostility, start)
    return start


def _run(own: Namespace, place: HostilePlace, python: str, hostility: Hostility, fault: str) -> None:
    """Run the starter's program and wait for its end; ``python`` is "" for the command line."""
    environment = {name: value for name, value in own.environment.items() if name != "PYTHONPATH"}
    environment.update(_filled(hostility.outside, place))
    inside = _filled(hostility.inside, place)
    if not python:
        # It sets nothing itself, so it gets what does not keep its own interpreter from starting.
        environment.update({name: value for name, value in inside.items() if name not in _DEADLY})
        program = [os.path.join(os.path.dirname(sys.executable), INTERCOMCTL), "broker", "start"]
    else:
        program = [python, str(_HERE / "client.py"), str(ROOT), f"{own.parent}/result", json.dumps(inside), fault]
    command = [sys.executable, "-I", str(_HERE / "attributes.py"), json.dumps(hostility.attributes), *program]
    with open(f"{own.parent}/said", "wb") as said:
        subprocess.run(
            command, env=environment, cwd=place.folder, stdout=said, stderr=said, check=False, timeout=3 * DEADLINE_S
        )


# With these no Python starts at all, or it loads what is not there to work.
_DEADLY = {
    "PYTHONHOME",
    "PYTHONPLATLIBDIR",
    "PYTHONPATH",
    "PYTHONEXECUTABLE",
    "__PYVENV_LAUNCHER__",
    "PYTHONINSPECT",
    "PYTHONMALLOC",
    "LD_LIBRARY_PATH",
}


def _filled(variables: dict[str, str], place: HostilePlace) -> dict[str, str]:
    return {name: value.format_map(vars(place)) for name, value in variables.items()}


def _find_broker(own: Namespace, hostility: Hostility, start: Start) -> int:
    """The pid of the broker that answers; 0, and a violation with what was said, when none does."""

    def ask() -> int:
        peer = Peer()
        try:
            return int(peer.connect(own.places.socket).get("pid", 0))
        finally:
            peer.close()

    try:
        return wait_until(ask, "a broker", 2.0)
    except NotSeen:
        told = [Path(path).read_text(errors="replace") for path in _told_by(own) if os.path.exists(path)]
        start.was_refused = bool(hostility.refusal) and any(hostility.refusal in one for one in told)
        if not start.was_refused:
            start.violate(f"no broker was started: {' | '.join(told)[-500:]!r}")
        return 0


def _told_by(own: Namespace) -> Iterator[str]:
    yield from (f"{own.parent}/result", f"{own.parent}/said", own.places.log)


def _judge_marks(place: HostilePlace, hostility: Hostility, start: Start) -> None:
    marks = place.marks()
    for mark in {mark for mark in marks if mark.is_broker}:
        start.violate(f"{mark.what} reached the broker: {mark.command}")
    start.client_marks = sum(not mark.is_broker for mark in marks)
    if hostility.leaves_marks and not start.client_marks:
        start.violate("not even the client was marked, so the trial shows nothing")


# ---------------------------------------------------------------- the broker, seen from outside


def _examine(own: Namespace, place: HostilePlace, pid: int) -> Iterator[str]:
    yield from _examine_environment(own, pid)
    yield from _examine_files(own, place, pid)
    yield from _examine_attributes(pid)
    yield from _examine_limits(pid)


def _examine_environment(own: Namespace, pid: int) -> Iterator[str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    variables = dict(entry.decode(errors="replace").partition("=")[::2] for entry in entries if entry)
    settings = {name for name in own.environment if name.startswith("PI_INTERCOM_")}
    strangers = variables.keys() - _ALLOWED - settings
    if strangers:
        yield f"its environment has {sorted(strangers)}"
    if variables.get("PATH") != _PATH:
        yield f"its PATH is {variables.get('PATH')}"


def _examine_files(own: Namespace, place: HostilePlace, pid: int) -> Iterator[str]:
    if place.folder in Path(f"/proc/{pid}/maps").read_text():
        yield "it has something of the hostile place mapped"
    if os.readlink(f"/proc/{pid}/cwd") != "/":
        yield f"its directory is {os.readlink(f'/proc/{pid}/cwd')}"
    targets = _descriptors(pid)
    streams = {0: "/dev/null", 1: own.places.log, 2: own.places.log}
    if {fd: targets.get(fd) for fd in streams} != streams:
        yield f"its streams are {[targets.get(fd) for fd in streams]}"
    if "/dev/zero" in targets.values() or len(targets) > _MOST_FDS:
        yield f"it inherited descriptors: {len(targets)} are open"
    for path in (own.directory, *(entry.path for entry in os.scandir(own.directory))):
        if stat.S_IMODE(os.lstat(path).st_mode) & 0o077:
            yield f"others have access to {path}: {stat.S_IMODE(os.lstat(path).st_mode):04o}"


def _descriptors(pid: int) -> dict[int, str]:
    """What each open descriptor leads to; one that is closed meanwhile is left out."""
    targets = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            targets[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return targets


def _examine_attributes(pid: int) -> Iterator[str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = {name: value.strip() for name, _colon, value in (line.partition(":") for line in lines)}
    if status["Umask"] != "0077":
        yield f"its umask is {status['Umask']}"
    if int(status["SigBlk"], 16):
        yield f"it blocks signals: {status['SigBlk']}"
    ignored = {number for number in signal.valid_signals() if int(status["SigIgn"], 16) >> (number - 1) & 1}
    if ignored != _KEPT_SIGNALS:
        yield f"it ignores signals {sorted(ignored)}"
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if (fields[3], fields[4]) == (str(os.getsid(0)), "0") or fields[4] != "0":
        yield "it is in its starter's session, or has a terminal"


def _examine_limits(pid: int) -> Iterator[str]:
    for name in _RAISED:
        soft, hard = resource.prlimit(pid, getattr(resource, f"RLIMIT_{name}"))
        if soft != hard:
            yield f"its limit {name} is {soft} of {hard}"
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    if soft < min(hard, _WANTED_FDS):
        yield f"it may open {soft} files, of {hard} allowed"
    if resource.prlimit(pid, resource.RLIMIT_CORE)[0]:
        yield "it may write its memory, with everybody's messages, into a core file"
