"""What may be written when, and what of a device's output counts: by bytes, without a connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from libintercom.devices import conversation
from libintercom.devices.conversation import (
    ANSWERED,
    CONNECTING,
    HANDED_OVER,
    MARKED,
    MAX_NOISE_BYTES,
    MAX_OUTPUT_BYTES,
    RECEIVED,
    Conversation,
    Request,
)
from libintercom.devices.words import MAX_LINE_BYTES

OURS, NODE = b"\nintercom-remote 1\n", b"\nintercom-remote node\n"
RECEIPT = {"receipt": {"id": "m", "accepted": True, "delivered": True}}


def line(**members: Any) -> bytes:
    return json.dumps({"version": 1, **members}).encode() + b"\n"


def asked(finals: tuple[str, ...] = ("reply",)) -> Conversation:
    return Conversation(Request({"command": "ask"}, finals, message_id="m", reply_timeout_s=60))


def handed_over(marker: bytes = OURS) -> Conversation:
    talk = asked()
    talk.receive(marker)
    talk.wrote(len(talk.output()))
    return talk


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"Welcome\n",
        b"motd without an end ",
        b"intercom-remote\n",
        b"intercom-remote 2\n",
        b"xintercom-remote 1\n",
        b"intercom-remote 1x\n",
        b"intercom-remote 1",
        line(reply={}),
        b"\xff\x00\x1b[2J\n",
    ],
)
def test_nothing_is_written_before_the_marker(noise: bytes) -> None:
    talk = asked()
    talk.receive(noise)
    assert (len(talk.output()), talk.stage, talk.answer) == (0, CONNECTING, None)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \r\n"])
def test_the_marker_opens_the_way_byte_by_byte(end: bytes) -> None:
    talk = asked()
    for byte in b"Welcome\r\n\nintercom-remote 1" + end:
        talk.receive(bytes([byte]))
    assert talk.stage == MARKED
    assert json.loads(bytes(talk.output())) == {"version": 1, "command": "ask"}
    assert bytes(talk.output()).endswith(b"}\n")


def test_a_part_of_a_request_is_not_handed_over() -> None:
    talk = asked()
    talk.receive(OURS)
    talk.wrote(len(talk.output()) - 1)
    assert (talk.stage, bytes(talk.output())) == (MARKED, b"\n")
    talk.wrote(1)
    assert talk.stage == HANDED_OVER


def test_an_answer_before_the_request_counts_only_as_a_failure() -> None:
    talk = asked()
    talk.receive(OURS + line(**RECEIPT, reply={}))
    assert (talk.receipt, talk.answer) == (None, None)
    talk.receive(line(error="too old"))
    assert talk.stage == ANSWERED


def test_a_receipt_and_then_a_reply() -> None:
    talk = handed_over()
    talk.receive(line(**RECEIPT) + b"\n\n\n")
    assert talk.stage == RECEIVED
    assert talk.patience_s > 60
    talk.receive(line(**RECEIPT, reply={"id": "r"})[:-1])
    assert talk.stage == RECEIVED
    talk.finish()
    assert talk.stage == ANSWERED


@pytest.mark.parametrize(
    "receipt", [{"accepted": False}, {"accepted": "yes"}, {"accepted": True, "id": "other"}, [], None, "x"]
)
def test_what_is_no_receipt_of_this_message(receipt: object) -> None:
    talk = handed_over()
    talk.receive(line(receipt=receipt))
    assert talk.stage == HANDED_OVER


def test_the_last_complete_answer_counts() -> None:
    talk = handed_over()
    talk.receive(line(error="first") + b"noise\n" + line(error="last") + b"{broken\n" + line(now=1))
    assert talk.answer == {"version": 1, "error": "last"}


@pytest.mark.parametrize("version", [2, "1", True, None, 1.5])
def test_another_version_is_no_answer_and_is_told(version: object) -> None:
    talk = handed_over()
    talk.receive(json.dumps({"version": version, "reply": {}}).encode() + b"\n")
    assert talk.answer is None
    assert "version" in talk.noise


def test_input_ends_behind_a_request_to_the_node_command_only() -> None:
    assert handed_over(NODE).closes_input
    assert not handed_over(OURS).closes_input


def test_a_second_marker_is_noise_without_words() -> None:
    talk = handed_over()
    talk.receive(NODE)
    assert (talk.marker, talk.noise) == ("1", "")


@pytest.mark.parametrize(
    ("talk", "flood"),
    [
        (asked(), b"x\n" * (MAX_NOISE_BYTES // 2 + 1)),
        (asked(), b"x" * (MAX_LINE_BYTES + 1)),
        (handed_over(), b"\n" * (MAX_OUTPUT_BYTES + 1)),
        (handed_over(), b"x" * (MAX_LINE_BYTES + 1)),
        (handed_over(), b"{" * (MAX_LINE_BYTES + 1) + b"\n"),
    ],
    ids=["noise", "endless line", "endless lines", "endless line behind the marker", "one line"],
)
def test_endless_output_is_a_fault(talk: Conversation, flood: bytes) -> None:
    for start in range(0, len(flood), 65_536):
        talk.receive(flood[start : start + 65_536])
    assert "printed" in talk.fault


@pytest.mark.parametrize(
    "hostile", [b"[" * 100_000, b'{"a":' * 50_000, b"{" + b"\xff" * 10 + b"}", b'{"version":1e999}']
)
def test_hostile_lines_are_noise(hostile: bytes) -> None:
    talk = handed_over()
    talk.receive(hostile + b"\n" + line(error="well"))
    assert talk.answer == {"version": 1, "error": "well"}


def test_each_stage_has_a_patience_of_its_own() -> None:
    talk = asked()
    assert talk.patience_s == conversation.MARKER_TIMEOUT_S
    talk.receive(OURS)
    assert talk.patience_s == conversation.ANSWER_TIMEOUT_S
