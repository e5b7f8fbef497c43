"""Answers to list: whole, cut or streamed at the frame limit, and never a frame over it."""

from __future__ import annotations

from typing import Any

import pytest

from intercomd.core import lists
from libintercom.wire.frames import MAX_FRAME_BYTES, decode_json
from tests.support.conversation import Conversation
from tests.support.sayings import list_sessions


def crowd(mains: int, kids: int, monkeypatch: pytest.MonkeyPatch, limit_bytes: int = 4_000) -> Conversation:
    monkeypatch.setattr(lists, "MAX_FRAME_BYTES", limit_bytes)
    talk = Conversation().joins("a", "zoe", rootSessionId="R1")
    for number in range(mains):
        talk.joins(f"m{number}", f"main-{number:02d}")
    for number in range(kids):
        talk.joins(f"k{number}", f"kid-{number:02d}", rootSessionId="R1", parentSessionId="R1")
    return talk


def names(answer: dict[str, Any]) -> list[str]:
    return [row["name"] for row in answer["sessions"]]


def test_one_frame_while_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    for members in ({}, {"stream": True}, {"stream": 1}):
        talk = crowd(3, 2, monkeypatch).says("a", list_sessions("l1", **members))
        (answer,) = talk.receives("a")
        assert answer.keys() == {"type", "requestId", "sessions"}
        assert names(answer) == ["kid-00", "kid-01", "main-00", "main-01", "main-02", "zoe"]


def test_a_cut_answer_has_mains_first_in_order_and_says_how_many_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = crowd(6, 9, monkeypatch).says("a", list_sessions())
    (answer,) = talk.receives("a")
    found = names(answer)
    assert {f"main-{number:02d}" for number in range(6)} | {"zoe"} <= set(found)
    assert found == sorted(found)
    assert answer["omitted"] == 16 - len(found) > 0


def test_more_mains_than_fit_leave_no_room_for_children(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = crowd(40, 3, monkeypatch).says("a", list_sessions())
    (answer,) = talk.receives("a")
    assert all(name.startswith("main") for name in names(answer))
    assert answer["omitted"] == 44 - len(names(answer))


def test_a_streamed_answer_has_every_row_once_and_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = crowd(20, 9, monkeypatch).says("a", list_sessions("l1", stream=True))
    answers = talk.receives("a")
    assert [answer["more"] for answer in answers] == [True] * (len(answers) - 1) + [False]
    assert {answer["requestId"] for answer in answers} == {"l1"}
    found = [name for answer in answers for name in names(answer)]
    assert found == sorted(found)
    assert len(found) == 30
    assert not any("omitted" in answer for answer in answers)


@pytest.mark.parametrize("request_id", ["l", "\x00" * 200, "x" * 1_000, "\ud800" * 100])
@pytest.mark.parametrize("stream", [None, True])
def test_no_frame_is_over_the_limit_whatever_the_request_id(
    request_id: str, stream: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mains in range(3, 16):
        talk = crowd(mains, 0, monkeypatch).says("a", list_sessions(request_id, **({"stream": True} if stream else {})))
        for payload in talk.receives_bytes("a"):
            assert len(payload) <= 4_000
            assert decode_json(payload)["requestId"] == request_id


def test_the_limit_is_that_of_a_frame() -> None:
    assert lists.MAX_FRAME_BYTES == MAX_FRAME_BYTES


def test_hidden_sessions_are_neither_shown_nor_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = crowd(6, 9, monkeypatch).joins("s", "standalone").says("s", list_sessions())
    (answer,) = talk.receives("s")
    assert len(names(answer)) + answer.get("omitted", 0) == 8
    assert not any(name.startswith("kid") for name in names(answer))


def test_a_row_over_the_limit_of_a_frame_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = crowd(0, 0, monkeypatch, limit_bytes=1_300).joins("b", "b" * 1_000).says("a", list_sessions())
    (answer,) = talk.receives("a")
    assert (names(answer), answer["omitted"]) == (["zoe"], 1)


def test_the_answer_is_charged() -> None:
    talk = Conversation(input_burst_bytes=100_000, input_bytes_per_s=1.0).joins("a", "alice")
    before = talk.router.state.quotas.allowance(1, talk.now).input.level(talk.now)
    (payload,) = talk.says("a", list_sessions()).receives_bytes("a")
    spent = before - talk.router.state.quotas.allowance(1, talk.now).input.level(talk.now)
    assert spent > len(payload) - 60
