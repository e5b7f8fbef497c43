"""The host contract: the queue host and the fake that stands in for others, held to the same."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.session.host import (
    KEPT_RESPONSES,
    Absent,
    EmptyHistory,
    EntryNotFound,
    HostRefused,
    Placement,
    QueueHost,
)
from libintercom.wire.messages import Host as Abilities
from libintercom.wire.reads import Page, ReadError
from tests.support.arrivals import host_input
from tests.support.fake_host import FakeHost


@pytest.fixture(params=[QueueHost, FakeHost])
def host(request: pytest.FixtureRequest) -> Any:
    return request.param()


def test_it_says_what_it_can_do(host: Any) -> None:
    abilities = host.abilities
    assert isinstance(abilities, Abilities)
    assert all(isinstance(getattr(abilities, name), bool) for name in ("steer", "wake", "turn_end", "prompt_only"))
    assert isinstance(host.reply_call, str)
    assert host.can_accept_asks() is True


def test_it_answers_a_batch_with_what_is_placed_of_it(host: Any) -> None:
    placement = host.place([host_input("m1"), host_input("m2")])
    assert isinstance(placement, Placement)
    assert set(placement.entries) <= {"m1", "m2"}


def test_what_it_never_had_is_absent(host: Any) -> None:
    assert host.find_placement("unknown") == Absent()


def test_waking_and_reading_change_nothing(host: Any) -> None:
    host.wake()
    assert host.last_response(None, 0, 10) == EmptyHistory()


class TestQueueHost:
    def test_nothing_is_placed_before_the_program_takes_it(self) -> None:
        host = QueueHost()
        assert host.place([host_input("m1"), host_input("m2")]).entries == {}
        assert host.backlog == 2
        first = host.first()
        assert first is not None
        assert first.message_id == "m1"
        host.drop_first()
        assert host.withdraw() == ("m2",)
        assert host.first() is None

    def test_once_withdrawn_it_takes_nothing_until_it_is_opened(self) -> None:
        host = QueueHost()
        host.withdraw()
        with pytest.raises(HostRefused):
            host.place([host_input()])
        host.open()
        host.place([host_input()])
        assert host.backlog == 1

    def test_whoever_waits_hears_of_an_arrival(self) -> None:
        host, heard = QueueHost(), []
        host.on_arrival(lambda: heard.append(host.backlog))
        host.wake()
        host.place([host_input()])
        host.on_arrival(None)
        host.place([host_input("n")])
        assert heard == [1]

    def test_a_busy_program_takes_no_questions(self) -> None:
        host = QueueHost()
        host.is_busy = True
        assert host.can_accept_asks() is False

    def test_responses_are_read_by_entry(self) -> None:
        host = QueueHost()
        host.record_response("e1", "first")
        host.record_response("e2", "second")
        newest, pinned = host.last_response(None, 0, 100), host.last_response("e1", 2, 2)
        assert isinstance(newest, Page)
        assert isinstance(pinned, Page)
        assert (newest.entry_id, newest.text) == ("e2", "second")
        assert (pinned.text, pinned.next_offset, pinned.total) == ("rs", 4, 5)
        assert host.last_response("e0", 0, 10) == EntryNotFound()
        beyond = host.last_response("e1", 6, 10)
        assert isinstance(beyond, ReadError)
        assert beyond.code == "invalid_offset"

    def test_old_responses_are_forgotten(self) -> None:
        host = QueueHost()
        for number in range(KEPT_RESPONSES + 1):
            host.record_response(f"e{number}", "x")
        assert host.last_response("e0", 0, 10) == EntryNotFound()
        assert isinstance(host.last_response("e1", 0, 10), Page)
