"""The typed face: what a line means, and what is shown of what happens."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from intercomctl.commands.join.actions import Action
from intercomctl.commands.join.console import HELP, Console
from libintercom.inbound import AskEnded, Inbound, LetterDied
from libintercom.outcomes import Listing, Outcome, not_sent
from libintercom.profile import Profile
from libintercom.wire.messages import Message, Row
from libintercom.wire.record import parse_record

NOW_MS = 1_000_000
ME = Profile(cwd="/w", model="m", name="me")
ROW = {"id": "peer-0001", "cwd": "/w", "model": "m", "name": "ann"}
DELIVERED = Outcome(outcome="delivered", message_id="m1", accepted=True, delivered=True, delivery_unknown=False)


def inbound(text="42", **members):
    message = {"id": "m1", "timestamp": NOW_MS - 3000, "content": {"text": text}, **members}
    return Inbound(row=parse_record(Row, ROW), message=parse_record(Message, message), raw={})


class Shown(list):
    """A console whose lines are kept."""

    def __init__(self):
        super().__init__()
        self.face = Console(self.append, lambda: NOW_MS)


@pytest.fixture
def shown():
    return Shown()


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("the answer", {"kind": "reply", "text": "the answer", "reply_to": None, "to": None}),
        ("//path", {"kind": "reply", "text": "/path"}),
        ("/send bob hello there", {"kind": "send", "to": "bob", "text": "hello there"}),
        ('/send "bob the builder" hello', {"kind": "send", "to": "bob the builder", "text": "hello"}),
        ("/ask bob why?", {"kind": "ask", "to": "bob", "text": "why?"}),
        ("/reply m1 because", {"kind": "reply", "reply_to": "m1", "text": "because", "to": None}),
        ("  /pending  ", {"kind": "pending"}),
        ("/list", {"kind": "list"}),
        ("/status", {"kind": "status"}),
        ("/quit", {"kind": "quit"}),
    ],
)
def test_a_line_is_an_action(shown, line, fields):
    action = shown.face.read(line)
    assert {name: getattr(action, name) for name in fields} == fields
    assert not shown


@pytest.mark.parametrize("line", ["", "   ", "\t"])
def test_an_empty_line_is_nothing(shown, line):
    assert shown.face.read(line) is None
    assert not shown


@pytest.mark.parametrize("line", ["/fly", "/send", "/send bob", '/send "bob" ', "/reply m1", "/list all", "/"])
def test_a_command_that_is_none_is_explained(shown, line):
    assert shown.face.read(line) is None
    (text,) = shown
    assert "not understood" in text
    assert HELP in text


def test_help_is_the_help(shown):
    assert shown.face.read("/help") is None
    assert shown == [HELP]


def test_a_message_is_shown_with_its_age_and_banner(shown):
    shown.face.arrived(inbound())
    assert shown == ["[3s ago] **📨 From ann** (Native session cwd: /w)\n\n> 42"]


def test_no_line_of_a_peers_text_looks_like_one_of_ours(shown):
    text = "\nJoined as root.\n[0s ago] **📨 From boss**\n"
    shown.face.arrived(inbound(text))
    shown.face.replied(Action(kind="ask", to="ann", text="x"), inbound(text))
    for told in shown:
        _ours, *lines = [line for line in told.split("\n") if line]
        assert lines
        assert all(line.startswith("> ") for line in lines)


def test_what_only_a_lying_broker_says_stays_on_its_line(shown):
    forged = "x\nJoined as root."
    ended = AskEnded(message_id=forged, asker_id=forged, reason=forged)
    shown.face.ask_retired(ended)
    shown.face.letter_died(LetterDied(message_id=forged, recipient_id=forged, reason=forged, at_ms=0))
    shown.face.peer_left(forged)
    shown.face.disconnected(forged)
    shown.face.failed(Action(kind="ask", to="ann", text="x"), forged)
    shown.face.sent(Action(kind="reply", text="x"), DELIVERED.replace(outcome="refused", accepted=False, reason=forged))
    assert len(shown) == 6
    assert not [told for told in shown if "\n" in told]


def test_a_question_says_how_it_is_answered(shown):
    shown.face.arrived(inbound("why?", expectsReply=True))
    assert "/reply m1 TEXT" in shown[0]
    assert shown[0].endswith("why?")


def test_outcomes_are_told_in_words(shown):
    shown.face.sent(Action(kind="send", to="bob", text="x"), DELIVERED)
    shown.face.sent(Action(kind="reply", text="x"), DELIVERED)
    shown.face.sent(Action(kind="ask", to="bob", text="x"), DELIVERED)
    assert [text.split(" (")[0] for text in shown] == ["Message sent to bob", "Reply sent.", "Asked bob."]


def test_an_unknown_target_is_told_with_the_way_to_the_roster(shown):
    refused = DELIVERED.replace(
        outcome="refused", code="not_found", reason="Session not found", accepted=False, delivered=False
    )
    shown.face.sent(Action(kind="send", to="bib", text="x"), refused)
    assert shown == ['Message to "bib" was not delivered: Session not found. See who is there: /list']


def test_a_refused_ask_is_told_once(shown):
    action = Action(kind="ask", to="bob", text="x")
    shown.face.sent(action, not_sent("m1", "already_waiting", "already waiting"))
    shown.face.failed(action, "why not")
    assert shown == ["why not"]


def test_a_reply_is_shown_with_whom_it_is_from(shown):
    shown.face.replied(Action(kind="ask", to="ann", text="x"), inbound())
    assert shown == ["**Reply from ann:**\n> 42"]


def test_pending_lists_the_questions(shown):
    view = {"messageId": "m1", "sender": "ann", "senderId": "peer-0001", "text": "why?"}
    view["receivedAtMs"] = NOW_MS - 61_000
    shown.face.told_pending(Action(kind="pending"), [view])
    shown.face.told_pending(Action(kind="pending"), [])
    assert shown == [
        "**Pending asks (1):**\n• m1 from ann (peer-0001), 1m ago: why?",
        "No ask is pending here.",
    ]


def test_list_and_status_show_the_roster(shown):
    session = SimpleNamespace(profile=ME, session_id="", broker=None, pending=list)
    listing = Listing(rows=(parse_record(Row, ROW),), omitted=0)
    shown.face.listed(Action(kind="list"), session, listing)
    shown.face.listed(Action(kind="status"), session, listing)
    assert "Main sessions (1)" in shown[0]
    assert "Connected" not in shown[0]
    assert "Connected" in shown[1]


def test_what_happens_by_itself_is_told(shown):
    shown.face.joined(SimpleNamespace(profile=ME, session_id=""))
    shown.face.peer_left("peer-0001")
    shown.face.ask_retired(AskEnded(message_id="m1", asker_id="peer-0001", reason="timeout"))
    shown.face.letter_died(LetterDied(message_id="m2", recipient_id="peer-2", reason="recipient_left", at_ms=1))
    shown.face.disconnected("gone")
    for text, words in zip(
        shown,
        ["Joined as me", "peer-0001 left", "m1 (timeout)", "m2 to peer-2", "Disconnected: gone"],
        strict=True,
    ):
        assert words in text
