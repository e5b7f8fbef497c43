"""Truth of ``delivered``: every word to the sender is compared with what the recipient's kernel has."""

from __future__ import annotations

import json
import random
import select
import socket
from typing import TYPE_CHECKING

import pytest

from libintercom.wire.frames import FrameReader, encode_json, frame
from tests.support import sayings as say
from tests.support.daemon import running_daemon
from tests.support.raw_peer import RawPeer
from tests.support.waiting import DEADLINE_S

if TYPE_CHECKING:
    from tests.support.daemon import Daemon

BODY = "x" * 5_000


def flood(sender: RawPeer, to: str, count: int) -> dict[str, str]:
    """Send ``count`` messages and return each one's answer type by its id."""
    answers: dict[str, str] = {}
    sender.say(*(say.send(to, f"m{number}", BODY) for number in range(count)))
    while len(answers) < count:
        heard = sender.hear()
        answers[heard["messageId"]] = heard["type"]
    return answers


def whole_messages(peer: RawPeer) -> list[str]:
    """The ids of all whole messages that can be read on a connection until its end."""
    found = []
    while payload := peer.hear_payload():
        value = json.loads(payload)
        if value["type"] == "message":
            found.append(value["message"]["id"])
    return found


def test_what_the_kernel_took_is_delivered_and_the_rest_is_queued(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as ann, RawPeer(daemon.socket_path) as bob:
        ann.join(say.register("ann"))
        bob.join(say.register("bob"))
        answers = flood(ann, "bob", 200)
        delivered = [name for name, kind in answers.items() if kind == "delivered"]
        queued = [name for name, kind in answers.items() if kind == "delivery_queued"]
        assert delivered
        assert queued
        assert len(delivered) + len(queued) == 200
        daemon.kill()
        # The broker's memory is gone: what can be read now is what the kernel had.
        assert whole_messages(bob) == delivered


def test_a_recipient_that_reads_later_gets_everything_in_order(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as ann, RawPeer(daemon.socket_path) as bob:
        ann.join(say.register("ann", ext=1))
        bob.join(say.register("bob"))
        answers = flood(ann, "bob", 200)
        assert set(answers.values()) == {"delivered", "delivery_queued"}
        got = [bob.hear()["message"]["id"] for _ in range(200)]
        assert got == [f"m{number}" for number in range(200)]
        ann.say(say.stats())
        stats = ann.hear_type("stats_result")
        assert stats["counters"]["delivered"] == stats["counters"]["accepted"] == 200
        assert stats["gauges"]["buffered"] == 0


def test_a_recipient_that_dies_leaves_dead_letters_for_what_was_queued(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as ann, RawPeer(daemon.socket_path) as bob:
        ann.join(say.register("ann", ext=1))
        bob.join(say.register("bob"))
        answers = flood(ann, "bob", 200)
        queued = {name for name, kind in answers.items() if kind == "delivery_queued"}
        bob.socket.close()
        dead = {ann.hear_type("dead_letter")["messageId"] for _ in queued}
        assert dead == queued
        ann.say(say.stats())
        stats = ann.hear_type("stats_result")
        assert stats["counters"]["dead_recipient_left"] == len(queued)
        assert stats["counters"]["accepted"] == stats["counters"]["delivered"] + len(queued)


@pytest.mark.parametrize("round_", range(5))
def test_a_broker_killed_at_any_moment_has_told_no_untruth(round_: int, seed: int) -> None:
    """The sender's ``delivered`` are a part of what the recipient can read, wherever the broker was."""
    rng = random.Random(f"{seed}-{round_}")
    with (
        running_daemon("--idle-exit-s", "60", "--limits", "bench") as daemon,
        RawPeer(daemon.socket_path) as ann,
        RawPeer(daemon.socket_path) as bob,
    ):
        ann.join(say.register("ann"))
        bob.join(say.register("bob"))
        wanted = rng.randrange(1, 400)
        acknowledged, got, sent = pump(ann, bob, wanted)
        daemon.kill()
        values = map(json.loads, iter(ann.hear_payload, b""))
        acknowledged += [value["messageId"] for value in values if value["type"] == "delivered"]
        got += whole_messages(bob)
        assert set(acknowledged) <= set(got), f"seed {seed}, round {round_}"
        assert got == [f"m{number}" for number in range(len(got))]
        assert len(got) <= sent


def pump(ann: RawPeer, bob: RawPeer, wanted: int) -> tuple[list[str], list[str], int]:
    """Send until ``wanted`` messages had their word, the recipient reading now and then.

    Returns the ids called delivered and those read, and how many sends were begun.
    """
    ann.socket.setblocking(False)
    reader = FrameReader()
    heard: list[str] = []
    got: list[str] = []
    # A recipient that fell behind for good is called delivered to no more: every word counts.
    output, sent, words = b"", 0, 0
    while words < wanted:
        if not output:
            output, sent = frame(encode_json(say.send("bob", f"m{sent}", BODY))), sent + 1
        readable, writable, _ = select.select([ann.socket, bob.socket], [ann.socket], [], DEADLINE_S)
        if ann.socket in writable:
            output = output[ann.socket.send(output) :]
        if ann.socket in readable:
            values = [json.loads(payload) for payload in reader.feed(ann.socket.recv(65_536))]
            words += sum(value["type"].startswith("deliver") for value in values)
            heard += [value["messageId"] for value in values if value["type"] == "delivered"]
        if bob.socket in readable and sent % 3 == 0:
            got.append(bob.hear()["message"]["id"])
    ann.socket.settimeout(DEADLINE_S)
    return heard, got, sent


def test_a_peer_that_leaves_with_unread_messages_is_heard_to_the_end(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as bob, RawPeer(daemon.socket_path) as ann:
        bob.join(say.register("bob"))
        ann.join(say.register("ann"))
        bob.say(say.send("ann", "unread"))
        assert bob.hear()["type"] == "delivered"
        ann.say(*(say.send("bob", f"m{number}", BODY) for number in range(20)))
        ann.socket.close()
        got = [bob.hear_type("message")["message"]["id"] for _ in range(20)]
        assert got == [f"m{number}" for number in range(20)]
        assert bob.hear()["type"] == "session_left"


def test_a_half_closed_session_hears_its_last_acknowledgement(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as ann, RawPeer(daemon.socket_path) as bob:
        bob.join(say.register("bob"))
        ann.join(say.register("ann"))
        ann.say(say.send("bob", "last"))
        ann.socket.shutdown(socket.SHUT_WR)
        assert ann.hear() == {"type": "delivered", "messageId": "last"}
        assert ann.hears_end()
