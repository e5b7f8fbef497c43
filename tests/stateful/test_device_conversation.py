"""A conversation with a device as a state machine: every short sequence of what a device may print and what is taken.

Three invariants: nothing of a request is given out before a marker line; it counts as handed over only when all of it
was taken; a receipt or a success counts only behind that. Each has a planted bug that the walk must catch.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

from libintercom.devices.command import MARKERS
from libintercom.devices.conversation import Conversation, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

RECEIPT = json.dumps({"version": 1, "receipt": {"id": "m", "accepted": True, "delivered": True}}).encode()
REPLY = json.dumps({"version": 1, "reply": {"content": {"text": "x"}}}).encode()
# What a device may print next, and how much of a request is taken next.
PRINTED = (b"\n", b"intercom-remote 1\n", b"intercom-remote node\r\n", b"prompt> ", RECEIPT + b"\n", REPLY + b"\n")
TAKEN = ("some", "all")
LENGTH = 5
REQUEST = Request({"command": "ask"}, ("reply",), message_id="m")


class Walk:
    """One sequence of events, and what an onlooker knows of it."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk
        self.printed = b""
        self.taken = 0

    def step(self, event: bytes | str) -> None:
        if isinstance(event, bytes):
            self.printed += event
            self.talk.receive(event)
            return
        waiting = len(self.talk.output())
        count = waiting if event == "all" else waiting // 2
        self.taken += count
        self.talk.wrote(count)

    @property
    def is_marked(self) -> bool:
        return any(line.strip() in MARKERS for line in self.printed.split(b"\n")[:-1])

    def broken(self) -> str:
        """The invariant that does not hold; "" when all do."""
        size = len(REQUEST.line())
        if not self.is_marked and (self.taken or len(self.talk.output())):
            return "given out before the marker"
        if self.talk.is_handed_over and self.taken < size:
            return "handed over in part"
        is_answered = self.talk.receipt is not None or self.talk.answer is not None
        return "answered before it was asked" if is_answered and self.taken < size else ""


def walks(kind: type[Conversation]) -> Iterator[tuple[tuple[bytes | str, ...], str]]:
    """Every sequence with the first invariant that it breaks."""
    for events in itertools.product((*PRINTED, *TAKEN), repeat=LENGTH):
        walk = Walk(kind(REQUEST))
        for event in events:
            walk.step(event)
            broken = walk.broken()
            if broken:
                yield events, broken
                break


def test_every_short_sequence_keeps_the_invariants() -> None:
    assert list(itertools.islice(walks(Conversation), 3)) == []


class GivesOutAtOnce(Conversation):
    """The request is written as soon as there is a connection."""

    def output(self) -> memoryview:
        self._line = self._line or self._request.line()
        return memoryview(self._line)[self._written :]


class TakesAnyMarker(Conversation):
    """A notice that contains the marker somewhere is taken for it."""

    def _take(self, line: bytes) -> None:
        super()._take(b"intercom-remote 1" if b"prompt" in line else line)


class HandsOverInPart(Conversation):
    """A part of a request counts as all of it."""

    @property
    def is_handed_over(self) -> bool:
        return self._written > 0


class BelievesBeforehand(Conversation):
    """A receipt counts although nothing was asked."""

    @property
    def is_handed_over(self) -> bool:
        return bool(self.marker)


@pytest.mark.parametrize("planted", [GivesOutAtOnce, TakesAnyMarker, HandsOverInPart, BelievesBeforehand])
def test_a_planted_bug_is_caught(planted: type[Conversation]) -> None:
    assert next(walks(planted), None) is not None
