"""A reply that comes when its `intercomctl ask` has long ended is kept, and fetched once."""

from __future__ import annotations

import os
import signal
import stat
import subprocess

import pytest

from tests.support.ctl import PROGRAM
from tests.support.daemon import running_daemon
from tests.support.waiting import wait_until


@pytest.fixture
def place(alone):
    """A namespace of its own, state directory included, with a broker that stays."""
    with running_daemon("--idle-exit-s", "600", directory=alone.directory):
        yield alone


def kept_files(ctl):
    folder = f"{ctl.directory}/state/intercom/asks"
    return [f"{folder}/{name}" for name in os.listdir(folder)] if os.path.isdir(folder) else []


def test_a_reply_after_the_timeout_is_kept_and_fetched_once(place):
    with place.joined("bob") as bob:
        ended = place.run("ask", "bob", "why?", "--timeout", "0.3", "--message-id", "q-1")
        assert ended.status == 5
        assert ended.err == (
            'intercomctl: No reply from "bob" within 0.3 seconds. The question was delivered (message q-1). '
            "A reply that comes later is kept: intercomctl pending --mine\n"
        )
        waiting = place.run("pending", "--mine")
        assert (waiting.status, waiting.err) == (0, "")
        assert waiting.out.startswith("Question q-1 to bob, asked 0s ago: no reply yet.")
        bob.hear("message")
        sent = bob.ask_and_hear("sent", action="reply", replyTo="q-1", text="because")
        assert sent["outcome"] == "queued"
        fetched = place.run("pending", "--mine")
        assert (fetched.status, fetched.out) == (0, "**Reply from bob:**\nbecause\n")
        assert place.run("pending", "--mine").out == "No reply is kept, and none is waited for.\n"
        assert kept_files(place) == []


def test_an_interrupted_wait_leaves_the_question_and_the_program_may_die(place):
    for number in (signal.SIGINT, signal.SIGKILL):
        with place.joined("bob") as bob:
            command = [PROGRAM, "ask", "bob", "why?"]
            with subprocess.Popen(command, env=place.environment, cwd="/", stderr=subprocess.PIPE) as asking:
                question = bob.hear("message")["message"]
                os.kill(asking.pid, number)
                err = asking.communicate()[1].decode()
            assert ("A reply that comes later is kept: intercomctl pending --mine" in err) == (number == signal.SIGINT)
            bob.ask_and_hear("sent", action="reply", replyTo=question["id"], text="late")
            told = place.run("pending", "--mine", "--json").json["mine"]
            assert [(one["messageId"], one["state"], one["reply"]["text"]) for one in told] == [
                (question["id"], "replied", "late")
            ]
            assert place.run("pending", "--mine", "--json").json["mine"] == []


def test_a_reply_in_time_and_a_refused_question_leave_nothing_behind(place):
    with place.joined("bob") as bob:
        with subprocess.Popen([PROGRAM, "ask", "bob", "why?"], env=place.environment, stdout=subprocess.PIPE) as asking:
            question = bob.hear("message")["message"]
            (path,) = kept_files(place)
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            bob.ask_and_hear("sent", action="reply", replyTo=question["id"], text="42")
            assert asking.communicate()[0] == b"**Reply from bob:**\n42\n"
        assert "replyToken" not in question
        assert place.run("ask", "nobody-here", "why?").status == 1
        assert place.run("ask", "bob", "bell \x07").status == 2
        assert kept_files(place) == []


def test_a_question_that_a_new_broker_does_not_know_is_told_once(alone):
    with running_daemon("--idle-exit-s", "600", directory=alone.directory), alone.joined("bob"):
        ended = alone.run("ask", "bob", "why?", "--timeout", "0.3", "--keep-reply", "0.5", "--message-id", "q-1")
        assert ended.status == 5

        def look() -> str:
            shown = alone.run("pending", "--mine").out
            return "" if "no reply yet" in shown else shown

        told = wait_until(look, "the end of the question's time")
        assert "its time is over and no reply came." in told or "the broker does not know it (any more)." in told
        assert kept_files(alone) == []


def test_where_nothing_can_be_kept_nothing_is_sent(place):
    os.makedirs(f"{place.directory}/state/intercom")
    with open(f"{place.directory}/state/intercom/asks", "w", encoding="utf-8"):
        pass
    with place.joined("bob"):
        refused = place.run("ask", "bob", "why?", "--json")
        assert refused.status == 1
        assert refused.json["outcome"] == "not_sent"
        assert "cannot keep a question in " in refused.err
        assert place.run("ask", "bob", "why?", "--keep-reply", "0", "--timeout", "0.3").status == 5


@pytest.mark.parametrize("seconds", ["-1", "86401", "nan"])
def test_a_time_that_no_broker_keeps_is_refused(place, seconds):
    refused = place.run("ask", "bob", "why?", "--keep-reply", seconds)
    assert refused.status == 2
    assert f"--keep-reply is {seconds}; it takes 0 to 86400 seconds." in refused.err
