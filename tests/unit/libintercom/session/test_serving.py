"""Answering readers: the host's word, the journal's word, and what cannot be told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libintercom.inbound import ReadAsked
from libintercom.session import serving
from libintercom.session.entries import Entry
from libintercom.session.hashes import text_sha256
from libintercom.session.host import EmptyHistory, EntryNotFound, HostFailed
from libintercom.session.pages import PagedText
from libintercom.session.volatile import VolatileJournal
from libintercom.wire.reads import NativeReceipt, ReadError
from tests.support.arrivals import inbound
from tests.support.fake_host import FakeHost


def read(response: Any, **asked: Any) -> Any:
    host = FakeHost()
    host.response = response
    return asyncio.run(serving.read_last(host, ReadAsked(token="t", kind="last", **asked)))


def test_a_page_is_the_hosts() -> None:
    heard: list[Any] = []

    def respond(entry: str | None, offset: int, limit: int) -> Any:
        heard.append((entry, offset, limit))
        return PagedText("e", "text").page(offset, limit)

    assert read(respond).text == "text"
    assert read(respond, entry_id="e", offset=2, limit=99_999).text == "xt"
    assert heard == [(None, 0, 16_384), ("e", 2, 16_384)]


def test_a_host_may_take_its_time() -> None:
    async def later() -> Any:
        return PagedText("e", "text").page()

    assert read(lambda *_asked: later()).text == "text"


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (EmptyHistory(), "empty_history"),
        (EntryNotFound(), "entry_not_found"),
        (ReadError(code="invalid_offset", reason="r"), "invalid_offset"),
    ],
)
def test_no_page(response: Any, code: str) -> None:
    assert read(response).code == code


def test_a_host_that_raises_tells_nothing() -> None:
    def respond(*_asked: Any) -> Any:
        raise HostFailed("asleep")

    assert (read(respond).code, read(respond).reason) == ("unsupported", "the host cannot tell: asleep")


def test_a_host_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "READ_TIMEOUT_S", 0.01)

    async def never() -> Any:
        await asyncio.get_running_loop().create_future()

    assert read(lambda *_asked: never()).reason == "the host did not answer in time"


def attest(ledger: Any, root: str = "r", message_id: str = "m") -> Any:
    return serving.attest(ledger, root="r", session="s", root_session_id=root, message_id=message_id)


def test_receipts_are_the_journals() -> None:
    ledger, came = VolatileJournal(), inbound("m", "text")
    body = {**came.raw, "receivedAt": 5, "textSha256": text_sha256("text"), "generation": "g", "session": "s"}
    ledger.append([Entry(entry_id="1", message_id="m", kind="admitted", at_ms=5, body=body)])
    receipt = attest(ledger)
    assert isinstance(receipt, NativeReceipt)
    assert (receipt.message_id, receipt.received_at, receipt.checkpoint_entry_id) == ("m", 5, "1")
    assert attest(ledger, message_id="n").code == "receipt_not_found"
    assert attest(ledger, root="other").code == "publication_unavailable"
    assert attest(None).code == "publication_unavailable"
