"""Errands: the badge beside a journal, what is one and what is an ordinary message, and what a requester learns."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.inbound import Inbound
from libintercom.outcomes import Answered, Outcome
from libintercom.session import errands
from libintercom.session.errands import ErrandFailed, badge_path, find_errand, read_badge, run_errand, write_badge
from libintercom.wire.messages import Message
from libintercom.wire.record import parse_record

if TYPE_CHECKING:
    from pathlib import Path

KEY = "0123456789abcdef0123456789abcdef"


def message(content: Any, *, name: str = errands.ATTACHMENT_NAME, count: int = 1) -> Message:
    written = content if isinstance(content, str) else json.dumps(content)
    attachment = {"type": "context", "name": name, "content": written}
    told = {"text": "x", "attachments": [attachment] * count}
    return parse_record(Message, {"id": "m", "timestamp": 1, "content": told, "expectsReply": True})


def test_a_badge_is_read_by_whoever_knows_the_native_id(tmp_path: Path) -> None:
    path = badge_path(str(tmp_path), "native")
    write_badge(path, "pi-1", KEY)
    badge = read_badge(str(tmp_path), "native")
    assert badge is not None
    assert (badge.peer_id, badge.key, badge.pid) == ("pi-1", KEY, os.getpid())
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == [os.path.basename(path)]
    assert read_badge(str(tmp_path), "another") is None


@pytest.mark.parametrize("written", [b"", b"{}", b"[1]", b'{"v":1,"pid":-1,"peerId":"p","key":"x"}', b"\xff\xfe"])
def test_what_is_no_badge_is_none(tmp_path: Path, written: bytes) -> None:
    with open(badge_path(str(tmp_path), "native"), "wb") as badge:
        badge.write(written)
    assert read_badge(str(tmp_path), "native") is None


def test_keys_are_never_the_same() -> None:
    assert len({errands.make_key() for _ in range(100)}) == 100


def test_an_errand_has_the_key() -> None:
    errand = find_errand(message({"v": 1, "key": KEY, "action": "reply", "text": "yes", "replyTo": "q"}), KEY)
    assert errand is not None
    assert (errand.action, errand.text, errand.reply_to, errand.to) == ("reply", "yes", "q", None)


@pytest.mark.parametrize(
    "other",
    [
        message({"v": 1, "key": "f" * 32, "action": "pending"}),
        message({"v": 1, "key": KEY, "action": "erase"}),
        message({"v": 1, "action": "pending"}),
        message("no json"),
        message([1]),
        message({"v": 1, "key": KEY, "action": "pending"}, name="notes"),
        message({"v": 1, "key": KEY, "action": "pending"}, count=2),
        parse_record(Message, {"id": "m", "timestamp": 1, "content": {"text": KEY}}),
    ],
)
def test_everything_else_is_a_message_like_any_other(other: Message) -> None:
    assert find_errand(other, KEY) is None


def test_a_session_without_a_badge_runs_no_errands() -> None:
    assert find_errand(message({"v": 1, "key": "", "action": "pending"}), "") is None


class Client:
    """A client whose one ask ends as given."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def ask(self, to: str, _text: str, **options: Any) -> Answered:
        self.asked = (to, options)
        outcome = Outcome(outcome="delivered", message_id="m", accepted=True, delivered=True, delivery_unknown=False)
        if self.text is None:
            return Answered(outcome=outcome, ended_by="timeout")
        reply: dict[str, Any] = {
            "row": {"id": "pi-1", "cwd": "/", "model": "m"},
            "message": {"id": "r", "timestamp": 1, "content": {"text": self.text}},
            "raw": {},
        }
        return Answered(outcome=outcome, reply=parse_record(Inbound, reply), ended_by="")


@pytest.fixture
def badge(tmp_path: Path) -> Any:
    write_badge(badge_path(str(tmp_path), "native"), "pi-1", KEY)
    return read_badge(str(tmp_path), "native")


def test_what_is_run_is_what_is_found(badge: Any) -> None:
    client: Any = Client('{"v":1,"pending":[]}')
    assert run_errand(client, badge, "reply", text="yes", reply_to="q", to="") == {"v": 1, "pending": []}
    to, options = client.asked
    told = {"text": "x", "attachments": options["attachments"]}
    errand = find_errand(parse_record(Message, {"id": "m", "timestamp": 1, "content": told}), KEY)
    assert errand is not None
    assert (to, errand.action, errand.text, errand.reply_to, errand.to) == ("pi-1", "reply", "yes", "q", None)


@pytest.mark.parametrize(
    ("text", "word"),
    [(None, "no answer"), ("no json", "not understood"), ("[]", "not understood"), ('{"error":"left"}', "left")],
)
def test_a_holder_that_cannot_says_so(badge: Any, text: str | None, word: str) -> None:
    client: Any = Client(text)
    with pytest.raises(ErrandFailed, match=rf"process {os.getpid()} holds this session's journal: .*{word}"):
        run_errand(client, badge, "pending")
