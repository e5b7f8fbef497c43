"""The examples are run as a reader would run them."""

from __future__ import annotations

import os
import subprocess
import sys

from libintercom.client import Client
from libintercom.profile import profile_from_environment
from tests.support.daemon import ROOT, running_daemon

# The example says in prose what it is and in code how little it takes.
MAX_CODE_LINES = 25


def test_echo_joins_answers_and_leaves_with_its_input() -> None:
    with running_daemon() as daemon:
        environ = {**os.environ, "PI_INTERCOM_RUNTIME_DIR": daemon.directory, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(ROOT / "examples/echo.py"), "parrot"]
        with subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as agent:
            assert agent.stdout is not None
            assert agent.stdout.readline().startswith("parrot joined as pi-")
            with Client(profile_from_environment(name="asker", environ={}), path=daemon.socket_path) as client:
                answered = client.ask("parrot", "anybody there?", timeout_s=10)
                assert answered.reply is not None
                assert answered.reply.message.content.text == "You asked: anybody there?"
                _output, errors = agent.communicate(timeout=20)
                assert (agent.returncode, errors) == (0, "")
                assert "parrot" not in [one.name for one in client.list_sessions().rows]


def test_echo_is_short() -> None:
    text = (ROOT / "examples/echo.py").read_text()
    code = [line for line in text.split('"""', 2)[2].splitlines() if line.strip()]
    assert len(code) <= MAX_CODE_LINES
