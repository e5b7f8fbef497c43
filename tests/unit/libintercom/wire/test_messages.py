"""Sessions and messages: every member's rule, and the rules across members."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.errors import InvalidFrame
from libintercom.wire.messages import NATIVE, SIBLING, Attachment, Message, Registration, Row, admit_labels
from libintercom.wire.record import dump_record, parse_record
from libintercom.wire.requests import Presence

SESSION: dict[str, Any] = {"cwd": "/w", "model": "m"}
MESSAGE: dict[str, Any] = {"id": "m1", "timestamp": 1.5, "content": {"text": ""}}


def accepts(kind: type, base: dict[str, Any], **members: Any) -> bool:
    try:
        parse_record(kind, {**base, **members})
    except InvalidFrame:
        return False
    return True


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("cwd", ["", "a\nb"], [None, 5]),
        ("model", [""], [None]),
        ("name", ["", "x"], [None, 5]),
        ("projectId", ["a" * 64], ["zz", "A" * 64, None, ""]),
        ("status", ["idle · x"], [None]),
        ("lastSeen", [0, 1.5, -1], [None, "1", True, 10**400]),
        ("pendingAsks", [0, 2.0], [-1, 1.5, None, "1", True]),
        ("acceptsAsks", [True, False], [None, 0, "true"]),
        ("pid", [1], [None, "1"]),
        ("contextPct", [1, None], ["1", True]),
        ("incarnation", ["i"], ["", None, "a\nb"]),
        ("host", [{}, {"steer": True, "zzz": 1}], [None, [], {"steer": 1}]),
    ],
)
def test_registration_members(member: str, good: list[Any], bad: list[Any]) -> None:
    """Labels come later (``admit_labels``), for what is refused of one dialect is scrubbed for the other."""
    for value in good:
        assert accepts(Registration, SESSION, **{member: value}), (member, value)
    for value in bad:
        assert not accepts(Registration, SESSION, **{member: value}), (member, value)


@pytest.mark.parametrize(
    ("root", "parent", "is_valid"),
    [
        (None, None, True),
        ("r", None, True),
        ("r", "r", True),
        ("r", "p", False),
        (None, "r", False),
        ("", None, False),
        ("", "", False),
        (" r", " r", False),
        ("r\ufeff", None, False),
        ("a\tb", None, False),
        ("R", "r", False),
    ],
)
def test_lineage_is_exact(root: str | None, parent: str | None, is_valid: bool) -> None:
    told = {"rootSessionId": root, "parentSessionId": parent}
    members = {name: value for name, value in told.items() if value is not None}
    assert accepts(Registration, SESSION, **members) is is_valid


@pytest.mark.parametrize("member", ["cwd", "model", "name", "status", "tmuxPane"])
@pytest.mark.parametrize(("value", "scrubbed"), [("", "?"), ("a\nb", "a\ufffdb"), ("\x1b", "\ufffd")])
def test_bad_label_is_refused_or_for_the_sibling_scrubbed(member: str, value: str, scrubbed: str) -> None:
    session = parse_record(Registration, {**SESSION, member: value})
    with pytest.raises(InvalidFrame):
        admit_labels(session, NATIVE)
    assert scrubbed in admit_labels(session, SIBLING).values()


def test_label_over_its_limit_is_refused_of_both() -> None:
    session = parse_record(Registration, {**SESSION, "name": "x" * 1025})
    for dialect in (NATIVE, SIBLING):
        with pytest.raises(InvalidFrame, match="1024"):
            admit_labels(session, dialect)


def test_only_present_labels_are_admitted() -> None:
    assert admit_labels(Presence(status="idle"), NATIVE) == {"status": "idle"}
    assert admit_labels(parse_record(Registration, SESSION), NATIVE) == SESSION


@pytest.mark.parametrize("member", ["id", "cwd", "model", "name", "status"])
@pytest.mark.parametrize("value", ["", "a\nb", "\x9b", 5])
def test_received_row_must_be_printable(member: str, value: object) -> None:
    row = {"id": "pi-1", **SESSION}
    assert accepts(Row, row, name="n", status="idle", zzz=None)
    assert not accepts(Row, row, **{member: value})


@pytest.mark.parametrize("missing", ["id", "cwd", "model"])
def test_row_of_any_broker_needs_three_members_only(missing: str) -> None:
    row = {"id": "pi-1", **SESSION}
    assert accepts(Row, row)
    del row[missing]
    assert not accepts(Row, row)


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("id", ["m", " "], ["", None, 5, "a\nb", "x" * 1025]),
        ("timestamp", [0, -1.5], [None, "1", True, float("inf"), float("nan")]),
        ("content", [{"text": "a\r\n\t"}, {"text": "", "x": 1}], [None, {}, {"text": None}, {"text": "\x1b"}, []]),
        ("replyTo", ["q"], ["", None, 5]),
        ("expectsReply", [True, False], [None, 1, "true"]),
        ("delivery", ["steer", "queue", "passive"], ["bogus", None, "", "Steer"]),
        ("passive", [True, False], [None, 0]),
        ("timeoutMs", [0, 3_600_000], [-1, 3_600_001, None, 1.5]),
        ("keepReplyMs", [0, 86_400_000], [86_400_001, None]),
        ("replyToken", ["a" * 32], ["a" * 31, "A" * 32, None]),
        ("zzz", [None, {"a": []}], []),
    ],
)
def test_message_members(member: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert accepts(Message, MESSAGE, **{member: value}), (member, value)
    for value in bad:
        assert not accepts(Message, MESSAGE, **{member: value}), (member, value)


@pytest.mark.parametrize("missing", ["id", "timestamp", "content"])
def test_message_needs_its_three_members(missing: str) -> None:
    assert not accepts(Message, {name: value for name, value in MESSAGE.items() if name != missing})


def across() -> list[tuple[dict[str, Any], bool]]:
    """Every combination of the members with rules across them, and whether the seeds allow it."""
    cases = []
    for delivery in (None, "steer", "queue", "passive"):
        for passive in (None, False, True):
            for expects in (None, False, True):
                for mode in (None, "stack", "replace"):
                    for thread in (None, "t"):
                        told = {
                            "delivery": delivery,
                            "passive": passive,
                            "expectsReply": expects,
                            "queueMode": mode,
                            "threadId": thread,
                        }
                        is_passive = passive is True or delivery == "passive"
                        is_valid = not (
                            (passive is True and delivery not in (None, "passive"))
                            or (is_passive and expects is True)
                            or (mode is not None and delivery != "queue")
                            or ((thread is None) == (mode == "replace"))
                        )
                        cases.append(({name: value for name, value in told.items() if value is not None}, is_valid))
    return cases


def test_rules_across_members_in_every_combination() -> None:
    cases = across()
    assert len(cases) == 216
    for members, is_valid in cases:
        assert accepts(Message, MESSAGE, **members) is is_valid, members


@pytest.mark.parametrize("thread", ["", " ", "\ufeff", "a\nb"])
def test_thread_is_more_than_space(thread: str) -> None:
    assert not accepts(Message, MESSAGE, delivery="queue", queueMode="replace", threadId=thread)


@pytest.mark.parametrize("kind", ["file", "snippet", "context"])
def test_attachments(kind: str) -> None:
    told = {"type": kind, "name": "n", "content": ""}
    assert accepts(Attachment, told)
    assert accepts(Attachment, told, language="py")
    for wrong in ({"type": "image"}, {"name": ""}, {"content": "\x00"}, {"content": None}, {"language": ""}):
        assert not accepts(Attachment, told, **wrong)
    content = {"text": "", "attachments": [told] * 500}
    message = parse_record(Message, {**MESSAGE, "content": content})
    assert dump_record(message)["content"] == content
    assert not accepts(Message, MESSAGE, content={"text": "", "attachments": None})


@pytest.mark.parametrize(
    ("members", "is_ask", "is_passive", "is_replace"),
    [
        ({}, False, False, False),
        ({"expectsReply": False, "passive": False}, False, False, False),
        ({"expectsReply": True}, True, False, False),
        ({"passive": True}, False, True, False),
        ({"delivery": "passive"}, False, True, False),
        ({"delivery": "queue", "queueMode": "replace", "threadId": "t"}, False, False, True),
    ],
)
def test_claims(members: dict[str, Any], is_ask: bool, is_passive: bool, is_replace: bool) -> None:
    message = parse_record(Message, {**MESSAGE, **members})
    assert (message.is_ask, message.is_passive, message.is_replace) == (is_ask, is_passive, is_replace)
