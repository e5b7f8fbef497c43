"""The durable example, run as a reader would run it: asked from outside and by its own child, killed, interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.daemon import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.daemon import Daemon
    from tests.support.sessions import Site

# The example says in prose what it is and in code how little it takes.
MAX_CODE_LINES = 25
# The child asks its main, as any shell inside it could, and says what it heard.
CHILD = [sys.executable, "-m", "intercomctl", "ask", "durable", "are you my main?"]


@contextlib.contextmanager
def running(place: Site, *command: str) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, **place.environment, "PYTHONPATH": str(ROOT)}
    started = [sys.executable, str(ROOT / "examples/durable.py"), "durable", *command]
    with subprocess.Popen(started, env=environ, cwd=place.state, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        line = agent.stdout.readline()
        assert line.startswith("durable joined as pi-"), line
        try:
            yield agent
        finally:
            agent.kill()


def test_it_answers_its_child_and_others_and_leaves_on_an_interrupt(place: Site, broker: Daemon) -> None:
    with running(place, *CHILD) as agent, place.join_blocking("asker") as asker:
        assert agent.stdout is not None
        heard = ""
        while "You asked: are you my main?" not in heard:
            line = agent.stdout.readline()
            assert line, heard
            heard += line
        answered = asker.ask("durable", "anybody there?", timeout_s=10)
        assert answered.reply is not None
        assert answered.reply.message.content.text == "You asked: anybody there?"
        agent.send_signal(signal.SIGINT)
        assert agent.wait(20) == 130
        assert "durable" not in [row.name for row in asker.list_sessions().rows]


def test_after_a_kill_it_is_the_same_session(place: Site, broker: Daemon) -> None:
    with place.join_blocking("asker") as asker:
        with running(place) as agent:
            (first,) = [row.id for row in asker.list_sessions().rows if row.name == "durable"]
            agent.kill()
        with running(place):
            (second,) = [row.id for row in asker.list_sessions().rows if row.name == "durable"]
    assert first == second


def test_it_is_short() -> None:
    text = (ROOT / "examples/durable.py").read_text()
    code = [line for line in text.split('"""', 2)[2].splitlines() if line.strip()]
    assert len(code) <= MAX_CODE_LINES
