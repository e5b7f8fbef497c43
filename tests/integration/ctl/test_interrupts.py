"""Ctrl-C at each stage of a message: the status is 130, and what is known of the message is said once, and truly."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess

import pytest

from tests.support.ctl import PROGRAM, Ctl, Ended, terminal
from tests.support.scripted_broker import answer_list, scripted, stay
from tests.support.waiting import DEADLINE_S, wait_until


def interrupt_when_heard(broker, kind, *words):
    """Run a command and interrupt it once the broker's end has heard a frame of a kind."""
    ctl, command = Ctl(os.path.dirname(broker.path)), [PROGRAM, *words]
    with subprocess.Popen(
        command, env=ctl.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as sending:
        wait_until(lambda: any(heard["type"] == kind for heard in broker.said), kind)
        sending.send_signal(signal.SIGINT)
        out, err = sending.communicate()
    return Ended(sending.returncode, out, err)


def staying_silent(peer):
    """A broker's end that registers, hears everything and says nothing more, not even the end."""
    peer.register()
    while peer.hear():
        pass


@pytest.mark.parametrize("is_json", [False, True])
def test_an_interrupt_tells_what_is_known_of_the_message(is_json):
    options = ["--json"] if is_json else []
    words = ["send", "bob", "x", "--message-id", "m1", *options]
    with scripted(stay) as broker:
        early = interrupt_when_heard(broker, "register", *words)
        broker.finish()
    assert early.status == 130
    assert "The message was not sent" in early.err
    with scripted(staying_silent) as broker:
        late = interrupt_when_heard(broker, "send", *words)
        broker.finish()
    assert late.status == 130
    assert "Delivery unknown: interrupted before an acknowledgement came" in late.err
    assert "message m1" in late.err
    if is_json:
        assert (early.json["outcome"], early.json["code"]) == ("not_sent", "cancelled")
        assert set(late.json) == {"version", "outcome", "messageId", "reason", "deliveryUnknown"}
        assert (late.json["outcome"], late.json["messageId"]) == ("unknown", "m1")


def acknowledging(peer):
    """A broker's end that takes the message and then hangs: it does not close when the sender leaves."""
    peer.register()
    message = peer.hear()["message"]
    peer.say({"type": "delivered", "messageId": message["id"]})
    poller = select.poll()
    while peer.hear():
        pass
    poller.register(peer.connection, 0)
    assert poller.poll(DEADLINE_S * 1000)


def test_an_interrupt_while_leaving_hides_no_outcome():
    with scripted(acknowledging) as broker:
        ended = interrupt_when_heard(broker, "unregister", "send", "bob", "x", "--json")
        broker.finish()
    assert ended.status == 130
    assert ended.json["outcome"] == "delivered"


def test_an_interrupt_before_the_question_left_says_so():
    with scripted(stay) as broker:
        ended = interrupt_when_heard(broker, "register", "ask", "bob", "why?", "--json")
        broker.finish()
    assert (ended.status, ended.json["outcome"], ended.json["code"]) == (130, "not_sent", "cancelled")
    assert ended.err == "intercomctl: Cancelled. The question was not sent.\n"


def test_an_interrupted_wait_keeps_what_is_known_of_the_question():
    def acknowledge(peer):
        peer.register()
        while heard := peer.hear():
            if not answer_list(peer, heard) and heard["type"] == "send":
                peer.say({"type": "delivered", "messageId": heard["message"]["id"]})

    with scripted(acknowledge) as broker, terminal(80) as (master, slave):
        command = [PROGRAM, "ask", "bob", "why?", "--message-id", "q1", "--json", "--keep-reply", "0"]
        environment = Ctl(os.path.dirname(broker.path)).environment
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=slave) as asking:
            os.close(slave)
            shown = b""
            # The progress line begins with the acknowledgement, and no earlier.
            while b"asked bob" not in shown:
                shown += os.read(master, 1024)
            asking.send_signal(signal.SIGINT)
            told = json.loads(asking.communicate()[0])
        broker.finish()
    assert asking.returncode == 130
    assert (told["outcome"], told["messageId"], told["endedBy"]) == ("delivered", "q1", "cancelled")
    assert (told["accepted"], told["delivered"], told["deliveryUnknown"]) == (True, True, False)
    assert broker.said[-2] == {"type": "cancel_ask", "messageId": "q1"}
