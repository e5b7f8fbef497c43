"""What is left when a program is gone: pending, reply, last, receipt, trace and the journals themselves."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.support.daemon import running_daemon


@pytest.fixture
def place(alone):
    """A namespace of its own, state directory included, with a broker that stays."""
    with running_daemon("--idle-exit-s", "600", directory=alone.directory):
        yield alone


def ask_and_leave(ctl, asker, to, text):
    """Have a joined session ask; the question's ID."""
    return asker.ask_and_hear("sent", action="ask", to=to, text=text, delivery="steer", timeoutMs=600_000)["messageId"]


def test_pending_of_a_live_session_is_told_by_it(place):
    with place.joined("ann", "--session-id", "ann-1") as ann, place.joined("bob") as bob:
        message_id = ask_and_leave(place, bob, "ann", "Which port?")
        ann.hear("message")
        shown = place.run("pending", "--session-id", "ann-1", "--json")
        assert shown.status == 0, shown.err
        (view,) = shown.json["pending"]
        assert shown.json["isLive"] is True
        told = (view["messageId"], view["sender"], view["text"], view["kind"])
        assert told == (message_id, "bob", "Which port?", "ask")
        text = place.run("pending", "--session-id", "ann-1").out
        assert text.startswith("**Questions that wait for a reply (1):**\n• ")
        assert text.endswith(": Which port?\n")
        overview = place.run("pending")
        assert (overview.status, "• ann (" in overview.out, "): 1\n" in overview.out) == (0, True, True)


def test_reply_of_a_live_session_is_sent_by_it(place):
    with place.joined("ann", "--session-id", "ann-1") as ann, place.joined("bob") as bob:
        message_id = ask_and_leave(place, bob, "ann", "Which port?")
        ann.hear("message")
        replied = place.run("reply", "--session-id", "ann-1", "--reply-to", message_id, "Port 8443.")
        assert (replied.status, replied.out) == (0, "Reply sent to the asker\n"), replied.err
        heard = bob.hear("message")
        assert heard["message"]["replyTo"] == message_id
        assert heard["from"]["id"] == ann.session_id
        again = place.run("reply", "--session-id", "ann-1", "--reply-to", message_id, "twice", "--json")
        assert again.status == 1
        assert (again.json["code"], again.json["accepted"]) == ("no_pending_ask", False)
        attached = place.run("reply", "--session-id", "ann-1", "x", "--attach", "/etc/hostname")
        assert attached.status == 2
        assert "takes a text only" in attached.err


def test_a_session_that_is_gone_is_read_and_answered_for(place):
    with place.joined("bob") as bob:
        with place.joined("ann", "--session-id", "ann-1") as ann:
            message_id = ask_and_leave(place, bob, "ann", "Which port?")
            ann.hear("message")
            os.kill(ann.pid, signal.SIGKILL)
            ann.wait()
        shown = place.run("pending", "--session-id", "ann-1", "--json").json
        assert shown["isLive"] is False
        assert [view["messageId"] for view in shown["pending"]] == [message_id]
        replied = place.run("reply", "--session-id", "ann-1", "--stdin", stdin=b"Port 8443.\n")
        assert replied.status == 0, replied.err
        assert bob.hear("message")["message"]["content"]["text"] == "Port 8443.\n"
        assert place.run("pending", "--session-id", "ann-1").out == "Nothing waits.\n"


def test_whose_must_be_said_and_known(place):
    nameless = place.run("reply", "x")
    assert nameless.status == 2
    assert "whose? Give --as NAME" in nameless.err
    unknown = place.run("pending", "--as", "nobody-here")
    assert unknown.status == 1
    assert "no session 'nobody-here' has joined in /" in unknown.err
    assert place.run("pending").out == "No question waits in any session.\n"


def test_a_name_is_found_in_its_directory(place):
    first = place.run("join", "ann", "--jsonl")
    assert first.status == 0
    shown = place.run("pending", "--as", "ann", "--json")
    assert (shown.status, shown.json["pending"]) == (0, [])
    assert place.run("pending", "--as", "ann", cwd="/tmp").status == 1


def test_a_holder_that_cannot_be_asked_is_named(place):
    with place.joined("ann", "--session-id", "ann-1") as ann:
        for name in os.listdir(f"{place.directory}/state/intercom/journals"):
            if name.endswith(".badge"):
                os.unlink(f"{place.directory}/state/intercom/journals/{name}")
        refused = place.run("pending", "--session-id", "ann-1")
        assert refused.status == 4
        assert f"process {ann.pid} holds the journal of this session and cannot be asked" in refused.err


def test_a_receipt_tells_what_was_observed_and_trace_where(place):
    with place.joined("ann", "--session-id", "ann-1") as ann, place.joined("bob") as bob:
        bob.ask_and_hear("sent", action="send", to="ann", text="hello\r\n\u00e9", messageId="m-1")
        ann.hear("message")
        receipt = place.run("receipt", "ann", "m-1", "--json").json["receipt"]
        assert (receipt["messageId"], receipt["rootSessionId"], receipt["discarded"]) == ("m-1", "ann-1", False)
        assert receipt["sender"]["peerId"] == bob.session_id
        text = place.run("receipt", "ann", "m-1").out
        assert text.startswith("**Receipt of ann**\n**Message:** m-1\n**Root session:** ann-1\n")
        missing = place.run("receipt", "ann", "m-none", "--json")
        assert (missing.status, missing.json["code"]) == (1, "receipt_not_found")
        assert "proves neither" in missing.err
        other = place.run("receipt", "ann", "m-1", "--root", "another-root", "--json")
        assert (other.status, other.json["code"]) == (1, "publication_unavailable")
        assert place.run("receipt", "nobody-here", "m-1").status == 1
    traced = place.run("trace", "m-1", "--json")
    assert traced.status == 0
    (found,) = traced.json["journals"]
    assert (found["nativeId"], found["standing"]) == ("ann-1", "consumed")
    assert found["entries"][0]["kind"] == "admitted"
    assert found["receipt"]["textSha256"] == receipt["textSha256"]
    told = place.run("trace", "m-1").out
    assert "**In the journal of session ann-1:** consumed" in told
    assert "hello" not in told
    unknown = place.run("trace", "m-none")
    assert (unknown.status, unknown.out) == (1, "Nothing is known here of message m-none.\n")


def test_trace_without_a_broker_says_that_it_was_not_asked(alone):
    traced = alone.run("trace", "m-1")
    assert traced.status == 1
    assert "the broker was not asked: intercomd is not running" in traced.err


def test_last_of_a_session_without_responses(place):
    with place.joined("ann"):
        empty = place.run("last", "ann")
        assert (empty.status, empty.out) == (0, "")
        assert '"ann" has no completed response yet.' in empty.err
        assert place.run("last", "ann", "--json").json["code"] == "empty_history"
        assert place.run("last", "nobody-here").status == 1
        assert place.run("last", "ann", "--offset", "-1").status == 2


def test_journals_are_listed_exported_and_collected(place):
    with place.joined("ann", "--session-id", "ann-1") as ann, place.joined("bob", "--session-id", "bob-1") as bob:
        bob.ask_and_hear("sent", action="send", to="ann", text="hello", messageId="m-1")
        ann.hear("message")
        listed = {one["nativeId"]: one for one in place.run("journal", "list", "--json").json["journals"]}
        assert listed["ann-1"]["isHeld"] is True
        assert listed["ann-1"]["holderPid"] == ann.pid
        assert "left alone" in place.run("journal", "gc").out
    text = place.run("journal", "list")
    assert text.status == 0
    assert "• ann-1: " in text.out
    lines = [json.loads(line) for line in place.run("journal", "export", "ann-1").out.splitlines()]
    assert all(line["version"] == 1 for line in lines)
    assert lines[0]["nativeId"] == "ann-1"
    assert lines[1]["kind"] == "admitted"
    path = listed["ann-1"]["path"]
    assert place.run("journal", "export", path).out == place.run("journal", "export", "ann-1").out
    dry = place.run("journal", "gc", "--keep-days", "0.0000001", "--dry-run", "--json").json
    assert dry["dryRun"] is True
    assert sum(one["removedMessages"] for one in dry["journals"]) == 1
    assert place.run("journal", "gc", "--keep-days", "0.0000001").status == 0
    assert len(place.run("journal", "export", "ann-1").out.splitlines()) == 1
    assert place.run("journal", "export", "no-such-id").status == 2
    assert place.run("journal", "gc", "--keep-days", "nan").status == 2


def test_an_unreadable_journal_is_told(place):
    place.run("join", "ann", "--jsonl", "--session-id", "ann-1")
    (journal,) = place.run("journal", "list", "--json").json["journals"]
    with open(journal["path"], "r+b") as file:
        file.write(b"not a database at all")
    listed = place.run("journal", "list")
    assert listed.status == 1
    assert "cannot be read: " in listed.out
    exported = place.run("journal", "export", journal["path"])
    assert exported.status == 4
    assert "no journal at" in exported.err


def test_there_may_be_none(alone):
    listed = alone.run("journal", "list")
    assert (listed.status, "There is no journal in " in listed.out) == (0, True)
    assert alone.run("journal", "gc").out == "There is no journal to collect.\n"
