"""Every vector of ``replies.json``: lines of a remote command, its end, and the outcome, sentence and exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from libintercom.device_texts import failed_text, replied_text
from libintercom.devices.conversation import Conversation, Request
from libintercom.devices.endings import Ending
from libintercom.devices.judging import judge_message
from libintercom.devices.naming import DeviceTarget

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("replies.json").read_text(encoding="utf-8"))
FINALS = {"send": ("receipt",), "ask": ("reply",)}


def talked(vector: dict[str, Any]) -> Conversation:
    talk = Conversation(Request({"command": vector["command"]}, FINALS[vector["command"]], message_id="m"))
    marker = vector.get("marker", "1")
    if marker is not None:
        talk.receive(f"\nintercom-remote {marker}\n".encode())
        talk.wrote(len(talk.output()))
    talk.receive("".join(f"{json.dumps(line)}\n\n" for line in vector["lines"]).encode())
    talk.finish()
    return talk


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_what_came_is_told_as_it_is(vector: dict[str, Any]) -> None:
    ending = Ending(vector.get("cause", "exited"), vector["status"], vector.get("said", ""))
    result = judge_message(DeviceTarget("a", "laptop"), "m", talked(vector), ending)
    expected = dict(vector["expect"])
    assert result.exit_status == expected.pop("exit")
    text = expected.pop("text")
    if text:
        assert failed_text(result) == text
    elif vector["command"] == "ask":
        assert replied_text(result) == "**Reply from a@laptop:**\nPort 8443."
    ended_by = expected.pop("endedBy", "")
    assert result.ended_by == ended_by
    assert {name: getattr(result.outcome, name) for name in expected} == expected
    # An unknown outcome claims nothing.
    assert (result.outcome.accepted is None) == (result.outcome.outcome == "unknown")


def test_every_word_is_among_the_vectors() -> None:
    words = {vector["expect"]["outcome"] for vector in VECTORS}
    assert words == {"delivered", "queued", "refused", "not_sent", "unknown"}
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS)
