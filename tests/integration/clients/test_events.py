"""What arrives unasked at both clients: its order, its end, and how much of it is ever held."""

from __future__ import annotations

from typing import Any

from libintercom.client import Client
from libintercom.inbound import HARD_EVENTS, SOFT_BYTES, AskEnded, ConnectionEnded, Inbound, LetterDied, PeerLeft
from libintercom.sending import Timeouts
from tests.support.desk import incoming, row
from tests.support.driven import connected
from tests.support.scripted_broker import Peer, scripted, stay
from tests.support.waiting import wait_until

SENDER = row("pi-peer0001", "peer", acceptsAsks=True)


def mailroom_of(client: Any) -> Any:
    return (client if isinstance(client, Client) else client.client)._exchange.mailroom


def test_events_come_in_order_and_end_with_the_connection(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        peer.say(
            incoming(SENDER, "m1"),
            {"type": "ask_retired", "messageId": "q", "askerId": "a", "reason": "timeout"},
            {"type": "dead_letter", "messageId": "m", "recipientId": "r", "reason": "expired", "atMs": 1},
            {"type": "session_left", "sessionId": "pi-peer0001"},
        )

    with scripted(script) as broker, connected(kind, broker.path) as client:
        kinds = [type(event) for event in client.events()]
        assert kinds == [Inbound, AskEnded, LetterDied, PeerLeft, ConnectionEnded]


def test_events_end_when_nothing_comes_in_time(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        peer.say(incoming(SENDER, "m1"))
        stay(peer)

    with scripted(script) as broker, connected(kind, broker.path) as client:
        assert [type(event) for event in client.events(0.2)] == [Inbound]


def test_flood_is_read_no_faster_than_it_is_taken_and_loses_nothing(kind: Any) -> None:
    """Twice the soft bound arrives unread: most of it stays with the broker, and all of it comes in order."""
    size, count = 100_000, 2 * SOFT_BYTES // 100_000
    written = []

    def script(peer: Peer) -> None:
        peer.register()
        heard = peer.hear()
        for number in range(count):
            peer.say(incoming(SENDER, f"m{number}", "x" * size))
            written.append(number)
            if number == 0:
                peer.say({"type": "delivered", "messageId": heard["message"]["id"]})
        stay(peer)

    with scripted(script) as broker, connected(kind, broker.path) as client:
        assert client.send("peer", "go").outcome == "delivered"
        seen = []
        for event in client.events(2.0):
            seen.append(event.message.id)
            # Never more unread than the bound and the one read that passed it.
            assert len(mailroom_of(client)) * size <= (SOFT_BYTES + 3 * size)
            if len(seen) == count:
                break
        assert seen == [f"m{number}" for number in range(count)]
        wait_until(lambda: len(written) == count, "the broker to have written everything")


def test_flood_that_never_ends_bounds_memory_and_costs_the_call_its_answer(kind: Any) -> None:
    """Past the hard bound nothing more is read, whatever waits: the outcome is unknown, and no message is lost."""
    count = HARD_EVENTS + 2_000

    def script(peer: Peer) -> None:
        peer.register()
        heard = peer.hear()
        for number in range(count):
            peer.say(incoming(SENDER, f"m{number}"))
        peer.say({"type": "delivered", "messageId": heard["message"]["id"]})
        stay(peer)

    with scripted(script) as broker, connected(kind, broker.path, timeouts=Timeouts(send_s=2.0)) as client:
        assert client.send("peer", "hello").outcome == "unknown"
        mailroom = mailroom_of(client)
        # One read holds some three hundred of them.
        assert HARD_EVENTS <= len(mailroom) <= HARD_EVENTS + 500
        seen = []
        for event in client.events(2.0):
            seen.append(event.message.id)
            if len(seen) == count:
                break
        assert seen == [f"m{number}" for number in range(count)]


def test_large_message_is_written_as_the_broker_reads_it(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        for _ in range(3):
            message = peer.hear()["message"]
            peer.say({"type": "delivered", "messageId": message["id"]})
        stay(peer)

    with scripted(script) as broker, connected(kind, broker.path) as client:
        assert [client.send("peer", "x" * 1_000_000).outcome for _ in range(3)] == ["delivered"] * 3


def test_call_is_answered_behind_a_flood_of_unread_messages(kind: Any) -> None:
    def script(peer: Peer) -> None:
        peer.register()
        heard = peer.hear()
        peer.say(*(incoming(SENDER, f"m{number}") for number in range(1500)))
        peer.say({"type": "delivered", "messageId": heard["message"]["id"]})
        stay(peer)

    assert HARD_EVENTS > 1500
    with scripted(script) as broker, connected(kind, broker.path) as client:
        assert client.send("peer", "hello").outcome == "delivered"
        assert len(list(client.events(0.2))) == 1500
