"""Registering, looking and leaving, step by step, without a socket."""

from __future__ import annotations

import pytest

from libintercom import flows
from libintercom.errors import Disconnected, InvalidProfile, NotRegistered, TimedOut, Unsupported
from tests.support.desk import ME, Desk


def test_registration_says_who_it_is_and_asks_for_our_extensions() -> None:
    desk = Desk(requested_id="pi-wanted01", root_session_id="r", observer=None, status="idle")
    desk.run(flows.register(desk.exchange))
    assert desk.said() == [
        {
            "type": "register",
            "session": {"cwd": "/work", "model": "model-a", "name": "me", "status": "idle", "rootSessionId": "r"},
            "requestedId": "pi-wanted01",
            "ext": 1,
        }
    ]


def test_observer_says_so() -> None:
    desk = Desk(observer=True)
    running = desk.run(flows.register(desk.exchange))
    assert desk.said()[0]["observer"] == 1
    desk.hear({"type": "registered", "sessionId": ME, "ext": 1, "observer": 1})
    running.resume()
    assert desk.exchange.is_observer


def test_observer_at_an_old_broker_is_an_ordinary_main_and_can_tell() -> None:
    desk = Desk(observer=True)
    running = desk.run(flows.register(desk.exchange))
    desk.hear({"type": "registered", "sessionId": ME})
    running.resume()
    assert not desk.exchange.is_observer


@pytest.mark.parametrize("wrong", [{"cwd": ""}, {"name": "two\nlines"}, {"pending_asks": -1}, {"name": "x" * 1025}])
def test_registration_that_the_broker_would_drop_is_not_said(wrong: dict[str, object]) -> None:
    desk = Desk(**wrong)
    with pytest.raises(InvalidProfile):
        desk.run(flows.register(desk.exchange))
    assert desk.said() == []


def test_registration_that_breaks_off_may_be_tried_again() -> None:
    desk = Desk()
    running = desk.run(flows.register(desk.exchange))
    desk.exchange.end("the broker closed the connection", is_lost=True)
    with pytest.raises(NotRegistered) as caught:
        running.resume()
    assert caught.value.is_retryable


@pytest.mark.parametrize("answer", [b"\0\0\0\2{}", b"\0\0\0\x1d" + b'{"type":"error","error":"no"}'])
def test_refused_or_broken_registration_is_not_tried_again(answer: bytes) -> None:
    desk = Desk()
    running = desk.run(flows.register(desk.exchange))
    desk.exchange.receive(answer)
    with pytest.raises(NotRegistered) as caught:
        running.resume()
    assert not caught.value.is_retryable


def test_registration_without_an_answer_is_not_tried_again() -> None:
    desk = Desk()
    running = desk.run(flows.register(desk.exchange))
    assert running.timeout_s == 10
    with pytest.raises(NotRegistered, match="within 10 s") as caught:
        running.resume(10.0)
    assert not caught.value.is_retryable


def test_list_that_gets_no_answer_times_out() -> None:
    desk = Desk().join()
    running = desk.run(flows.list_sessions(desk.exchange))
    assert running.timeout_s == 5
    with pytest.raises(TimedOut):
        running.resume(5.0)


def test_list_whose_connection_ends_says_so() -> None:
    desk = Desk().join()
    running = desk.run(flows.list_sessions(desk.exchange))
    desk.exchange.end("gone", is_lost=True)
    with pytest.raises(Disconnected, match="gone"):
        running.resume()


def test_requests_of_nobody_say_so() -> None:
    for flow in (flows.list_sessions, flows.check_health, flows.read_stats, flows.list_dead_letters):
        with pytest.raises(Disconnected):
            Desk().run(flow(Desk().exchange))


def test_health_counters_and_dead_letters() -> None:
    desk = Desk().join()
    health = desk.run(flows.check_health(desk.exchange))
    stats = desk.run(flows.read_stats(desk.exchange))
    letters = desk.run(flows.list_dead_letters(desk.exchange, 5))
    said = desk.said()
    assert [(one["type"], one.get("sinceMs")) for one in said] == [
        ("health", None),
        ("stats", None),
        ("dead_letters", 5),
    ]
    letter = {"id": "l", "senderId": ME, "recipientId": "r", "messageId": "m", "reason": "expired", "atMs": 9}
    desk.hear(
        {"type": "dead_letters_result", "requestId": said[2]["requestId"], "letters": [letter], "omitted": 1},
        {"type": "stats_result", "requestId": said[1]["requestId"], "counters": {"delivered": 3}, "gauges": {}},
        {"type": "health_ok", "requestId": said[0]["requestId"], "protocol": "pi-intercom", "version": 1},
    )
    assert health.go_on() is True
    assert stats.go_on() == {"counters": {"delivered": 3}, "gauges": {}}
    found = letters.go_on()
    assert found is not None
    assert (found.letters[0].message_id, found.omitted) == ("m", 1)


@pytest.mark.parametrize("flow", [flows.check_health, flows.read_stats, flows.list_dead_letters])
def test_requests_that_would_make_an_old_broker_drop_us_are_not_said(flow: object) -> None:
    desk = Desk().join(ext=False)
    with pytest.raises(Unsupported):
        desk.run(flow(desk.exchange))  # type: ignore[operator]
    assert desk.said() == []
    assert not desk.exchange.is_ended


def test_presence_says_only_what_changed_and_is_kept_for_the_next_registration() -> None:
    desk = Desk().join()
    flows.publish_presence(desk.exchange, {"status": "thinking", "accepts_asks": False, "pending_asks": 2})
    assert desk.said() == [{"type": "presence", "status": "thinking", "pendingAsks": 2, "acceptsAsks": False}]
    flows.unregister(desk.exchange)
    desk.run(flows.register(desk.exchange))
    said = desk.said()[-1]
    assert (said["session"]["status"], said["session"]["acceptsAsks"]) == ("thinking", False)


@pytest.mark.parametrize("wrong", [{"status": None}, {"status": ""}, {"cwd": "/x"}, {"pending_asks": 1.5}, {"name": 5}])
def test_presence_that_would_drop_the_connection_is_not_said(wrong: dict[str, object]) -> None:
    desk = Desk().join()
    with pytest.raises(InvalidProfile):
        flows.publish_presence(desk.exchange, wrong)
    assert desk.said() == []


def test_unregistered_client_leaves_once_and_may_come_back() -> None:
    desk = Desk().join()
    flows.unregister(desk.exchange)
    flows.unregister(desk.exchange)
    assert [one["type"] for one in desk.said()] == ["unregister"]
    assert desk.join().exchange.is_joined


def test_waiting_for_the_end_is_bounded() -> None:
    desk = Desk().join()
    late, prompt = desk.run(flows.await_end(desk.exchange)), desk.run(flows.await_end(desk.exchange))
    assert late.timeout_s == 2
    assert late.resume(2.0) is False
    desk.exchange.end("closed")
    assert prompt.go_on() is True
    assert desk.run(flows.await_end(desk.exchange)).result is True
