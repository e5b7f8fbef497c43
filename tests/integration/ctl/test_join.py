"""`intercomctl join` on a real broker, driven by a script and by a person."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading

import pytest

from libintercom.identity import peer_id
from tests.support.ctl import PROGRAM, unsafe_characters
from tests.support.waiting import wait_until

SENT = {"version", "event", "requestId", "outcome", "messageId", "accepted", "delivered", "deliveryUnknown"}


@pytest.fixture
def pair(ctl):
    with ctl.joined("ann") as ann, ctl.joined("bob") as bob:
        yield ann, bob


def test_the_first_event_says_who_it_is_and_who_answers(ctl, broker):
    with ctl.joined("ann", "--session-id", "ann-native") as ann:
        registered = ann.events[0]
        assert registered["sessionId"] == peer_id("ann-native")
        assert registered["name"] == "ann"
        assert registered["broker"]["pid"] == broker.pid


def test_a_send_is_answered_once_and_arrives_as_on_the_wire(pair):
    ann, bob = pair
    sent = ann.ask_and_hear("sent", action="send", to="bob", text="hello", messageId="m1")
    assert set(sent) == SENT
    assert (sent["outcome"], sent["messageId"]) == ("delivered", "m1")
    message = bob.hear("message")
    assert set(message) == {"version", "event", "from", "message"}
    assert (message["from"]["id"], message["from"]["name"]) == (ann.session_id, "ann")
    assert message["message"]["content"] == {"text": "hello"}


def test_a_send_has_every_option(pair):
    ann, bob = pair
    attachment = {"type": "snippet", "name": "n", "content": "c", "language": "py"}
    options = {
        "delivery": "queue",
        "queueMode": "replace",
        "threadId": "t",
        "attachments": [attachment],
        "replyTo": "q",
    }
    assert ann.ask_and_hear("sent", action="send", to="bob", text="x", **options)["outcome"] == "queued"
    message = bob.hear("message")["message"]
    assert message["content"]["attachments"] == [attachment]
    assert {name: message[name] for name in ("delivery", "queueMode", "threadId", "replyTo")} == {
        "delivery": "queue",
        "queueMode": "replace",
        "threadId": "t",
        "replyTo": "q",
    }


def test_an_ask_is_answered_twice(pair):
    ann, bob = pair
    ann.say({"action": "ask", "requestId": "a", "to": "bob", "text": "why?", "timeoutMs": 5000})
    question = bob.hear("message")["message"]
    assert (question["expectsReply"], question["timeoutMs"]) == (True, 5000)
    assert bob.ask_and_hear("sent", action="reply", text="because")["outcome"] == "delivered"
    answers = [ann.hear("sent", "a"), ann.hear("message", "a")]
    assert answers[0]["messageId"] == answers[1]["message"]["replyTo"] == question["id"]
    assert answers[1]["message"]["content"]["text"] == "because"
    assert answers[1]["from"]["name"] == "bob"


def test_an_ask_that_ends_without_a_reply_is_answered_twice_as_well(pair):
    ann, bob = pair
    for action, ended_by in (
        ({"to": "bob", "timeoutMs": 200}, "timeout"),
        ({"to": "nobody"}, None),
        ({"to": "bob", "delivery": "passive"}, None),
    ):
        mark = f"a-{ended_by}-{action.get('delivery')}"
        ann.say({"action": "ask", "requestId": mark, "text": "why?", **action})
        ann.hear("sent", mark)
        assert ann.hear("error", mark).get("endedBy") == ended_by
    # The broker's clock and the asker's own run the same race.
    assert bob.hear("ask_retired")["reason"] in ("timeout", "cancelled")


def test_a_second_ask_is_not_sent(pair):
    ann, bob = pair
    ann.say({"action": "ask", "requestId": 1, "to": "bob", "text": "why?"})
    ann.say({"action": "ask", "requestId": 2, "to": "bob", "text": "and?"})
    assert ann.hear("sent", 2)["code"] == "already_waiting"
    assert "already waiting" in ann.hear("error", 2)["error"]
    bob.hear("message")
    bob.ask_and_hear("sent", action="reply", text="because")
    assert ann.hear("message", 1)["message"]["content"]["text"] == "because"


def test_what_is_told_after_an_ask_does_not_overtake_it(pair):
    ann, bob = pair
    ann.say(
        {"action": "ask", "requestId": 1, "to": "bob", "text": "1", "timeoutMs": 300},
        {"action": "send", "requestId": 2, "to": "bob", "text": "2"},
        {"action": "send", "requestId": 3, "to": "bob", "text": "3"},
    )
    assert [bob.hear("message")["message"]["content"]["text"] for _ in range(3)] == ["1", "2", "3"]
    ann.hear("error", 1)


def test_pending_lists_the_questions_and_others_see_how_many(pair):
    ann, bob = pair
    ann.say({"action": "ask", "requestId": "a", "to": "bob", "text": "why?"})
    bob.hear("message")
    (ask,) = bob.ask_and_hear("pending", action="pending")["asks"]
    assert set(ask) == {"messageId", "from", "text", "receivedAtMs"}
    assert (ask["text"], ask["from"]["id"]) == ("why?", ann.session_id)
    rows = {row["name"]: row for row in ann.ask_and_hear("sessions", action="list")["sessions"]}
    assert rows["bob"]["pendingAsks"] == 1
    bob.ask_and_hear("sent", action="reply", replyTo=ask["messageId"], text="because")
    assert bob.ask_and_hear("pending", action="pending")["asks"] == []
    rows = {row["name"]: row for row in ann.ask_and_hear("sessions", action="list")["sessions"]}
    assert rows["bob"]["pendingAsks"] == 0


def test_a_reply_without_a_question_is_not_sent(pair):
    ann, _bob = pair
    assert ann.ask_and_hear("sent", action="reply", text="x")["code"] == "no_pending_ask"
    assert ann.ask_and_hear("sent", action="reply", text="x", replyTo="nothing")["code"] == "no_pending_ask"


def test_a_presence_is_seen_by_others(pair):
    ann, bob = pair
    ann.ask_and_hear("ok", action="presence", name="anna", status="tool:bash", acceptsAsks=False)
    rows = {row["id"]: row for row in bob.ask_and_hear("sessions", action="list")["sessions"]}
    row = rows[ann.session_id]
    assert (row["name"], row["status"], row["acceptsAsks"], row["state"]) == ("anna", "tool:bash", False, "busy")


def test_a_presence_that_breaks_a_rule_is_an_error_and_not_the_end(pair):
    ann, _bob = pair
    assert "status" in ann.ask_and_hear("error", action="presence", status="")["error"]
    assert ann.ask_and_hear("sessions", action="list")


def test_a_bad_line_is_an_error_and_not_the_end(pair):
    ann, _bob = pair
    ann.say_raw(b'nonsense\n\xff\xfe\n{"action":"fly","requestId":"f"}\n' + b"a" * 7_000_000 + b"\n")
    assert "not JSON" in ann.hear("error")["error"]
    assert "not JSON" in ann.hear("error")["error"]
    assert "action is not one of" in ann.hear("error", "f")["error"]
    assert "longer than" in ann.hear("error")["error"]
    assert ann.ask_and_hear("sessions", action="list")


def test_a_peer_that_leaves_is_told(pair):
    ann, bob = pair
    ann.ask_and_hear("sent", action="send", to="bob", text="x")
    bob.hear("message")
    ann.end_input()
    assert bob.hear("peer_left")["sessionId"] == ann.session_id


def test_a_question_that_nobody_waits_for_is_told(pair):
    ann, bob = pair
    ann.say({"action": "ask", "requestId": "a", "to": "bob", "text": "why?"})
    question = bob.hear("message")["message"]
    ann.end_input()
    retired = bob.hear("ask_retired")
    assert set(retired) == {"version", "event", "messageId", "askerId", "reason"}
    assert (retired["messageId"], retired["askerId"]) == (question["id"], ann.session_id)


def test_the_end_of_the_input_answers_everything_and_leaves(ctl):
    actions = [
        {"action": "send", "requestId": 1, "to": "bob", "text": "x"},
        {"action": "ask", "requestId": 2, "to": "bob", "text": "why?"},
        {"action": "list", "requestId": 3},
        {"action": "presence", "requestId": 4, "status": "leaving"},
        {"action": "pending", "requestId": 5},
    ]
    with ctl.joined("bob") as bob:
        ended = ctl.run("join", "ann", "--jsonl", stdin="\n".join(map(json.dumps, actions)).encode())
        assert bob.hear("peer_left")
        rows = bob.ask_and_hear("sessions", action="list")["sessions"]
    assert (ended.status, ended.err) == (0, "")
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert [event["event"] for event in events if event.get("requestId") == 2] == ["sent", "error"]
    assert sorted(event["requestId"] for event in events if event.get("requestId") not in (None, 2)) == [1, 3, 4, 5]
    assert [row["name"] for row in rows] == ["bob"]


def test_a_message_that_came_before_the_end_is_still_shown(pair):
    ann, bob = pair
    os.kill(bob.pid, signal.SIGSTOP)
    ann.ask_and_hear("sent", action="send", to="bob", text="last words")
    # Its input ends while it cannot look; both are there when it goes on.
    resumed = threading.Timer(0.0, lambda: os.kill(bob.pid, signal.SIGCONT))
    resumed.start()
    assert bob.end_input() == 0
    assert any(event["event"] == "message" for event in bob.events)


def test_an_interrupted_session_ends_with_130(pair):
    ann, bob = pair
    ann.ask_and_hear("sent", action="send", to="bob", text="x")
    ann.interrupt()
    assert ann.wait() == 130
    assert bob.hear("peer_left")


def test_a_script_that_reads_nothing_more_does_not_keep_the_session(ctl):
    with ctl.joined("bob") as bob:
        program = subprocess.Popen(
            [PROGRAM, "join", "mute", "--jsonl"],
            env=ctl.environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            program.stdout.readline()
            program.stdout.close()
            bob.ask_and_hear("sent", action="send", to="mute", text="x")
            assert program.wait(10) == 0
        finally:
            program.stdin.close()
            program.wait(10)


# ------------------------------------------------------------------ a person


class Person:
    """Somebody at a terminal, as two pipes: what is typed, and everything shown."""

    def __init__(self, ctl, name):
        command = [PROGRAM, "join", name]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.program = subprocess.Popen(command, env=ctl.environment, cwd="/", **pipes)
        self.shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while received := os.read(self.program.stdout.fileno(), 65536):
            self.shown += received

    def type(self, line):
        self.program.stdin.write(f"{line}\n".encode())
        self.program.stdin.flush()

    def sees(self, words):
        return wait_until(lambda: words.encode() in self.shown and self.shown.decode(), f"{words!r} to be shown")

    def leave(self):
        self.program.stdin.close()
        status = self.program.wait(10)
        self._reader.join()
        self.program.stdout.close()
        return status


@pytest.fixture
def person(ctl):
    somebody = Person(ctl, "ann")
    somebody.sees("Joined as ann (")
    yield somebody
    if somebody.program.poll() is None:
        somebody.leave()


def test_a_person_reads_and_replies_by_typing(ctl, person):
    with ctl.joined("bob") as bob:
        bob.say({"action": "ask", "requestId": "a", "to": "ann", "text": "Which port?"})
        shown = person.sees("Which port?")
        assert "s ago] **📨 From bob** (Native session cwd: /)" in shown
        assert "The sender waits for a reply: type it, or /reply " in shown
        person.type("Port 8443.")
        assert bob.hear("message", "a")["message"]["content"]["text"] == "Port 8443."
        person.sees("Reply sent.")


def test_a_person_sends_and_asks_by_typing(ctl, person):
    with ctl.joined("bob the builder") as bob:
        person.type('/send "bob the builder" hello there')
        assert bob.hear("message")["message"]["content"]["text"] == "hello there"
        person.sees("Message sent to bob the builder (")
        person.type('/ask "bob the builder" how many?')
        bob.hear("message")
        bob.ask_and_hear("sent", action="reply", text="42")
        person.sees("**Reply from bob the builder:**\n> 42")
        person.type("/send bib hello")
        person.sees("See who is there: /list")


def test_a_person_looks_around_by_typing(ctl, person):
    with ctl.joined("bob") as bob:
        person.type("/list")
        assert "• ann (" in person.sees("• bob (")
        person.type("/status")
        person.sees("**Session ID:** ")
        person.type("/pending")
        person.sees("No ask is pending here.")
        person.type("/nonsense")
        person.sees("/nonsense: not understood.")
        for text in ("one?", "two?"):
            bob.say({"action": "send", "to": "ann", "text": text})
        person.sees("two?")
    person.sees(f"bob ({bob.session_id}) left.")


def test_with_several_questions_a_typed_line_must_name_one(ctl, person):
    with ctl.joined("bob") as bob, ctl.joined("carol") as carol:
        bob.say({"action": "ask", "requestId": "b", "to": "ann", "text": "one?", "messageId": "q1"})
        carol.say({"action": "ask", "requestId": "c", "to": "ann", "text": "two?", "messageId": "q2"})
        person.sees("one?")
        person.sees("two?")
        person.type("yes")
        person.sees("2 asks are pending; name one by its message ID")
        person.type("/reply q2 yes")
        assert carol.hear("message", "c")["message"]["content"]["text"] == "yes"


@pytest.mark.parametrize("how", ["/quit", ""])
def test_a_person_leaves(person, how):
    if how:
        person.type(how)
        assert person.program.wait(10) == 0
    assert person.leave() == 0


def test_a_session_at_a_terminal_is_shown_there(ctl):
    ended = ctl.run_at_terminal("join", "ann", typed=b"/help\n/quit\n")
    assert ended.status == 0
    assert "Joined as ann" in ended.out
    assert "/send TARGET TEXT" in ended.out
    assert not unsafe_characters(ended.out, allowed="\r\n")


def test_without_a_standard_input_it_leaves_at_once(ctl):
    ended = ctl.in_shell("join ann --jsonl <&-")
    assert ended.status == 0
    assert ended.json["event"] == "registered"


def test_an_empty_message_id_is_refused(pair):
    ann, _bob = pair
    told = ann.ask_and_hear("sent", action="send", to="bob", text="x", messageId="")
    assert (told["outcome"], told["code"], told["messageId"]) == ("not_sent", "invalid_message", "")
