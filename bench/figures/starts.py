"""How long whole programs take, against a bare interpreter start: the broker, the operator's commands, a client."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench import machine
from bench.brokers import ECHO, OURS, C, launch, ours, private_folder, running, stop
from bench.building import FOLDER
from bench.rows import Goal, Row, missing
from bench.sessions import Session, await_session
from bench.spreads import Spread
from libintercom.launching import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.brokers import Broker, Subject
    from bench.rounds import Bench

# The floor of everything that runs on this interpreter.
PY = (sys.executable, "-I", "-S", "-c", "pass")
_RECEIVER = "bench-receiver"
_ANOTHER = "bench-another"


def measure(bench: Bench) -> list[Row]:
    return [_start_row(bench), *_program_rows(bench)]


def _start_row(bench: Bench) -> Row:
    bench.say("process start to first accepted registration")
    chosen = [one for one in bench.subjects() if one.name in (C, ECHO)]
    timed: dict[str, Callable[[], float]] = {one.name: _starter(bench, one) for one in [*chosen, ours()]}
    found = in_turns(bench, {"py": lambda: _run(bench, PY, {}), **timed})
    for name in timed:
        bench.note("cold start", "ms", name, found[name])
    note = f"{found[OURS].text('ms')} against {found['py'].text('ms')}"
    ratio = found[OURS].over(found["py"])
    return Row("process start to first accepted registration", Goal(22.0, "x py", 12.0), ratio, "x", note)


def _starter(bench: Bench, subject: Subject) -> Callable[[], float]:
    """Milliseconds from before the program's start to the answer to a registration, at a fresh place."""

    def once() -> float:
        with private_folder() as folder:
            began_s = time.perf_counter()
            with machine.pinned(bench.split.broker):
                process = launch(subject, folder)
            try:
                with machine.pinned(bench.split.generator):
                    session = await_session(subject.path.format(folder=folder), "bench-first")
                spent_ms = 1000 * (time.perf_counter() - began_s)
                session.close()
                return spent_ms
            finally:
                stop(process)

    return once


def _program_rows(bench: Bench) -> list[Row]:
    bench.say("whole programs: intercomctl, library client")
    with running(ours("--limits", "bench"), bench.split.broker) as broker, contextlib.ExitStack() as stack:
        for peer_id in (_RECEIVER, _ANOTHER):
            stack.enter_context(contextlib.closing(Session(broker.path, peer_id)))
        bench.limits["intercomd serve --limits bench"] = broker.limits
        commands = _commands(broker)
        working = {name: command for name, command in commands.items() if not _trouble(command, broker)}
        environment = _environment(broker)
        runs = {name: lambda command=command: _run(bench, command, environment) for name, command in working.items()}
        found = in_turns(bench, {"py": lambda: _run(bench, PY, {}), **runs})
        return [_program_row(name, goal, found, _trouble(commands[name], broker)) for name, goal in _GOALS.items()]


_CLIENT = "library client: connect, register, send, ack"
_GOALS = {
    "intercomctl list": Goal(12.0, "x py", 8.0),
    "intercomctl send": Goal(12.0, "x py", 8.0),
    _CLIENT: Goal(4.0, "x py", 2.5),
}


def _commands(broker: Broker) -> dict[str, tuple[str, ...]]:
    intercomctl = os.path.join(os.path.dirname(sys.executable), "intercomctl")
    return {
        "intercomctl list": (intercomctl, "list"),
        "intercomctl send": (intercomctl, "send", _RECEIVER, "one message"),
        _CLIENT: (sys.executable, "-I", f"{FOLDER}/load/one_send.py", broker.path, _RECEIVER),
    }


def _program_row(name: str, goal: Goal, found: dict[str, Spread], trouble: str) -> Row:
    if name not in found:
        return missing(name, goal, trouble)
    note = f"{found[name].text('ms')} against {found['py'].text('ms')}"
    return Row(f"{name}, whole process", goal, found[name].over(found["py"]), "x", note)


def _environment(broker: Broker) -> dict[str, str]:
    return {**clean_environment({}), "PI_INTERCOM_RUNTIME_DIR": broker.folder, "HOME": broker.folder}


def _trouble(command: tuple[str, ...], broker: Broker) -> str:
    """Why a command does not work, or ``""``; the first run also leaves compiled files behind."""
    try:
        ended = subprocess.run(command, env=_environment(broker), capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    said = " ".join((ended.stderr or ended.stdout).split())[-200:]
    return f"status {ended.returncode}: {said}" if ended.returncode else ""


def _run(bench: Bench, command: tuple[str, ...], environment: dict[str, str]) -> float:
    """Milliseconds that the whole program took."""
    with machine.pinned(bench.split.generator):
        began_s = time.perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        return 1000 * (time.perf_counter() - began_s)


def in_turns(bench: Bench, timed: dict[str, Callable[[], float]]) -> dict[str, Spread]:
    """Each once in every turn, after one that does not count. Starts vary more than messages: more turns."""
    found: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(bench.choose(21, 5) + 1):
        for name, once in timed.items():
            spent_ms = once()
            if turn:
                found[name].append(spent_ms)
    return {name: Spread(tuple(values)) for name, values in found.items()}
