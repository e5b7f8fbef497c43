"""Both clients on real sockets against a scripted broker's end: the same expectations of each."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import pytest

from libintercom.errors import Disconnected, ForeignOwner, NotRegistered, NotRunning, TimedOut, Unreachable, Unsupported
from libintercom.inbound import ConnectionEnded, Inbound
from libintercom.profile import Profile
from libintercom.sending import Timeouts
from tests.support.daemon import runtime_directory
from tests.support.desk import incoming, row
from tests.support.driven import connected
from tests.support.scripted_broker import Peer, answer_list, scripted, stay

PROFILE = Profile(cwd="/work", model="model-a", name="me")
SENDER = row("pi-peer0001", "peer", acceptsAsks=True)
SHORT = Timeouts(send_s=0.3, list_s=0.3)


# ------------------------------------------------------------------ a whole life


def test_whole_life(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        while True:
            heard = peer.hear()
            if not heard:
                return
            if answer_list(peer, heard, SENDER) or heard["type"] in ("presence", "unregister"):
                continue
            if heard["type"] == "health":
                peer.say({"type": "health_ok", "requestId": heard["requestId"], "protocol": "p", "version": 1})
                continue
            message = heard["message"]
            peer.say({"type": "delivered", "messageId": message["id"]})
            if message.get("expectsReply"):
                peer.say(incoming(SENDER, "r1", "yes", replyTo=message["id"]))
            elif "replyTo" not in message:
                peer.say(incoming(SENDER, "q1", "why?", expectsReply=True))

    with scripted(script) as broker:
        with connected(kind, broker.path) as client:
            assert (client.session_id, client.has_ext, client.is_connected) == ("pi-client01", True, True)
            assert client.broker.program == "scripted"
            assert [one.name for one in client.list_sessions().rows] == ["me", "peer"]
            assert client.health() is True
            client.presence(status="idle", accepts_asks=True)
            assert client.send("peer", "hello").outcome == "delivered"
            answered = client.ask("peer", "well?")
            assert (answered.reply.message.content.text, answered.ended_by) == ("yes", "")
            [event] = list(client.events(0.05))
            assert isinstance(event, Inbound)
            assert [ask.message_id for ask in client.pending] == ["q1"]
            assert client.reply(event, "because").outcome == "delivered"
        broker.finish()
        assert not client.is_connected
        assert client.session_id == ""
        kinds = [heard["type"] for heard in broker.said]
        assert kinds == ["register", "list", "health", "presence", "send", "list", "send", "send", "unregister"]


def test_leaving_and_coming_back_on_the_same_connection(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register(session_id="pi-first001")
        assert peer.hear() == {"type": "unregister"}
        assert peer.register(session_id="pi-second01")["session"]["incarnation"] == "second"
        stay(peer)

    with scripted(script) as broker:
        with connected(kind, broker.path) as client:
            client.unregister()
            assert not client.is_connected
            assert client.send("peer", "hello").outcome == "not_sent"
            assert client.register(PROFILE.replace(incarnation="second")) == "pi-second01"
        broker.finish()


def test_client_comes_back_on_a_new_connection(make: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        stay(peer)

    with scripted(script, script) as broker:
        client = make(broker.path)
        for _ in range(2):
            client.connect()
            assert client.connect() == "pi-client01"
            client.disconnect()
            client.disconnect()
        ended = list(client.events(0.0))
        assert [type(event) for event in ended] == [ConnectionEnded]
        assert [type(event) for event in client.events(0.0)] == [ConnectionEnded]
        broker.finish()


# ------------------------------------------------------------------ joining


def test_connection_that_breaks_off_unanswered_is_tried_again(kind: Any) -> None:
    def leave(peer: Peer) -> None:
        peer.hear()

    def leave_unread(peer: Peer) -> None:
        peer.reset()

    def serve(peer: Peer) -> None:
        peer.register()
        stay(peer)

    with scripted(leave, leave_unread, leave, serve) as broker:
        with connected(kind, broker.path) as client:
            assert client.is_connected
            # Nobody is told of connections on which nobody was registered.
            assert list(client.events(0.0)) == []
        broker.finish()


def test_connection_that_always_breaks_off_is_given_up(make: Any) -> None:
    def leave(peer: Peer) -> None:
        peer.hear()

    with scripted(*[leave] * 4) as broker:
        client = make(broker.path)
        with pytest.raises(NotRegistered, match="closed the connection"):
            client.connect()
        broker.finish()
        assert broker.served == 4


def test_refused_registration_is_not_tried_again(make: Any) -> None:
    def refuse(peer: Peer) -> None:
        peer.hear()
        peer.say({"type": "error", "error": "129 sessions are connected"})
        # The client does not keep the connection of a registration that failed.
        assert peer.hear() == {}

    with scripted(refuse) as broker:
        client = make(broker.path)
        with pytest.raises(NotRegistered, match="129 sessions"):
            client.connect()
        broker.finish()


def test_registration_that_is_never_answered_is_given_up_with_its_connection(make: Any) -> None:
    def ignore(peer: Peer) -> None:
        peer.hear()
        assert peer.hear() == {}

    with scripted(ignore) as broker:
        client = make(broker.path, timeouts=Timeouts(register_s=0.2))
        with pytest.raises(NotRegistered, match=r"within 0\.2 s"):
            client.connect()
        broker.finish()
        assert not client.is_connected


def test_where_nobody_listens_the_error_says_so(make: Any) -> None:
    with runtime_directory() as directory:
        client = make(f"{directory}/broker.sock")
        with pytest.raises(NotRunning):
            client.connect()
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as bound:
            bound.bind(f"{directory}/dead.sock")
        with pytest.raises(NotRunning):
            make(f"{directory}/dead.sock").connect()
        with pytest.raises(Unreachable) as caught:
            make(directory).connect()
        assert not isinstance(caught.value, NotRunning | ForeignOwner)


# ------------------------------------------------------------------ old brokers


def test_old_broker(kind: Any) -> None:
    def script(peer: Peer) -> None:
        assert peer.register(ext=False)["ext"] == 1
        while True:
            heard = peer.hear()
            if not heard or heard["type"] == "unregister":
                return
            if not answer_list(peer, heard, SENDER):
                assert heard["to"] == "pi-peer0001"
                peer.say({"type": "delivered", "messageId": heard["message"]["id"]})

    with scripted(script) as broker:
        with connected(kind, broker.path) as client:
            assert (client.has_ext, client.broker) == (False, None)
            assert client.send(" PEER ", "hello").outcome == "delivered"
            assert client.ask("pi-peer0", "well?", timeout_s=0.05).ended_by == "timeout"
            for request in (client.health, client.stats, client.dead_letters):
                with pytest.raises(Unsupported):
                    request()
        broker.finish()
        assert "cancel_ask" not in [heard["type"] for heard in broker.said]


# ------------------------------------------------------------------ the truth of outcomes


def test_silent_broker_makes_outcomes_unknown_and_requests_time_out(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        stay(peer)

    with scripted(script) as broker:
        with connected(kind, broker.path, timeouts=SHORT) as client:
            outcome = client.send("peer", "hello")
            assert (outcome.outcome, outcome.accepted, outcome.delivery_unknown) == ("unknown", None, True)
            with pytest.raises(TimedOut):
                client.list_sessions()
            answered = client.ask("peer", "well?", timeout_s=5)
            assert (answered.outcome.outcome, answered.ended_by) == ("unknown", "timeout")
        broker.finish()
        assert [heard["type"] for heard in broker.said][-2:] == ["cancel_ask", "unregister"]


def test_broker_that_dies_with_the_message_makes_it_unknown(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        peer.hear()

    with scripted(script) as broker, connected(kind, broker.path) as client:
        assert client.send("peer", "hello").outcome == "unknown"
        assert client.send("peer", "again").outcome == "not_sent"
        with pytest.raises(Disconnected):
            client.list_sessions()
        assert [type(event) for event in client.events()] == [ConnectionEnded]


def test_broker_that_died_before_makes_it_not_sent(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()

    with scripted(script) as broker, connected(kind, broker.path) as client:
        broker.finish()
        outcome = client.send("peer", "hello")
        assert (outcome.outcome, outcome.accepted, outcome.delivery_unknown) == ("not_sent", False, False)


def test_message_that_did_not_leave_whole_is_not_sent(kind: Any) -> None:
    """The kernel takes a part of a large frame; the broker dies: what arrived is no message."""
    taken = threading.Event()

    def script(peer: Peer) -> None:
        peer.register()
        taken.wait(5)

    with scripted(script) as broker, connected(kind, broker.path, timeouts=Timeouts(send_s=20.0)) as client:
        threading.Timer(0.2, taken.set).start()
        outcome = client.send("peer", "x" * 1_000_000)
        assert (outcome.outcome, outcome.delivery_unknown) == ("not_sent", False)


def test_what_the_broker_said_before_it_died_counts(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        heard = peer.hear()
        peer.say({"type": "delivered", "messageId": heard["message"]["id"]}, incoming(SENDER, "m1"))

    with scripted(script) as broker, connected(kind, broker.path) as client:
        assert client.send("peer", "hello").outcome == "delivered"
        broker.finish()
        # The next write fails; the message that stands before the end is not lost with it.
        client.send("peer", "again")
        assert [type(event) for event in client.events()] == [Inbound, ConnectionEnded]


@pytest.mark.parametrize("acknowledged", [True, False])
def test_ask_whose_connection_is_lost_says_what_is_known(kind: Any, acknowledged: bool) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        answer_list(peer, peer.hear(), SENDER)
        heard = peer.hear()
        if acknowledged:
            peer.say({"type": "delivered", "messageId": heard["message"]["id"]})

    with scripted(script) as broker, connected(kind, broker.path) as client:
        answered = client.ask("peer", "well?")
        assert answered.ended_by == "disconnected"
        assert answered.outcome.outcome == ("delivered" if acknowledged else "unknown")


def test_ask_whose_recipient_leaves_ends_at_once(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        answer_list(peer, peer.hear(), SENDER)
        heard = peer.hear()
        peer.say({"type": "delivered", "messageId": heard["message"]["id"]})
        peer.say({"type": "session_left", "sessionId": "pi-peer0001"})
        stay(peer)

    with scripted(script) as broker, connected(kind, broker.path) as client:
        answered = client.ask("peer", "well?")
        assert (answered.outcome.outcome, answered.ended_by) == ("delivered", "peer_left")
