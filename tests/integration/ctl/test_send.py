"""`intercomctl send` on a real broker: every way to say a body, every outcome with its status and its JSON."""

from __future__ import annotations

import json

import pytest

from libintercom.identity import child_environment, peer_id
from tests.support.ctl import Ctl
from tests.support.daemon import runtime_directory
from tests.support.scripted_broker import ScriptedBroker

ACCEPTED = {"version", "outcome", "messageId", "accepted", "delivered", "deliveryUnknown"}


@pytest.fixture
def bob(ctl):
    with ctl.joined("bob") as session:
        yield session


def heard(session):
    """The next message: its sender and itself."""
    event = session.hear("message")
    return event["from"], event["message"]


def test_a_message_arrives_and_its_outcome_is_told(ctl, bob):
    ended = ctl.run("send", "bob", "hello")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("Message sent to bob (defaults to steer; ")
    sender, message = heard(bob)
    assert (sender["name"], sender["cwd"], sender["model"]) == ("intercomctl-tester", "/", "intercomctl")
    assert message["content"] == {"text": "hello"}
    assert message["delivery"] == "steer"


def test_the_json_of_a_delivered_message(ctl, bob):
    shown = ctl.run("send", bob.session_id, "hello", "--json").json
    _sender, message = heard(bob)
    assert shown == {
        "version": 1,
        "outcome": "delivered",
        "messageId": message["id"],
        "accepted": True,
        "delivered": True,
        "deliveryUnknown": False,
    }


@pytest.mark.parametrize("target", ["bob", "BOB", " bob ", "prefix"])
def test_a_target_is_a_name_or_the_beginning_of_an_id(ctl, bob, target):
    assert ctl.run("send", bob.session_id[:8] if target == "prefix" else target, "x").status == 0
    assert heard(bob)[1]["content"]["text"] == "x"


def test_a_body_from_standard_input_and_from_a_file_is_exact(ctl, bob, tmp_path):
    raw = "zwei\r\nZeilen\tmit Ümlaut\n"
    (tmp_path / "body").write_bytes(raw.encode())
    assert ctl.run("send", "bob", "--stdin", stdin=raw.encode()).status == 0
    assert heard(bob)[1]["content"]["text"] == raw
    assert ctl.run("send", "bob", "--body-file", str(tmp_path / "body")).status == 0
    assert heard(bob)[1]["content"]["text"] == raw


def test_attachments_carry_their_kind(ctl, bob, tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    path = str(tmp_path / "a.py")
    assert (
        ctl.run("send", "bob", "--attach", path, "--attach", f"{path}:snippet", "--attach", f"{path}:context").status
        == 0
    )
    content = heard(bob)[1]["content"]
    assert content["text"] == ""
    assert [one["type"] for one in content["attachments"]] == ["file", "snippet", "context"]
    assert {(one["name"], one["content"]) for one in content["attachments"]} == {("a.py", "x = 1\n")}


def test_the_options_travel_with_the_message(ctl, bob):
    words = ["--delivery", "passive", "--reply-to", "q1", "--message-id", "m1", "--as", "carol"]
    assert ctl.run("send", "bob", "x", *words).status == 0
    sender, message = heard(bob)
    assert sender["name"] == "carol"
    assert (message["id"], message["replyTo"], message["delivery"]) == ("m1", "q1", "passive")


def test_a_later_message_of_a_thread_replaces_the_staged_one(ctl, bob):
    words = ["--delivery", "queue", "--queue-mode", "replace", "--thread", "t", "--session-id", "one-session"]
    first = ctl.run("send", "bob", "first", *words, "--json")
    assert first.status == 0
    assert set(first.json) == ACCEPTED | {"reason"}
    assert (first.json["outcome"], first.json["accepted"], first.json["delivered"]) == ("queued", True, False)
    second = ctl.run("send", "bob", "second", *words)
    assert "Message queued for bob (queue; " in second.out
    assert heard(bob)[1]["content"]["text"] == "second"


def test_the_native_id_decides_the_peer_id(ctl, bob):
    assert ctl.run("send", "bob", "x", "--session-id", "native").status == 0
    assert heard(bob)[0]["id"] == peer_id("native")


def test_a_session_id_that_is_connected_is_told(ctl, bob):
    with ctl.joined("carol", "--session-id", "native-carol"):
        ended = ctl.run("send", "bob", "x", "--session-id", "native-carol")
    assert ended.status == 0
    assert "session native-carol is connected already; this command speaks as " in ended.err
    assert heard(bob)[0]["id"] != peer_id("native-carol")


def test_a_childs_shell_speaks_as_that_child(ctl, bob):
    child = ctl.having(**child_environment("ann-native"))
    with ctl.joined("ann", "--session-id", "ann-native") as ann:
        assert child.run("send", "ann", "x").status == 0
        sender, _message = heard(ann)
        assert (sender["rootSessionId"], sender["parentSessionId"]) == ("ann-native", "ann-native")
        forbidden, unknown = child.run("send", "bob", "x", "--json"), child.run("send", "nix", "x", "--json")
    assert forbidden.status == unknown.status == 1
    assert {**forbidden.json, "messageId": ""} == {**unknown.json, "messageId": ""}


def test_the_environment_names_a_session_unless_the_command_line_does(ctl, bob):
    named = ctl.having(PI_SUBAGENT_INTERCOM_SESSION_NAME="scout-1")
    assert named.run("send", "bob", "x").status == 0
    assert heard(bob)[0]["name"] == "scout-1"
    assert named.run("send", "bob", "x", "--as", "other").status == 0
    assert heard(bob)[0]["name"] == "other"


def test_an_unknown_target_is_refused_with_the_nearest_names(ctl, bob):
    ended = ctl.run("send", "bub", "x")
    assert (ended.status, ended.out) == (1, "")
    assert f"Did you mean: {bob.session_id[:8]} (bob, /)? See who is there: intercomctl list" in ended.err
    shown = ctl.run("send", "bub", "x", "--json")
    assert shown.status == 1
    assert set(shown.json) >= ACCEPTED | {"code", "reason"}
    assert (shown.json["outcome"], shown.json["code"]) == ("refused", "not_found")
    assert (shown.json["accepted"], shown.json["delivered"], shown.json["deliveryUnknown"]) == (False, False, False)
    assert shown.json["nearest"][0]["name"] == "bob"


def test_an_ambiguous_target_lists_the_targets_to_use(ctl, bob):
    with ctl.joined("BOB") as other:
        ended = ctl.run("send", "bob", "x")
    assert ended.status == 1
    assert "matches multiple sessions" in ended.err
    assert bob.session_id[:8] in ended.err
    assert other.session_id[:8] in ended.err


NOT_SENT = [
    (["bob"], "there is no text"),
    (["bob", "x", "--stdin"], "TEXT and --stdin are given"),
    (["bob", "x", "--queue-mode", "replace"], 'queueMode needs delivery "queue"'),
    (["bob", "x", "--thread", "t"], "threadId goes with"),
    (["bob", "a\x1bb"], "text is not"),
    (["bob", "x", "--message-id", ""], "is not a label"),
    (["bob", "--body-file", "/nonexistent"], "cannot read /nonexistent"),
    (["", "x"], "the target is empty"),
]


@pytest.mark.parametrize(("words", "reason"), NOT_SENT)
def test_what_cannot_be_sent_is_told_and_certainly_not_sent(ctl, words, reason):
    ended = ctl.run("send", *words)
    assert (ended.status, ended.out) == (2, "")
    assert reason in ended.err
    shown = ctl.run("send", *words, "--json")
    assert shown.status == 2
    assert shown.json["outcome"] == "not_sent"
    assert (shown.json["accepted"], shown.json["delivered"], shown.json["deliveryUnknown"]) == (False, False, False)


def test_a_body_over_the_limit_is_refused_here_with_both_sizes(ctl, bob):
    ended = ctl.run("send", "bob", "--stdin", stdin=b"a" * 1_048_576)
    assert ended.status == 2
    assert "max 1048576" in ended.err


@pytest.mark.parametrize("name", ["send", "ask"])
@pytest.mark.parametrize("source", ["--stdin", "--body-file", "--attach"])
def test_a_body_no_message_can_hold_is_told_as_what_it_is(ctl, tmp_path, name, source):
    """One byte more than a frame is not read whole; the code and the status are those of a frame too large."""
    body = b"a" * 3_000_000
    (tmp_path / "f").write_bytes(body)
    words = [source] if source == "--stdin" else [source, str(tmp_path / "f")]
    ended = ctl.run(name, "bob", *words, "--json", stdin=body)
    assert (ended.status, ended.json["code"], ended.json["outcome"]) == (2, "too_large", "not_sent")
    assert "over 1048576 bytes" in ended.err
    assert "Nothing was sent" in ended.err


@pytest.mark.parametrize("name", ["send", "ask"])
def test_a_closed_standard_input_is_a_mistake_and_no_bug(ctl, name):
    for words, found in (("--stdin", "standard input is closed"), ("", "there is no text")):
        ended = ctl.in_shell(f"{name} bob {words} <&-")
        assert (ended.status, ended.out) == (2, "")
        assert found in ended.err


def test_every_message_has_an_id_of_its_own(ctl, bob):
    ids = {json.loads(ctl.run("send", "bob", "x", "--json").out)["messageId"] for _ in range(2)}
    assert len(ids) == 2


def test_the_output_may_have_no_reader(ctl, bob):
    for stream in ("/dev/full", "&-"):
        ended = ctl.in_shell(f"send bob x >{stream}")
        assert heard(bob)[1]["content"]["text"] == "x"
        assert "Traceback" not in ended.err
        assert ended.status == (1 if stream == "/dev/full" else 0)
    assert ctl.in_shell("send bob x | true").status == 0


def test_at_a_terminal_the_editor_writes_the_body(ctl, bob, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "from the editor" > "$1"\n', encoding="utf-8")
    editor.chmod(0o700)
    ended = ctl.having(EDITOR=str(editor)).run_at_terminal("send", "bob")
    assert ended.status == 0, ended.out
    assert heard(bob)[1]["content"]["text"] == "from the editor"


def closing(peer):
    """A broker's end that goes away with a message in its hands."""
    peer.register()
    while peer.hear()["type"] != "send":
        pass


@pytest.mark.parametrize("name", ["send", "ask"])
def test_a_lost_acknowledgement_is_an_unknown_outcome(name):
    for is_json in (False, True):
        with runtime_directory() as directory:
            broker = ScriptedBroker(f"{directory}/broker.sock", [listing_and_closing if name == "ask" else closing])
            ended = Ctl(directory).run(name, "bob", "x", *(["--json"] if is_json else []))
            broker.close()
        assert ended.status == 3
        assert "The message may have arrived. Check the recipient" in ended.err
        if is_json:
            assert (ended.json["outcome"], ended.json["deliveryUnknown"]) == ("unknown", True)
            assert not {"accepted", "delivered"} & set(ended.json)


def listing_and_closing(peer):
    """The same for an ask, which looks its target up first."""
    peer.register()
    while (heard := peer.hear())["type"] != "send":
        peer.say({"type": "sessions", "requestId": heard["requestId"], "sessions": []})
