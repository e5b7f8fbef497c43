"""`intercomctl join` as a session that stays: over a broker's restart, and under one name in one directory."""

from __future__ import annotations

import contextlib
import json
import subprocess

from tests.support.ctl import PROGRAM
from tests.support.daemon import running_daemon


def test_a_broker_that_goes_is_joined_again_and_what_is_open_is_answered(alone):
    waiting = alone.having(PI_INTERCOM_START_POLICY="supervisor")
    with running_daemon("--idle-exit-s", "600", directory=alone.directory) as broker:
        with waiting.joined("ann") as ann, waiting.joined("bob") as bob:
            ann.say({"action": "ask", "requestId": "a", "to": "bob", "text": "why?"})
            bob.hear("message")
            broker.kill()
            ann.hear("disconnected")
            lost = ann.ask_and_hear("sent", action="send", to="bob", text="x")
            assert (lost["outcome"], lost["code"]) == ("not_sent", "not_connected")
            with running_daemon("--idle-exit-s", "600", directory=alone.directory):
                assert ann.hear("registered")["sessionId"] == ann.session_id
                bob.hear("registered")
                assert ann.ask_and_hear("sent", action="send", to="bob", text="still here")["outcome"] == "delivered"
                assert bob.hear("message")["message"]["content"]["text"] == "still here"
        assert [event["event"] for event in ann.events if event.get("requestId") == "a"] == ["sent", "error"]


def test_a_name_keeps_its_session_in_its_directory(alone):
    with running_daemon("--idle-exit-s", "600", directory=alone.directory):
        first = _join_once(alone, "ann", {"action": "presence", "requestId": 1, "status": "here"})
        again = _join_once(alone, "ann", {"action": "list", "requestId": 1})
        assert first["sessionId"] == again["sessionId"]
        elsewhere = alone.run("join", "ann", "--jsonl", cwd="/tmp")
        assert json.loads(elsewhere.out.splitlines()[0])["sessionId"] != first["sessionId"]


def test_a_second_join_of_a_name_is_a_session_of_its_own(alone):
    with running_daemon("--idle-exit-s", "600", directory=alone.directory), _staying(alone, "ann"):
        second = alone.run("join", "ann", "--jsonl")
        assert second.status == 0
        assert "ann has joined from this directory already; this session is another one" in second.err


def _join_once(ctl, name, *actions):
    ended = ctl.run("join", name, "--jsonl", stdin="\n".join(map(json.dumps, actions)).encode())
    assert ended.status == 0, ended.err
    return json.loads(ended.out.splitlines()[0])


@contextlib.contextmanager
def _staying(ctl, name):
    """Somebody who joined under a name and keeps it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    program = subprocess.Popen([PROGRAM, "join", name, "--jsonl"], env=ctl.environment, cwd="/", **pipes)
    try:
        assert json.loads(program.stdout.readline())["event"] == "registered"
        yield
    finally:
        program.communicate()
