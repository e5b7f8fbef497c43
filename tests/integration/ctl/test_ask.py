"""`intercomctl ask` on a real broker: the reply, and every other end of the wait with its status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading

import pytest

from tests.support.ctl import PROGRAM
from tests.support.daemon import running_daemon

SENT = {"version", "outcome", "messageId", "accepted", "delivered", "deliveryUnknown"}


@pytest.fixture
def bob(ctl):
    with ctl.joined("bob") as session:
        yield session


def begin(ctl, *words, **streams):
    """An ask that runs while the test goes on."""
    command = [PROGRAM, "ask", *words]
    return subprocess.Popen(
        command, env=ctl.environment, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **streams
    )


def answer(session, text="42", **more):
    """Reply to the next question; the question."""
    question = session.hear("message")["message"]
    session.ask_and_hear("sent", action="reply", replyTo=question["id"], text=text, **more)
    return question


def test_the_reply_is_printed(ctl, bob):
    with begin(ctl, "bob", "how many?") as asking:
        question = answer(bob)
        out, err = asking.communicate()
    assert asking.returncode == 0
    assert out == "**Reply from bob:**\n42\n"
    assert err == ""
    assert question["expectsReply"] is True
    assert question["timeoutMs"] == 120_000
    assert "delivery" not in question


def test_the_json_of_a_reply(ctl, bob, tmp_path):
    attachment = {"type": "file", "name": "f", "content": "c"}
    with begin(ctl, "bob", "--stdin", "--json", stdin=subprocess.PIPE) as asking:
        asking.stdin.write("how\nmany?")
        asking.stdin.close()
        question = answer(bob, "4\u202e2", attachments=[attachment])
        shown = json.loads(asking.stdout.read())
    assert question["content"]["text"] == "how\nmany?"
    assert set(shown) == SENT | {"reply"}
    assert shown["messageId"] == question["id"]
    assert shown["outcome"] == "delivered"
    assert shown["reply"].pop("id")
    assert shown["reply"] == {"text": "4\u202e2", "from": "bob", "fromId": bob.session_id, "attachments": [attachment]}


def test_without_a_reply_in_time_it_ends_with_5_and_the_question_is_withdrawn(ctl, bob):
    ended = ctl.run("ask", "bob", "why?", "--timeout", "0.3", "--message-id", "q-late", "--keep-reply", "0")
    assert (ended.status, ended.out) == (5, "")
    assert ended.err == (
        'intercomctl: No reply from "bob" within 0.3 seconds. The question was delivered (message q-late). '
        "Nobody waits for its reply now.\n"
    )
    assert bob.hear("ask_retired")["messageId"] == "q-late"


def test_the_json_of_a_wait_that_ended(ctl, bob):
    ended = ctl.run("ask", "bob", "why?", "--timeout", "0.3", "--json")
    assert ended.status == 5
    assert set(ended.json) == SENT | {"endedBy", "isReplyKept"}
    assert (ended.json["endedBy"], ended.json["accepted"], ended.json["deliveryUnknown"]) == ("timeout", True, False)


def test_a_busy_recipient_is_asked_and_not_waited_for(ctl, bob):
    bob.ask_and_hear("ok", action="presence", acceptsAsks=False)
    ended = ctl.run("ask", "bob", "why?")
    assert ended.status == 5
    assert "is busy (accepts_asks:false)" in ended.err
    assert bob.hear("message")["message"]["content"]["text"] == "why?"


def test_an_explicit_delivery_waits_for_a_busy_recipient(ctl, bob):
    bob.ask_and_hear("ok", action="presence", acceptsAsks=False)
    with begin(ctl, "bob", "why?", "--delivery", "steer") as asking:
        assert answer(bob)["delivery"] == "steer"
        assert asking.communicate()[0].endswith("42\n")


def test_a_recipient_that_leaves_ends_the_wait(ctl):
    with ctl.joined("bob") as bob, begin(ctl, "bob", "why?") as asking:
        bob.hear("message")
        bob.end_input()
        _out, err = asking.communicate()
    assert asking.returncode == 5
    assert '"bob" left before it replied.' in err


def test_a_broker_that_goes_ends_the_wait(alone):
    with running_daemon("--idle-exit-s", "600", directory=alone.directory) as broker, alone.joined("bob") as bob:
        with begin(alone, "bob", "why?", "--json") as asking:
            bob.hear("message")
            # An answer to a later request: the acknowledgement has left the broker by now.
            bob.ask_and_hear("sessions", action="list")
            broker.kill()
            shown = json.loads(asking.communicate()[0])
        assert asking.returncode == 5
        assert (shown["endedBy"], shown["accepted"], shown["deliveryUnknown"]) == ("disconnected", True, False)


def test_an_unknown_target_is_refused_at_once(ctl, bob):
    ended = ctl.run("ask", "bub", "why?")
    assert (ended.status, ended.out) == (1, "")
    assert "Did you mean" in ended.err
    assert "intercomctl list" in ended.err


def test_a_circle_of_questions_is_refused_and_names_it(ctl, bob):
    with begin(ctl, "bob", "ask me back", "--as", "carol") as asking:
        question = bob.hear("message")
        bob.say({"action": "ask", "requestId": "back", "to": question["from"]["id"], "text": "why?"})
        refused = bob.hear("sent", "back")
        assert (refused["outcome"], refused["code"]) == ("refused", "ask_cycle")
        assert "carol" in refused["reason"]
        assert bob.hear("error", "back")
        bob.ask_and_hear("sent", action="reply", replyTo=question["message"]["id"], text="done")
        assert asking.communicate()[0].endswith("done\n")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "3601", "inf"])
def test_a_timeout_outside_its_range_is_refused(ctl, seconds):
    ended = ctl.run("ask", "bob", "why?", f"--timeout={seconds}")
    assert ended.status == 2
    assert "at most 3600 seconds" in ended.err


def test_an_interrupted_wait_ends_with_130_and_withdraws_the_question(ctl, bob):
    with begin(ctl, "bob", "why?", "--keep-reply", "0", start_new_session=True) as asking:
        question = bob.hear("message")["message"]
        os.kill(asking.pid, signal.SIGINT)
        out, err = asking.communicate()
    assert asking.returncode == 130
    assert out == ""
    # Whether the acknowledgement was here already when the interrupt came is not decided (see test_interrupts.py).
    known = "The question was delivered", "Whether the question arrived is unknown"
    assert err in [f"intercomctl: Cancelled. {one} (message {question['id']}).\n" for one in known]
    assert bob.hear("ask_retired")["messageId"] == question["id"]


@pytest.mark.parametrize("columns", [80, 160])
def test_a_terminal_sees_the_progress_and_then_the_reply_alone(ctl, bob, columns):
    shown = {}

    def ask():
        shown["ended"] = ctl.run_at_terminal("ask", "bob", "why?", columns=columns)

    asking = threading.Thread(target=ask)
    asking.start()
    answer(bob)
    asking.join()
    out = shown["ended"].out.replace("\r\n", "\n")
    assert "asked bob; waiting for the reply, 0 s of 120 s" in out
    assert out.split("\x1b[K")[-1] == "**Reply from bob:**\n42\n"


def test_only_the_progress_goes_to_a_terminal_on_stderr(ctl, bob):
    with begin(ctl, "bob", "why?") as asking:
        answer(bob)
        assert asking.communicate() == ("**Reply from bob:**\n42\n", "")
