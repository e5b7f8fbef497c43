"""From a call to its result, on a session that only remembers: what is asked of it, and what is made of its answers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from intercom_adapters.mcp.actions import Actions
from intercom_adapters.mcp.shelf import Shelf
from libintercom.errors import Disconnected, ReadFailed
from libintercom.outcomes import Answered, Listing, Outcome, not_sent, unknown
from libintercom.profile import Profile
from libintercom.wire.messages import Row
from libintercom.wire.reads import Page
from libintercom.wire.record import parse_record
from tests.unit.intercom_adapters.mcp.test_showing import waiting

if TYPE_CHECKING:
    from intercom_adapters.mcp.results import Result

DELIVERED = Outcome(outcome="delivered", message_id="m1", accepted=True, delivered=True, delivery_unknown=False)
ROW = parse_record(Row, {"id": "pi-peer0001", "cwd": "/w", "model": "m", "name": "ann"})
ASK = {
    "kind": "ask",
    "messageId": "q1",
    "sender": "ann",
    "senderId": "pi-peer0001",
    "text": "why?",
    "receivedAtMs": 1,
    "isShown": True,
    "isTarget": False,
}


class Session(SimpleNamespace):
    """Answers as it is told to, and remembers what was said."""

    def __init__(self, **answers: Any) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.ids: list[str] = []
        self.views: list[dict[str, Any]] = []
        self.answers = {"list_sessions": Listing(rows=(ROW,), omitted=0), **answers}
        self.profile = Profile(cwd="/w", model="m", name="me")
        self.session_id, self.broker, self.journal_note = "pi-me", None, ""
        self.host: Shelf | None = None

    def waiting(self) -> tuple[str, ...]:
        return tuple(self.ids)

    def pending(self) -> list[dict[str, Any]]:
        return self.views

    def turn_started(self) -> None:
        assert self.host is not None
        self.said.append(("turn_started",))
        self.host.place([waiting(message_id, f"<{message_id}>") for message_id in self.ids])

    def __getattr__(self, name: str) -> Any:
        def say(*words: Any, **named: Any) -> Any:
            self.said.append((name, *words, *([named] if named else [])))
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def say_later(*words: Any, **named: Any) -> Any:
            return say(*words, **named)

        return say if name in ("placed", "returned", "turn_ended") else say_later


def call(session: Session, *calls: dict[str, Any], written: bool = True) -> list[Result]:
    """The results of these calls; each is written before the next one."""

    async def run() -> list[Result]:
        session.host = shelf = Shelf()
        actions = Actions(session, shelf, 5.0)  # type: ignore[arg-type]
        results = []
        for arguments in calls:
            result = await actions.run(arguments, lambda _outcome: None)
            if result.shown and written:
                actions.written(result.shown)
                session.ids = [one for one in session.ids if one not in result.shown]
            results.append(result)
        return results

    return asyncio.run(run())


def test_what_waits_is_counted_behind_every_result() -> None:
    session = Session(send=DELIVERED)
    session.ids = ["m1", "m2"]
    for arguments in ({"action": "list"}, {"action": "send", "to": "ann", "message": "x"}, {"action": "fly"}):
        (result,) = call(session, arguments)
        assert result.text.endswith("\n\n2 messages wait (intercom pending)")


def test_what_was_shown_is_placed_once_it_was_written() -> None:
    session = Session()
    session.ids = ["m1", "m2"]
    (result,) = call(session, {"action": "pending"})
    assert (result.text, result.shown) == ("<m1>\n\n<m2>", ("m1", "m2"))
    assert [name for name, *_rest in session.said] == ["settle", "turn_started", "placed", "turn_ended"]
    (entries,) = [rest[0] for name, *rest in session.said if name == "placed"]
    assert set(entries) == {"m1", "m2"}
    assert len(set(entries.values())) == 2


def test_what_an_abandoned_call_showed_is_shown_again(monkeypatch: Any) -> None:
    monkeypatch.setattr("intercom_adapters.mcp.actions._COLLECT_S", 0.0)
    session = Session()
    session.ids = ["m1"]
    first, second = call(session, {"action": "pending"}, {"action": "pending"}, written=False)
    assert (first.text, second.text) == ("<m1>", "<m1>")
    assert ("returned", ("m1",), "its showing was abandoned") in session.said
    assert not any(name == "placed" for name, *_rest in session.said)


def test_pending_lists_what_was_shown_and_is_not_answered() -> None:
    session = Session()
    session.views = [ASK, {**ASK, "messageId": "q2", "isShown": False}, {**ASK, "kind": "uncertain", "messageId": "u1"}]
    (result,) = call(session, {"action": "pending"})
    asked, uncertain = result.text.split("\n\n")
    assert asked.startswith("**Questions that wait for your reply (1):**\n• q1 from ann (pi-peer0001), ")
    title = 'Perhaps shown before the server was ended; to see one again: intercom({ action: "pending", entryId: "…" })'
    assert uncertain.startswith(f"**{title} (1):**\n• u1 from ann ")


def test_a_send_that_answers_a_pending_question_is_a_reply() -> None:
    session = Session(reply=DELIVERED, send=DELIVERED)
    session.views = [ASK]
    (replied,) = call(session, {"action": "send", "to": "ann", "message": "x", "replyTo": "q1"})
    assert (replied.text, session.said) == ("Reply sent to ann", [("reply", "q1", "x", "ann")])
    session.said.clear()
    (sent,) = call(session, {"action": "send", "to": "ann", "message": "x", "replyTo": "other"})
    assert sent.text.startswith("Message sent to ann (")
    assert session.said[0] == ("send", "ann", "x", {"reply_to": "other"})


def test_a_reply_names_whom_it_went_to() -> None:
    session = Session(reply=DELIVERED)
    session.views = [ASK]
    assert call(session, {"action": "reply", "message": "x"})[0].text == "Reply sent to ann"
    session.views = [ASK, {**ASK, "messageId": "q2", "sender": "bob"}]
    assert call(session, {"action": "reply", "message": "x"})[0].text == "Reply sent to the asker"
    assert call(session, {"action": "reply", "message": "x", "replyTo": "q2"})[0].text == "Reply sent to bob"


def test_failures_are_errors_with_their_facts() -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"send": unknown("m1", "lost")}, {"deliveryUnknown": True, "messageId": "m1"}),
        ({"send": not_sent("m1", "not_connected", "lost")}, {"deliveryUnknown": False, "accepted": False}),
        ({"send": Disconnected("send", "lost")}, {"deliveryUnknown": False, "accepted": False, "delivered": False}),
    ]
    for answers, facts in cases:
        (result,) = call(Session(**answers), {"action": "send", "to": "ann", "message": "x"})
        assert result.is_error
        assert result.facts is not None
        assert facts.items() <= result.facts.items()
        assert result.facts["text"] == result.text


def test_a_failed_wake_is_an_error_that_keeps_what_is_known() -> None:
    answered = Answered(outcome=DELIVERED, ended_by="wake_failed", reason="no such run")
    (result,) = call(Session(ask=answered), {"action": "ask", "to": "ann", "message": "why?"})
    assert result.is_error
    assert "could not be woken: no such run" in result.text
    assert result.facts is not None
    assert (result.facts["accepted"], result.facts["endedBy"], result.facts["replied"]) == (True, "wake_failed", False)


def test_a_list_that_cannot_be_had_says_why() -> None:
    (result,) = call(Session(list_sessions=Disconnected("list", "lost")), {"action": "list"})
    assert (result.is_error, "lost" in result.text) == (True, True)
    assert result.facts == {"code": "failed", "text": result.text}


def test_last_gives_the_page_and_what_to_ask_next() -> None:
    page = Page(entry_id="e1", offset=0, text="xx", next_offset=2, total=4)
    (result,) = call(Session(last=page), {"action": "last", "to": "ann"})
    told = {"entryId": "e1", "offset": 0, "nextOffset": 2, "total": 4, "text": result.text}
    assert result.facts == told
    (failed,) = call(Session(last=ReadFailed("timeout", "no answer")), {"action": "last", "to": "ann"})
    assert (failed.is_error, failed.facts) == (True, {"code": "timeout", "text": failed.text})


def test_a_journal_that_is_missing_is_told_by_status() -> None:
    session = Session()
    session.journal_note = "in use by process 7"
    (result,) = call(session, {"action": "status"})
    assert "\n\nNo journal: in use by process 7" in result.text


def test_a_message_needs_a_text_or_an_attachment() -> None:
    session = Session(send=DELIVERED)
    (result,) = call(session, {"action": "send", "to": "ann"})
    assert (result.text, session.said) == ("send needs message, or attachments.", [])
