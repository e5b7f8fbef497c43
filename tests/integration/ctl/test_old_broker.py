"""A broker that knows nothing of our extensions: what works, and what is said about the rest."""

from __future__ import annotations

import pytest

from tests.support.ctl import Ctl
from tests.support.daemon import runtime_directory
from tests.support.scripted_broker import ScriptedBroker

OTHER = {"id": "pi-other001", "cwd": "/w", "model": "m", "name": "bob"}


def old(peer):
    """Register like an old one, list everybody with the asker among them, deliver everything."""
    heard = peer.register(ext=False)
    own = {"id": "pi-client01", **heard["session"]}
    while heard := peer.hear():
        if heard["type"] == "list":
            peer.say({"type": "sessions", "requestId": heard["requestId"], "sessions": [OTHER, own]})
        elif heard["type"] == "send":
            peer.say({"type": "delivered", "messageId": heard["message"]["id"]})


@pytest.fixture
def ctl():
    with runtime_directory() as directory:
        broker = ScriptedBroker(f"{directory}/broker.sock", [old])
        yield Ctl(directory)
        broker.close()


LISTED = "the running broker is older than this program: it lists this command as an ordinary main."


def test_a_list_says_that_it_was_seen_and_leaves_itself_out(ctl):
    ended = ctl.run("list", "--json")
    assert ended.status == 0
    assert LISTED in ended.err
    assert [row["name"] for row in ended.json["mains"]] == ["bob"]
    assert ended.json["self"] is None


def test_status_says_that_the_broker_does_not_tell(ctl):
    ended = ctl.run("status")
    assert ended.status == 0
    assert LISTED in ended.err
    assert "**Broker:** older than this program" in ended.out


def test_metrics_are_not_to_be_had(ctl):
    ended = ctl.run("metrics")
    assert ended.status != 0
    assert "does not know counters; it is older than this program" in ended.err


def test_a_send_is_delivered(ctl):
    ended = ctl.run("send", "bob", "x")
    assert ended.status == 0
    assert ended.out.startswith("Message sent to bob")


def test_an_unknown_target_is_refused_by_the_broker_or_here(ctl):
    ended = ctl.run("send", "pi-ot", "x")
    assert ended.status == 1
    assert "is too short" in ended.err
