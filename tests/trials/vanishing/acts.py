"""What happens to the files of a living broker, and what must become of it.

Owns one act each, as other programs do it (from this program, or from one started for it), and the expectation with and
without a newcomer before the check.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.trials.namespaces import NO_PID
from tests.trials.privileges import INITIAL_PIDS, NAMESPACES, ROOT
from tests.trials.vanishing.stage import HEALED, LEFT, STAYED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trials.vanishing.stage import Stage

    Happen = Callable[[Stage, contextlib.ExitStack], object]

# A program of somebody else that takes the path: it removes what is there and listens, as old brokers do.
_LISTENER = """
import os, socket, sys
path = sys.argv[1]
if os.path.lexists(path): os.unlink(path)
s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen(64)
print("up", flush=True); sys.stdin.read()
"""


@dataclasses.dataclass(frozen=True)
class Act:
    """``alone`` and ``met``: what becomes of the broker without and with somebody who comes before the check.

    ``is_joinable``: whether a session can join afterwards; where somebody else's file has the path, nobody can.
    ``repair``: what somebody does afterwards, so that the next check finds everything as it should be.
    ``is_brief``: part of every test run. ``is_small``: the directory is a small filesystem of its own.
    ``needs``: see ``privileges``.
    """

    name: str
    happen: Happen
    alone: str = HEALED
    met: str = HEALED
    repair: Happen | None = None
    is_joinable: bool = True
    is_brief: bool = False
    is_small: bool = False
    needs: tuple[str, ...] = ()

    def expected(self, *, has_newcomer: bool) -> str:
        return self.met if has_newcomer else self.alone


def _unlink(*names: str) -> Happen:
    def happen(stage: Stage, _stack: contextlib.ExitStack) -> None:
        for name in names:
            if os.path.lexists(f"{stage.own.directory}/{name}"):
                os.unlink(f"{stage.own.directory}/{name}")

    return happen


def _empty(stage: Stage, _stack: contextlib.ExitStack) -> None:
    for entry in os.scandir(stage.own.directory):
        os.unlink(entry.path)


def _remove_directory(stage: Stage, _stack: contextlib.ExitStack) -> None:
    shutil.rmtree(stage.own.directory)


def _move(stage: Stage, _stack: contextlib.ExitStack) -> None:
    os.rename(stage.own.directory, f"{stage.own.directory}-aside")


def _replace(mode: int) -> Happen:
    def happen(stage: Stage, stack: contextlib.ExitStack) -> None:
        _move(stage, stack)
        os.mkdir(stage.own.directory, mode)

    return happen


def _replace_by_copy(stage: Stage, stack: contextlib.ExitStack) -> None:
    """As ``cp -a`` and ``rsync -a`` do: a special file for the socket, which leads nowhere, and the record's text."""
    _move(stage, stack)
    subprocess.run(["cp", "-a", f"{stage.own.directory}-aside", stage.own.directory], check=True)


def _copy_record(stage: Stage, _stack: contextlib.ExitStack) -> None:
    """The same text in another file, as an editor or a backup leaves it."""
    shutil.copy(stage.places.record, f"{stage.places.record}~")
    os.rename(f"{stage.places.record}~", stage.places.record)


def _replace_by_file(stage: Stage, stack: contextlib.ExitStack) -> None:
    _move(stage, stack)
    _write_file(stage.own.directory)


def _remove_file(stage: Stage, _stack: contextlib.ExitStack) -> None:
    os.unlink(stage.own.directory)


def _make_safe(stage: Stage, _stack: contextlib.ExitStack) -> None:
    os.chmod(stage.own.directory, 0o700)


def _claim_and_unlink(stage: Stage, stack: contextlib.ExitStack) -> None:
    """A living program of the lineage is at a start of its own."""
    with open(stage.places.claim, "x", encoding="ascii") as claim:
        claim.write(f"{os.getpid()}\n1800000000000\n")
    _unlink("broker.sock")(stage, stack)


def _fill_and_unlink(stage: Stage, stack: contextlib.ExitStack) -> None:
    _unlink("broker.sock", "broker.pid")(stage, stack)
    with open(f"{stage.own.directory}/filling", "wb", buffering=0) as filling:
        for size_bytes in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    filling.write(b"x" * size_bytes)


def _take_path(stage: Stage, stack: contextlib.ExitStack) -> None:
    """Another program listens at our path, until the end of the trial."""
    command = [sys.executable, "-I", "-c", _LISTENER, stage.places.socket]
    other = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    assert other.stdout is not None
    assert other.stdout.readline() == b"up\n"
    stage.keep("broker.sock")


def _take_path_and_record(stage: Stage, stack: contextlib.ExitStack) -> None:
    _take_path(stage, stack)
    _write_record(f"{os.getpid()}\n")(stage, stack)


def _put(make: Callable[[str], object]) -> Happen:
    """Something that is no socket has our name."""

    def happen(stage: Stage, _stack: contextlib.ExitStack) -> None:
        os.unlink(stage.places.socket)
        make(stage.places.socket)
        stage.keep("broker.sock")

    return happen


def _write_file(path: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write("somebody's notes\n")


def _leave_dead_socket(stage: Stage, _stack: contextlib.ExitStack) -> None:
    """A program that binds blindly took our path and ended."""
    os.unlink(stage.places.socket)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(stage.places.socket)
        other.listen()


def _write_record(text: str) -> Happen:
    def happen(stage: Stage, _stack: contextlib.ExitStack) -> None:
        os.unlink(stage.places.record)
        with open(stage.places.record, "w", encoding="ascii") as file:
            file.write(text)
        stage.keep("broker.pid")

    return happen


def _write_dead_record(stage: Stage, _stack: contextlib.ExitStack) -> None:
    os.unlink(stage.places.record)
    with open(stage.places.record, "w", encoding="ascii") as file:
        file.write(f"{NO_PID}\n")


ACTS = (
    Act("socket removed", _unlink("broker.sock"), is_brief=True),
    Act("record removed", _unlink("broker.pid"), is_brief=True),
    Act("socket and record removed", _unlink("broker.sock", "broker.pid"), met=LEFT, is_brief=True),
    Act("start lock removed", _unlink(".guard")),
    Act("gate removed", _unlink(".gate")),
    Act("log removed", _unlink("broker.log")),
    Act("socket and start lock removed", _unlink("broker.sock", ".guard")),
    Act("every file removed", _empty, met=LEFT),
    Act("directory removed", _remove_directory, met=LEFT),
    Act("directory moved aside", _move, met=LEFT),
    Act("directory moved aside and made again", _replace(0o700), met=LEFT, is_brief=True),
    Act("directory moved aside and put back as a copy", _replace_by_copy),
    Act("directory replaced by an unsafe one", _replace(0o755), alone=STAYED, met=STAYED, repair=_make_safe),
    Act("directory replaced by a file", _replace_by_file, STAYED, STAYED, repair=_remove_file),
    Act(
        "socket removed, another program's claim",
        _claim_and_unlink,
        STAYED,
        STAYED,
        repair=_unlink("broker.spawn.lock"),
    ),
    Act(
        "removed on a full disk",
        _fill_and_unlink,
        STAYED,
        STAYED,
        repair=_unlink("filling"),
        is_small=True,
        needs=(ROOT, NAMESPACES),
    ),
    Act("record replaced by a copy of itself", _copy_record),
    Act("record replaced by a dead program's", _write_dead_record, needs=(INITIAL_PIDS,)),
    Act("record replaced by a living program's", _write_record(f"{os.getpid()}\n"), alone=STAYED, met=STAYED),
    Act("record replaced by something garbled", _write_record("garbled\n"), alone=STAYED, met=STAYED),
    Act("path taken by another listener", _take_path, alone=LEFT, met=LEFT, is_joinable=False, is_brief=True),
    Act("path and record taken by another program", _take_path_and_record, alone=LEFT, met=LEFT, is_joinable=False),
    Act("path taken by a file", _put(_write_file), alone=LEFT, met=LEFT, is_joinable=False, is_brief=True),
    Act("path taken by a directory", _put(os.mkdir), alone=LEFT, met=LEFT, is_joinable=False),
    Act(
        "path taken by a link", _put(lambda path: os.symlink("/nowhere", path)), alone=LEFT, met=LEFT, is_joinable=False
    ),
    Act("path taken by a dead socket", _leave_dead_socket),
)
