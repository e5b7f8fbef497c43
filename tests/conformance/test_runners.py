"""The runners cry when something is wrong: wrong expectations and planted bugs are found."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.core import membership, refusals
from intercomd.core.roster import Roster
from tests.conformance import codec_runs
from tests.conformance.broker_runs import play
from tests.conformance.catalogue import Vector, cases, vectors
from tests.conformance.client_runs import play_client, play_stream
from tests.conformance.codec_runs import CODECS, check_answers, check_case
from tests.conformance.targets import RouterTarget

if TYPE_CHECKING:
    from collections.abc import Callable


def named(name: str) -> Vector:
    return next(vector for vector in vectors() if vector.name == name)


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> Vector:
    vector = named(name)
    body = copy.deepcopy(vector.body)
    change(body)
    return dataclasses.replace(vector, body=body)


def on_router(vector: Vector) -> int:
    return play(RouterTarget("msgspec", CODECS["msgspec"], vector.body.get("limits", {})), vector)


EMPTY = "texts that may not bother anybody"
BAD_FIRST = "a bad frame before a good one in one write"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (EMPTY, lambda body: body["steps"][0]["expect"]["alice"].pop()),
        (EMPTY, lambda body: body["steps"][0]["expect"]["alice"].reverse()),
        (EMPTY, lambda body: body["steps"][0]["expect"].pop("bob")),
        (EMPTY, lambda body: body["steps"][0]["expect"]["alice"][0].update(code="x")),
        (EMPTY, lambda body: body["steps"][0].update(closed=["bob"])),
        (BAD_FIRST, lambda body: body["steps"][0]["closed"].pop()),
        ("to is a string", lambda body: body["accepts"].append(7)),
        ("to is a string", lambda body: body["refuses"].append("session-peer")),
        ("to is a string", lambda body: body.update(refused_as="unknown")),
    ],
)
def test_a_wrong_expectation_fails(name: str, change: Callable[[dict[str, Any]], object]):
    with pytest.raises(AssertionError):
        on_router(changed(name, change))


def test_labels_that_are_not_checked_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(membership, "label_fault", lambda _labels: "")
    with pytest.raises(AssertionError, match="not refused"):
        on_router(named("name and status are optional labels"))


def test_a_group_that_is_not_enforced_is_found(monkeypatch: pytest.MonkeyPatch):
    original = Roster.circles_for
    monkeypatch.setattr(Roster, "circles_for", lambda self, viewer: [*original(self, viewer), *self._children.values()])
    with pytest.raises(AssertionError):
        on_router(named("who sees whom"))


def test_another_reason_text_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(refusals, "INVALID_FORMAT", "Invalid message")
    with pytest.raises(AssertionError, match="Invalid message format"):
        on_router(named("what breaks a rule fails and does not end the connection"))


def test_codecs_that_differ_are_found(monkeypatch: pytest.MonkeyPatch):
    case = cases(named("name and status are optional labels"))[0]
    monkeypatch.setitem(codec_runs.CODECS, "stdlib", lambda _payload: CODECS["msgspec"](b'{"type":"unregister"}'))
    with pytest.raises(AssertionError):
        check_case(case)


def test_a_verdict_of_the_codecs_that_is_wrong_is_found():
    case = cases(named("a project id is 64 lowercase hex digits"))[0]
    with pytest.raises(AssertionError):
        check_case(dataclasses.replace(case, is_accepted=not case.is_accepted))


def test_other_bytes_of_an_answer_are_found():
    vector = changed("answers as they stand on the wire", lambda body: body["texts"].append('{"type": "health_ok"}'))
    with pytest.raises(Exception, match="missing"):
        check_answers(vector)


def test_a_wrong_client_expectation_fails():
    with pytest.raises(AssertionError):
        play_client(changed("a second registered ends it", lambda body: body["steps"][0]["expect"].update(ended=False)))


def test_a_wrong_stream_expectation_fails():
    with pytest.raises(AssertionError):
        play_stream(changed("two frames, whatever the split", lambda body: body["payloads"].pop()))
