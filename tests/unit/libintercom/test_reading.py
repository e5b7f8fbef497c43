"""Both ends of a read on one connection: what is said, what comes back, what is refused before it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom import calls, flows, reading
from libintercom.errors import Disconnected, InvalidProfile, InvalidRead, ReadFailed, TimedOut, Unsupported
from libintercom.inbound import ReadAsked
from libintercom.wire.reads import NativeReceipt, Page, ReadError
from libintercom.wire.record import parse_record
from tests.support.covering import covers
from tests.support.desk import ME, Desk

PAGE = {"entryId": "e1", "offset": 0, "text": "so", "nextOffset": None, "total": 2}
RECEIPT = {
    "version": 1,
    "rootSessionId": "root",
    "messageId": "m",
    "sender": {"peerId": "a"},
    "delivery": "steer",
    "receivedAt": 5,
    "checkpointEntryId": "e1",
    "textSha256": "ab" * 32,
    "queued": False,
    "nativeHandoff": True,
    "placementEntryId": None,
    "discarded": False,
}
WHOLE: tuple[str | None, int, int] = (None, 0, 16_384)


def joined(**profile: Any) -> Desk:
    """A session that negotiated everything."""
    desk = Desk(guarded_delivery=True, receipt_reads=True, **profile)
    running = desk.run(flows.register(desk.exchange))
    asked = desk.said()[0]
    assert (asked["guardedDelivery"], asked["receiptReads"], asked["ext"]) == (1, 1, 1)
    desk.hear({"type": "registered", "sessionId": ME, "ext": 1, "guardedDelivery": 1, "receiptReads": 1})
    running.resume()
    return desk


def test_a_page_comes_back() -> None:
    desk = joined()
    running = desk.run(reading.read_last(desk.exchange, "bob", ("e1", 2, 99)))
    (said,) = desk.said()
    asked = {"kind": "last", "to": "bob", "entryId": "e1", "offset": 2, "limit": 99}
    assert said == {"type": "read", "requestId": said["requestId"], **asked}
    # The owner has five seconds, the broker its own.
    assert running.timeout_s == 10
    desk.hear({"type": "read_result", "requestId": said["requestId"], "kind": "last", "peerId": "p", "page": PAGE})
    page = running.resume()
    assert page is not None
    assert (page.entry_id, page.text, page.next_offset) == ("e1", "so", None)


def test_a_receipt_comes_back_by_its_wire_members() -> None:
    desk = joined()
    running = desk.run(reading.read_receipt(desk.exchange, "bob", ("root", "m")))
    (said,) = desk.said()
    assert (said["kind"], said["rootSessionId"], said["messageId"]) == ("receipt", "root", "m")
    desk.hear({"type": "read_result", "requestId": said["requestId"], "kind": "receipt", "receipt": RECEIPT})
    assert running.resume() == RECEIPT


@pytest.mark.parametrize(("code", "status"), [("empty_history", 1), ("timeout", 4), ("peer_offline", 4)])
def test_a_failure_has_the_brokers_word(code: str, status: int) -> None:
    desk = joined()
    running = desk.run(reading.read_last(desk.exchange, "bob", WHOLE))
    result = {"type": "read_result", "requestId": desk.said()[0]["requestId"], "kind": "last", "peerId": "p"}
    desk.hear({**result, "error": {"code": code, "reason": "so it is"}})
    with pytest.raises(ReadFailed, match="so it is") as caught:
        running.resume()
    assert (caught.value.code, caught.value.peer_id, caught.value.exit_status) == (code, "p", status)


def test_an_answer_of_the_other_kind_is_none() -> None:
    desk = joined()
    running = desk.run(reading.read_last(desk.exchange, "bob", WHOLE))
    request_id = desk.said()[0]["requestId"]
    desk.hear({"type": "read_result", "requestId": request_id, "kind": "receipt", "receipt": RECEIPT})
    with pytest.raises(ReadFailed) as caught:
        running.resume()
    assert caught.value.code == "invalid_response"


def test_no_answer_at_all() -> None:
    desk = joined()
    with pytest.raises(TimedOut):
        desk.run(reading.read_last(desk.exchange, "bob", WHOLE)).resume(10.0)
    ended = desk.run(reading.read_last(desk.exchange, "bob", WHOLE))
    desk.exchange.end("gone", is_lost=True)
    with pytest.raises(Disconnected):
        ended.resume()


@pytest.mark.parametrize("part", [("", 0, 5), (None, -1, 5), (None, 0, 0), ("a\nb", 0, 5)])
def test_what_the_broker_would_drop_is_not_said(part: tuple[str | None, int, int]) -> None:
    desk = joined()
    with pytest.raises(InvalidRead):
        desk.run(reading.read_last(desk.exchange, "bob", part))
    with pytest.raises(InvalidRead):
        desk.run(reading.read_receipt(desk.exchange, "bob", ("root", "")))
    assert desk.said() == []


def test_old_brokers_are_not_asked() -> None:
    desk = Desk(receipt_reads=True).join(ext=False)
    with pytest.raises(Unsupported):
        desk.run(reading.read_last(desk.exchange, "bob", WHOLE))
    with pytest.raises(Unsupported):
        desk.run(reading.read_receipt(desk.exchange, "bob", ("root", "m")))
    with pytest.raises(InvalidProfile):
        desk.run(reading.read_receipt(Desk().join().exchange, "bob", ("root", "m")))
    assert desk.said() == []


def asked(desk: Desk, mark: str = "t1", kind: str = "last") -> None:
    parts = {"last": {"offset": 0, "limit": 16_384}, "receipt": {"rootSessionId": "root", "messageId": "m"}}
    desk.hear({"type": "read_request", "token": mark, "kind": kind, **parts[kind]})


@covers("9.4-client")
def test_a_session_that_serves_no_reads_says_so_at_once() -> None:
    desk = joined()
    asked(desk)
    assert desk.events() == []
    (said,) = desk.said()
    assert (said["type"], said["token"], said["kind"], said["error"]["code"]) == (
        "read_response",
        "t1",
        "last",
        "unsupported",
    )


@covers("9.4-client")
def test_a_read_is_an_event_and_is_answered_once() -> None:
    desk = joined(serves_reads=True)
    asked(desk)
    assert desk.events() == [ReadAsked(token="t1", kind="last", offset=0, limit=16_384)]
    assert desk.said() == []
    assert reading.answer_read(desk.exchange, "t1", parse_record(Page, PAGE))
    assert desk.said() == [{"type": "read_response", "token": "t1", "kind": "last", "page": PAGE}]
    assert not reading.answer_read(desk.exchange, "t1", PAGE)
    assert not reading.answer_read(desk.exchange, "t9", PAGE)
    assert desk.said() == []


@pytest.mark.parametrize("answer", [RECEIPT, parse_record(NativeReceipt, RECEIPT)])
def test_a_receipt_is_answered_as_record_or_as_members(answer: Any) -> None:
    desk = joined(serves_reads=True)
    asked(desk, kind="receipt")
    assert reading.answer_read(desk.exchange, "t1", answer)
    assert desk.said() == [{"type": "read_response", "token": "t1", "kind": "receipt", "receipt": RECEIPT}]


@pytest.mark.parametrize(
    "answer", [{"code": "empty_history", "reason": "none"}, ReadError(code="empty_history", reason="none")]
)
def test_an_error_is_an_answer_to_any_kind(answer: Any) -> None:
    desk = joined(serves_reads=True)
    asked(desk)
    reading.answer_read(desk.exchange, "t1", answer)
    assert desk.said()[0]["error"] == {"code": "empty_history", "reason": "none"}


@pytest.mark.parametrize("answer", [{**PAGE, "total": 1}, {}, RECEIPT, parse_record(NativeReceipt, RECEIPT)])
def test_a_wrong_answer_is_not_said_and_the_read_still_waits(answer: Any) -> None:
    desk = joined(serves_reads=True)
    asked(desk)
    with pytest.raises(InvalidRead):
        reading.answer_read(desk.exchange, "t1", answer)
    assert desk.said() == []
    assert reading.answer_read(desk.exchange, "t1", PAGE)


def test_reads_of_an_earlier_registration_are_not_answered() -> None:
    desk = joined(serves_reads=True)
    asked(desk)
    flows.unregister(desk.exchange)
    with pytest.raises(Disconnected):
        reading.answer_read(desk.exchange, "t1", PAGE)
    running = desk.run(flows.register(desk.exchange))
    desk.said()
    desk.hear({"type": "registered", "sessionId": ME, "ext": 1})
    running.resume()
    assert not reading.answer_read(desk.exchange, "t1", PAGE)


def test_reads_that_nobody_answers_do_not_pile_up() -> None:
    desk = joined(serves_reads=True)
    for number in range(calls.MAX_READS_ASKED + 1):
        asked(desk, f"t{number}")
    assert len(desk.exchange.reads_asked) == calls.MAX_READS_ASKED
    assert not reading.answer_read(desk.exchange, "t0", PAGE)
    assert reading.answer_read(desk.exchange, "t1", PAGE)
