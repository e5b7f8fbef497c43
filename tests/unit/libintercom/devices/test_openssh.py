"""The ssh program as a child: its streams, its deadlines and its end, with a script in its place."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from libintercom.devices import conversation, openssh
from libintercom.devices.conversation import Conversation, Request
from libintercom.devices.endings import EXITED, NOT_STARTED, OVERFLOWED, TIMED_OUT, WITHDRAWN
from libintercom.devices.openssh import OpenSsh
from libintercom.devices.transport import Hooks, Withdrawal
from tests.support.fleet import wait_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Program = Callable[[str], OpenSsh]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def write(script: str) -> OpenSsh:
        path = tmp_path / "fake-ssh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return OpenSsh(str(path))

    return write


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = set(os.listdir("/proc/self/fd"))
    yield
    wait_gone("fake-ssh")
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def impatient() -> Iterator[None]:
    with mock.patch.multiple(conversation, MARKER_TIMEOUT_S=0.3, ANSWER_TIMEOUT_S=0.3):
        yield


def asked(text: str = "") -> Conversation:
    return Conversation(Request({"command": "list", "text": text}, ("sessions",)))


# It ends by SIGKILL alone.
STUBBORN = "trap '' TERM; while :; do read -r x || sleep 0.05; done"
MARK = "printf '\\nintercom-remote 1\\n'; read -r line"
ANSWER = 'printf \'{"version":1,"sessions":[]}\\n\''


def test_a_request_and_its_answer(program: Program) -> None:
    talk = asked()
    stages: list[str] = []
    ending = program(f"{MARK}; echo hello >&2; {ANSWER}").converse("laptop", talk, Hooks(None, stages.append))
    assert (ending.cause, ending.status, ending.last_line) == (EXITED, 0, "hello")
    assert talk.answer == {"version": 1, "sessions": []}
    assert (stages[0], stages[-1]) == ("connecting", "answered")


def test_a_large_request_and_a_large_answer_pass_at_once(program: Program) -> None:
    talk = asked("x" * 900_000)
    script = 'printf \'\\nintercom-remote 1\\n\'; head -n 1 >/dev/null; printf \'{"version":1,"sessions":["\''
    script += "; head -c 1500000 /dev/zero | tr '\\0' y; printf '\"]}\\n'"
    ending = program(script).converse("laptop", talk)
    assert talk.answer is not None, (ending, talk.fault, talk.noise)
    assert len(talk.answer["sessions"][0]) == 1_500_000


def test_a_failure_before_the_marker(program: Program) -> None:
    talk = asked()
    script = "printf 'banner\\nssh: connect to host laptop port 22: Connection refused\\r\\n\\n' >&2; exit 255"
    ending = program(script).converse("laptop", talk)
    assert (ending.status, ending.last_line) == (255, "connect to host laptop port 22: Connection refused")
    assert not talk.is_handed_over


@pytest.mark.parametrize("script", ["sleep 60", STUBBORN, "cat /dev/zero >&2"])
@pytest.mark.usefixtures("impatient")
def test_who_never_begins_is_ended(program: Program, script: str) -> None:
    began = time.monotonic()
    ending = program(f"exec 2>&2; {script}").converse("laptop", asked())
    assert ending.cause == TIMED_OUT
    assert time.monotonic() - began < 5


@pytest.mark.usefixtures("impatient")
def test_who_never_answers_is_ended(program: Program) -> None:
    talk = asked()
    assert program(f"{MARK}; sleep 60").converse("laptop", talk).cause == TIMED_OUT
    assert talk.is_handed_over


@pytest.mark.parametrize("flood", ["yes", "cat /dev/zero", f"{MARK}; yes", f"{MARK}; tr '\\0' '{{' </dev/zero"])
def test_endless_output_ends_it(program: Program, flood: str) -> None:
    assert program(flood).converse("laptop", asked()).cause == OVERFLOWED


def test_errors_are_kept_to_their_end(program: Program) -> None:
    script = "head -c 3000000 /dev/zero | tr '\\0' e >&2; printf '\\n\\033[31mlast\\033[0m words\\n' >&2; exit 255"
    assert program(script).converse("laptop", asked()).last_line == "␛[31mlast␛[0m words"
    long = program("head -c 3000000 /dev/zero | tr '\\0' e >&2; exit 255").converse("laptop", asked()).last_line
    assert len(long) == openssh.MAX_ERROR_LINE_CHARS


def test_a_stream_that_somebody_else_holds_open_is_not_waited_for(program: Program) -> None:
    began = time.monotonic()
    talk = asked()
    # What a multiplexing master does with standard error, and a stray child with both.
    ending = program(f"sleep 3 & {MARK}; {ANSWER}; echo said >&2").converse("laptop", talk)
    assert talk.answer is not None
    assert (ending.status, ending.last_line) == (0, "said")
    assert time.monotonic() - began < 2.5


def test_without_the_program_nothing_was_sent() -> None:
    ending = OpenSsh("/nowhere/ssh").converse("laptop", asked())
    assert (ending.cause, ending.last_line) == (NOT_STARTED, "cannot run /nowhere/ssh: No such file or directory")


def withdrawn(transport: OpenSsh, talk: Conversation, stage: str) -> tuple[str, float]:
    """How a request ends that is withdrawn at a stage, and how long that took."""
    said_at: list[float] = []
    with Withdrawal() as withdrawal:

        def withdraw(reached: str) -> None:
            if reached == stage:
                said_at.append(time.monotonic())
                threading.Thread(target=withdrawal.say).start()

        ending = transport.converse("laptop", talk, Hooks(withdrawal, withdraw))
        withdrawal.say()
    return ending.cause, time.monotonic() - said_at[0]


def test_withdrawn_before_the_marker_it_ends_at_once(program: Program) -> None:
    cause, took_s = withdrawn(program("exec sleep 60"), asked(), "connecting")
    assert (cause, took_s < 1.5) == (WITHDRAWN, True)


def test_withdrawn_behind_it_the_other_side_has_its_say(program: Program) -> None:
    talk = asked()
    script = f'{MARK}; while read -r more; do :; done; printf \'{{"version":1,"error":"Cancelled."}}\\n\''
    cause, took_s = withdrawn(program(script), talk, "handed_over")
    assert (cause, talk.answer, took_s < 1.5) == (WITHDRAWN, {"version": 1, "error": "Cancelled."}, True)


def test_withdrawn_from_one_that_does_not_listen_it_ends_in_time(program: Program) -> None:
    cause, took_s = withdrawn(program(f"{MARK}; exec sleep 60"), asked(), "handed_over")
    assert cause == WITHDRAWN
    assert openssh.WITHDRAWN_GRACE_S <= took_s < openssh.WITHDRAWN_GRACE_S + 1.5
