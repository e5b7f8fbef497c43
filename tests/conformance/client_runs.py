"""Vectors on the client: what a broker says, and what the library's exchange makes of it.

Owns a client vector's steps: ``says`` (a client's frame as JSON), ``waits`` (request ids with a call), ``receives``
(broker frames, in one read), then ``ended`` (whether the connection is over), ``events`` (their kind and members, in
order), ``answers`` (request id -> what settled its call) and ``pending`` (questions that wait for a reply).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from libintercom.calls import RECEIPT, REQUEST, Exchange
from libintercom.errors import InvalidFrame
from libintercom.profile import Profile, register_request
from libintercom.wire.frames import FrameReader
from libintercom.wire.record import Record, dump_record
from libintercom.wire.requests import parse_request
from tests.conformance.payloads import bytes_of, expand
from tests.support.matching import explain_mismatch

if TYPE_CHECKING:
    from libintercom.calls import Call
    from tests.conformance.catalogue import Vector

_REGISTERED = {"type": "registered", "sessionId": "session-me"}


class _Client:
    """An exchange with fixed ids and a clock that stands still."""

    def __init__(self, given: str) -> None:
        numbers = itertools.count(1)
        profile = Profile(cwd="/w", model="m", name="me")
        self.exchange = Exchange(profile, make_id=lambda: f"id-{next(numbers)}", now_ms=lambda: 1_700_000_000_000)
        self.calls: dict[str, Call] = {}
        if given != "open":
            self.exchange.say(register_request(profile))
        if given == "joined":
            self.exchange.receive(bytes_of(_REGISTERED))

    def wait(self, key: str) -> None:
        kind = RECEIPT if key.startswith("m") else REQUEST
        self.calls[key] = self.exchange.open_call(kind, key)

    def events(self) -> list[dict[str, Any]]:
        taken = iter(self.exchange.mailroom.take, None)
        return [{"event": type(event).__name__, **dump_record(event)} for event in taken]

    def answers(self) -> dict[str, Any]:
        return {key: _dump(call.answer) for key, call in self.calls.items() if call.is_settled}


def _dump(answer: Any) -> Any:
    return {"kind": type(answer).__name__, **dump_record(answer)} if isinstance(answer, Record) else answer


def play_client(vector: Vector) -> int:
    """Run one client vector; returns how many steps were judged."""
    client = _Client(vector.body.get("given", "joined"))
    for number, step in enumerate(vector.body["steps"]):
        for said in step.get("says", []):
            client.exchange.say(parse_request(said))
        for key in step.get("waits", []):
            client.wait(key)
        client.exchange.receive(b"".join(map(bytes_of, step.get("receives", []))))
        found = {
            "ended": client.exchange.is_ended,
            "events": client.events(),
            "answers": client.answers(),
            "pending": [ask.message_id for ask in client.exchange.pending],
        }
        expected = expand({"ended": False, "events": [], "answers": {}, "pending": [], **step["expect"]})
        wrong = explain_mismatch(expected, found, {})
        assert not wrong, f"{vector.label}, step {number}: {wrong}"
    return len(vector.body["steps"])


def play_stream(vector: Vector) -> int:
    """Feed a byte stream in two reads at every split, and in reads of every small size; the payloads are the same."""
    stream = b"".join(map(bytes_of, vector.body["stream"]))
    expected = ([payload.encode() for payload in vector.body["payloads"]], vector.body["is_refused"])
    reads = [[stream[:at], stream[at:]] for at in range(len(stream) + 1)]
    reads += [[stream[at : at + size] for at in range(0, len(stream), size)] for size in range(1, 9)]
    for read in reads:
        assert _feed(read) == expected, f"{vector.label}: split {[len(part) for part in read][:3]}"
    return len(reads)


def _feed(read: list[bytes]) -> tuple[list[bytes], bool]:
    reader, payloads = FrameReader(), []
    try:
        for received in read:
            for payload in reader.feed(received):
                payloads.append(payload)  # noqa: PERF402 - what came before a bad frame is kept
    except InvalidFrame:
        return payloads, True
    return payloads, False
