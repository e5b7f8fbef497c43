"""The exchange: what a client accepts to hear and when, what settles what, what it hands on unasked."""

from __future__ import annotations

import itertools

import pytest

from libintercom import flows, inbound
from libintercom.calls import REQUEST, Call
from libintercom.errors import Disconnected, TooLarge
from libintercom.inbound import AskEnded, ConnectionEnded, Inbound, LetterDied, PeerLeft
from libintercom.wire.connection import CLIENT_TABLE, CLOSED, JOINED, JOINING, LEFT, OPEN, REJOINING
from libintercom.wire.frames import encode_json, frame
from libintercom.wire.requests import ListSessions, Presence
from tests.support.desk import HELLO, ME, NOW_MS, Desk, Object, incoming, row

# One valid frame of each type a broker may send.
FRAMES: dict[str, Object] = {
    "registered": {"type": "registered", "sessionId": ME},
    "sessions": {"type": "sessions", "requestId": "none", "sessions": []},
    "message": incoming(row("pi-peer0001"), "m1"),
    "session_left": {"type": "session_left", "sessionId": "pi-peer0001"},
    "delivered": {"type": "delivered", "messageId": "none"},
    "delivery_queued": {"type": "delivery_queued", "messageId": "none", "reason": "held"},
    "delivery_failed": {"type": "delivery_failed", "messageId": "none", "reason": "no"},
    "health_ok": {"type": "health_ok", "requestId": "none", "protocol": "pi-intercom", "version": 1},
    "error": {"type": "error", "error": "full"},
    "message_receipt": {
        "type": "message_receipt",
        "from": row("pi-peer0001"),
        "receipt": {"messageId": "m", "status": "injected", "timestamp": 1},
    },
    "ask_retired": {"type": "ask_retired", "messageId": "m1", "askerId": "pi-peer0001", "reason": "timeout"},
    "dead_letter": {"type": "dead_letter", "messageId": "m", "recipientId": "r", "reason": "expired", "atMs": 5},
    "dead_letters_result": {"type": "dead_letters_result", "requestId": "none", "letters": []},
    "stats_result": {"type": "stats_result", "requestId": "none", "counters": {}, "gauges": {}},
    "read_request": {"type": "read_request", "token": "t", "kind": "last", "offset": 0, "limit": 5},
    "read_result": {
        "type": "read_result",
        "requestId": "none",
        "kind": "last",
        "error": {"code": "timeout", "reason": "no"},
    },
}


def in_state(state: str) -> Desk:
    desk = Desk()
    if state == JOINING:
        desk.run(flows.register(desk.exchange))
    elif state in (JOINED, LEFT, REJOINING):
        desk.join()
    if state in (LEFT, REJOINING):
        flows.unregister(desk.exchange)
    if state == REJOINING:
        desk.run(flows.register(desk.exchange))
    return desk


@pytest.mark.parametrize("state", [OPEN, JOINING, JOINED, LEFT, REJOINING])
@pytest.mark.parametrize("kind", FRAMES)
def test_frame_is_accepted_exactly_when_the_table_says(state: str, kind: str) -> None:
    desk = in_state(state)
    desk.hear(FRAMES[kind])
    is_allowed = CLIENT_TABLE.get((state, f"<{kind}"), CLOSED) != CLOSED
    assert desk.exchange.is_ended is not is_allowed


def test_every_short_conversation_leaves_the_exchange_in_a_state_of_the_table() -> None:
    """All conversations of up to three frames: the state follows the table, and nothing is heard after a violation."""
    count = 0
    for length in (1, 2, 3):
        for kinds in itertools.product(FRAMES, repeat=length):
            desk, state = in_state(JOINING), JOINING
            for kind in kinds:
                state = CLIENT_TABLE.get((state, f"<{kind}"), CLOSED)
                desk.hear(FRAMES[kind])
                count += 1
                assert desk.exchange.is_ended == (state == CLOSED), kinds
                assert desk.exchange.is_joined == (state == JOINED), kinds
                if state == CLOSED:
                    break
    assert count > 500


@pytest.mark.parametrize(
    "payload",
    [b"[]", b"null", b"{", b'{"type":5}', b'{"type":"tea"}', b'{"type":"message","from":{},"message":{}}'],
)
def test_bytes_that_are_no_frame_end_the_connection(payload: bytes) -> None:
    desk = Desk().join()
    desk.exchange.receive(frame(payload))
    assert desk.exchange.is_ended
    assert [type(event) for event in desk.events()] == [ConnectionEnded]


def test_frames_behind_a_violation_in_the_same_read_are_not_taken() -> None:
    desk = Desk().join()
    good, bad = frame(encode_json(FRAMES["session_left"])), frame(b"[]")
    desk.exchange.receive(good + bad + good)
    assert [type(event) for event in desk.events()] == [PeerLeft, ConnectionEnded]


@pytest.mark.parametrize("split", [1, 2, 3, 5, 7, 64])
def test_any_split_of_the_bytes_is_heard_alike(split: int) -> None:
    desk = Desk().join()
    spoken = b"".join(frame(encode_json(FRAMES[kind])) for kind in ("message", "session_left", "dead_letter"))
    for at in range(0, len(spoken), split):
        desk.exchange.receive(spoken[at : at + split])
    assert [type(event) for event in desk.events()] == [Inbound, PeerLeft, LetterDied]


def test_events_carry_what_the_frames_say() -> None:
    desk = Desk().join()
    sender = row("pi-peer0001", "peer", zzz={"deep": [1]})
    desk.hear(incoming(sender, "m9", "hi", extra=1.5), FRAMES["ask_retired"], FRAMES["dead_letter"])
    message, retired, died = desk.events()
    assert isinstance(message, Inbound)
    assert message.sender == "peer"
    # Exactly as on the wire, members that this library does not know included.
    heard = incoming(sender, "m9", "hi", extra=1.5)
    assert message.raw == {"from": heard["from"], "message": heard["message"]}
    assert retired == AskEnded(message_id="m1", asker_id="pi-peer0001", reason="timeout")
    assert died == LetterDied(message_id="m", recipient_id="r", reason="expired", at_ms=5)


def test_unnamed_sender_is_called_by_eight_characters_of_its_id() -> None:
    desk = Desk().join()
    desk.hear(incoming(row("pi-peer0001-long"), "m1"))
    assert [event.sender for event in desk.events() if isinstance(event, Inbound)] == ["pi-peer0"]


def test_bad_project_of_a_sender_is_dropped_and_its_message_kept() -> None:
    desk = Desk().join()
    desk.hear(incoming(row("pi-peer0001", projectId="zz"), "m1"))
    [event] = desk.events()
    assert isinstance(event, Inbound)
    assert event.row.project_id is None


def test_registration_tells_who_answers() -> None:
    new, old = Desk().join().exchange, Desk().join(ext=False).exchange
    assert (new.session_id, new.has_ext, new.broker and new.broker.version) == (ME, True, HELLO["version"])
    assert (old.session_id, old.has_ext, old.broker) == (ME, False, None)


def test_error_while_joining_is_the_reason_that_is_told() -> None:
    desk = in_state(JOINING)
    desk.hear({"type": "error", "error": "129 sessions are connected"})
    assert "129 sessions" in desk.exchange.end_reason
    assert not desk.exchange.is_lost


def test_error_while_joined_becomes_part_of_the_reason_when_the_connection_ends() -> None:
    desk = Desk().join()
    desk.hear({"type": "error", "error": "too fast"})
    desk.exchange.end("the broker closed the connection", is_lost=True)
    assert desk.events() == [ConnectionEnded(reason="too fast (the broker closed the connection)")]


def test_end_settles_every_call_once_and_is_told_once() -> None:
    desk = Desk().join()
    calls = [desk.exchange.open_call(REQUEST, key) for key in "abc"]
    told: list[Call] = []
    for call in calls:
        call.on_settled = lambda call=call: told.append(call)
    desk.exchange.end("gone", is_lost=True)
    desk.exchange.end("again")
    assert [(call.is_settled, call.answer) for call in calls] == [(True, None)] * 3
    assert told == calls
    assert desk.events() == [ConnectionEnded(reason="gone")]
    assert desk.exchange.end_reason == "gone"


def test_end_before_joining_is_no_event() -> None:
    desk = in_state(JOINING)
    desk.exchange.end("gone", is_lost=True)
    assert desk.events() == []


def test_answers_for_unknown_ids_are_ignored() -> None:
    desk = Desk().join()
    desk.hear(*(FRAMES[kind] for kind in ("sessions", "delivered", "delivery_failed", "health_ok", "stats_result")))
    assert not desk.exchange.is_ended
    assert desk.events() == []


def test_request_and_message_of_the_same_id_are_not_confused() -> None:
    desk = Desk().join()
    request = desk.exchange.open_call(REQUEST, "same")
    desk.hear({"type": "delivered", "messageId": "same"})
    assert not request.is_settled


def test_saying_what_the_state_forbids_is_refused_here() -> None:
    desk = Desk()
    with pytest.raises(Disconnected):
        desk.exchange.say(ListSessions(request_id="r", stream=True))
    assert not desk.exchange.has_output


def test_too_large_a_frame_leaves_nothing_behind() -> None:
    desk = Desk().join()
    with pytest.raises(TooLarge):
        desk.exchange.say(Presence(status="x" * 1_048_576))
    assert not desk.exchange.has_output
    assert desk.exchange.is_joined


def test_output_that_ended_with_the_connection_is_not_taken_any_more() -> None:
    desk = Desk().join()
    desk.exchange.say(Presence(status="idle"))
    desk.exchange.end("gone")
    assert desk.exchange.take_output() == b""


def test_messages_to_a_session_that_left_are_not_handed_to_its_successor() -> None:
    desk = Desk().join()
    flows.unregister(desk.exchange)
    desk.hear(FRAMES["message"], FRAMES["session_left"])
    assert desk.events() == []
    assert not desk.exchange.is_ended
    assert desk.exchange.session_id == ""


# ------------------------------------------------------------------ streamed lists


def listed(desk: Desk, *frames: Object) -> list[tuple[str, str | None]] | None:
    running = desk.run(flows.list_sessions(desk.exchange))
    [asked] = desk.said()
    assert asked == {"type": "list", "requestId": asked["requestId"], "stream": True}
    desk.hear(*({"type": "sessions", "requestId": asked["requestId"], **part} for part in frames))
    listing = running.go_on()
    return None if listing is None else [(one.id, one.name) for one in listing.rows]


def test_list_in_one_frame_without_more() -> None:
    assert listed(Desk().join(), {"sessions": [row("pi-a", "a"), row("pi-b")]}) == [("pi-a", "a"), ("pi-b", None)]


def test_list_in_several_frames_whose_rows_come_in_fragments() -> None:
    frames: list[Object] = [
        {"sessions": [{"id": "pi-a", "name": "a"}], "more": True},
        {"sessions": [{"id": "pi-a", "cwd": "/w", "model": "m"}, row("pi-b")], "more": True},
        {"sessions": [], "more": False},
    ]
    assert listed(Desk().join(), *frames) == [("pi-a", "a"), ("pi-b", None)]


def test_list_is_not_complete_before_its_last_frame() -> None:
    assert listed(Desk().join(), {"sessions": [row("pi-a")], "more": True}) is None


def test_bad_rows_are_left_out_and_omitted_ones_counted() -> None:
    desk = Desk().join()
    running = desk.run(flows.list_sessions(desk.exchange))
    [asked] = desk.said()
    rows = [row("pi-a", projectId="zz"), {"id": "pi-b"}, row("pi-c", "line\nbreak"), 7]
    desk.hear({"type": "sessions", "requestId": asked["requestId"], "sessions": rows, "omitted": 12})
    listing = running.go_on()
    assert listing is not None
    assert [one.id for one in listing.rows] == ["pi-a"]
    assert listing.omitted == 12


def test_fragments_of_an_abandoned_list_are_forgotten() -> None:
    desk = Desk().join()
    running = desk.run(flows.list_sessions(desk.exchange))
    [asked] = desk.said()
    part: Object = {"type": "sessions", "requestId": asked["requestId"], "sessions": [row("pi-a")], "more": True}
    desk.hear(part)
    running.close()
    desk.hear(part, {**part, "more": False})
    assert not desk.exchange.is_ended
    assert desk.exchange._rows == {}
    assert desk.exchange._calls == {}


# ------------------------------------------------------------------ bounds


def test_reading_pauses_at_the_soft_bound_only_while_nothing_is_waited_for() -> None:
    desk = Desk().join()
    for number in range(inbound.SOFT_EVENTS):
        assert desk.exchange.wants_input
        desk.hear(incoming(row("pi-peer0001"), f"m{number}"))
    assert not desk.exchange.wants_input
    running = desk.run(flows.list_sessions(desk.exchange))
    assert desk.exchange.wants_input
    running.close()
    assert not desk.exchange.wants_input
    assert desk.exchange.mailroom.take() is not None
    assert desk.exchange.wants_input


def test_reading_pauses_at_the_hard_bound_whatever_waits() -> None:
    desk = Desk().join()
    _waiting = desk.run(flows.list_sessions(desk.exchange))
    text = "x" * 1_000_000
    while desk.exchange.wants_input:
        desk.hear(incoming(row("pi-peer0001"), "m", text))
    assert len(desk.exchange.mailroom) == inbound.HARD_BYTES // 1_000_000 + 1


def test_nothing_unread_keeps_a_leaving_client_from_hearing_the_end() -> None:
    desk = Desk().join()
    for number in range(inbound.SOFT_EVENTS):
        desk.hear(incoming(row("pi-peer0001"), f"m{number}"))
    flows.unregister(desk.exchange)
    assert desk.exchange.wants_input


# ------------------------------------------------------------------ questions to us


def test_asks_are_tracked_and_retired() -> None:
    desk = Desk().join()
    peer = row("pi-peer0001", "peer")
    desk.hear(incoming(peer, "m1", expectsReply=True), incoming(peer, "m2"), incoming(peer, "m3", expectsReply=True))
    assert [ask.message_id for ask in desk.exchange.pending] == ["m1", "m3"]
    assert [ask.at_ms for ask in desk.exchange.pending] == [NOW_MS] * 2
    desk.hear(FRAMES["ask_retired"])
    assert [ask.message_id for ask in desk.exchange.pending] == ["m3"]
    desk.hear(FRAMES["session_left"])
    assert len(desk.exchange.pending) == 0


def test_oldest_of_too_many_asks_is_evicted_with_a_notice() -> None:
    desk = Desk().join()
    for number in range(101):
        desk.hear(incoming(row("pi-peer0001"), f"m{number}", expectsReply=True))
    assert desk.events()[-1] == AskEnded(message_id="m0", asker_id="pi-peer0001", reason="evicted")
    assert len(desk.exchange.pending) == 100


def test_new_registration_owes_no_replies() -> None:
    desk = Desk().join()
    desk.hear(incoming(row("pi-peer0001"), "m1", expectsReply=True))
    flows.unregister(desk.exchange)
    desk.join()
    assert len(desk.exchange.pending) == 0
