"""Both clients through a real broker: what two sessions can say to each other, and how each end is told."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.client import Client
from libintercom.errors import NotRunning
from libintercom.identity import child_environment
from libintercom.inbound import AskEnded, ConnectionEnded, Inbound, PeerLeft
from libintercom.paths import find_places
from libintercom.profile import profile_from_environment
from libintercom.roster import build_roster
from tests.support.daemon import Daemon, running_daemon, runtime_directory
from tests.support.driven import DrivenClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[..., Any]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running_daemon() as running:
        yield running


@pytest.fixture(params=[Client, DrivenClient])
def make(request: pytest.FixtureRequest, daemon: Daemon) -> Iterator[Make]:
    """Joined clients by name; each leaves afterwards."""
    with contextlib.ExitStack() as stack:

        def build(name: str, native_id: str | None = None, environ: dict[str, str] | None = None, **parts: Any) -> Any:
            profile = profile_from_environment(name=name, native_id=native_id, environ=environ or {}, **parts)
            return stack.enter_context(request.param(profile, path=daemon.socket_path))

        yield build


@contextlib.contextmanager
def in_background(work: Callable[[], object]) -> Iterator[list[Any]]:
    """Run work in a thread beside the block; what it returned is in the list afterwards."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    try:
        yield results
    finally:
        thread.join(20)
        assert not thread.is_alive()


def next_event(client: Any, kind: type, timeout_s: float = 5.0) -> Any:
    for event in client.events(timeout_s):
        if isinstance(event, kind):
            return event
    raise AssertionError(f"no {kind.__name__} came")


# ------------------------------------------------------------------ send


def test_send_arrives_with_the_brokers_row_of_its_sender(make: Make) -> None:
    alice, bob = make("alice", status="idle"), make("bob")
    outcome = alice.send(
        "BOB", "hello \ud83d \u202e\r\n\tdone", attachments=[{"type": "file", "name": "a", "content": "x"}]
    )
    assert (outcome.outcome, outcome.accepted, outcome.delivered) == ("delivered", True, True)
    event = next_event(bob, Inbound)
    assert (event.row.id, event.sender, event.row.status) == (alice.session_id, "alice", "idle")
    assert event.message.id == outcome.message_id
    assert event.raw["message"]["content"] == {
        "text": "hello \ud83d \u202e\r\n\tdone",
        "attachments": [{"type": "file", "name": "a", "content": "x"}],
    }


def test_refusals_have_their_codes(make: Make) -> None:
    alice = make("alice")
    make("twin", native_id="one-1")
    make("Twin", native_id="one-2")
    assert alice.send(alice.session_id, "x").code == "self_target"
    assert alice.send("pi-", "x").code == "too_short"
    unknown = alice.send("twinn", "x")
    assert unknown.code == "not_found"
    assert {one.name for one in unknown.nearest} == {"twin", "Twin"}
    ambiguous = alice.send("twin", "x")
    assert (ambiguous.outcome, ambiguous.code, ambiguous.delivery_unknown) == ("refused", "ambiguous", False)
    assert len(ambiguous.candidates) == 2
    assert {alice.send(one.target, "x").outcome for one in ambiguous.candidates} == {"delivered"}


def test_same_message_id_is_delivered_once(make: Make) -> None:
    alice, bob = make("alice"), make("bob")
    assert [alice.send("bob", "x", message_id="m-1").outcome for _ in range(2)] == ["delivered"] * 2
    assert alice.send("bob", "other", message_id="m-1").code == "message_id_reuse"
    assert len([event for event in bob.events(0.2) if isinstance(event, Inbound)]) == 1


def test_staged_message_is_queued_and_replaced(make: Make) -> None:
    alice, bob = make("alice"), make("bob", status="idle")
    options = {"delivery": "queue", "queue_mode": "replace", "thread_id": "t"}
    outcomes = [alice.send("bob", text, **options).outcome for text in ("old", "new")]
    assert outcomes == ["queued", "queued"]
    assert next_event(bob, Inbound).message.content.text == "new"


# ------------------------------------------------------------------ ask


def test_ask_brings_its_reply_back(make: Make) -> None:
    alice, bob = make("alice"), make("bob", accepts_asks=True)
    with in_background(lambda: alice.ask("bob", "which port?", timeout_s=10)) as results:
        question = next_event(bob, Inbound)
        assert question.message.is_ask
        assert bob.reply(None, "8443").outcome == "delivered"
    [answered] = results
    assert (answered.reply.message.content.text, answered.reply.sender, answered.ended_by) == ("8443", "bob", "")
    assert len(bob.pending) == 0


def test_ask_without_a_reply_is_retired_at_its_recipient(make: Make) -> None:
    alice, bob = make("alice"), make("bob", accepts_asks=True)
    answered = alice.ask("bob", "well?", timeout_s=0.2)
    assert (answered.outcome.outcome, answered.ended_by) == ("delivered", "timeout")
    retired = next_event(bob, AskEnded)
    assert (retired.message_id, retired.asker_id) == (answered.outcome.message_id, alice.session_id)
    assert bob.reply(answered.outcome.message_id, "late").code == "no_pending_ask"


def test_ask_of_a_busy_session_is_sent_and_not_waited_for(make: Make) -> None:
    alice, bob = make("alice"), make("bob", accepts_asks=False)
    answered = alice.ask("bob", "well?", timeout_s=30)
    assert (answered.outcome.outcome, answered.ended_by) == ("delivered", "peer_busy")
    assert bob.reply(next_event(bob, Inbound), "when I can").outcome == "delivered"
    assert next_event(alice, Inbound).message.reply_to == answered.outcome.message_id


def test_ask_whose_recipient_leaves_ends_at_once(make: Make) -> None:
    alice, bob = make("alice"), make("bob", accepts_asks=True)
    with in_background(lambda: alice.ask("bob", "well?", timeout_s=30)) as results:
        next_event(bob, Inbound)
        bob.unregister()
    assert results[0].ended_by == "peer_left"
    assert results[0].outcome.outcome == "delivered"


def test_ask_back_while_being_asked_is_a_refused_cycle(make: Make) -> None:
    alice, bob = make("alice", accepts_asks=True), make("bob", accepts_asks=True)
    with in_background(lambda: alice.ask("bob", "first?", timeout_s=10)) as results:
        next_event(bob, Inbound)
        refused = bob.ask("alice", "second?", timeout_s=10)
        assert (refused.outcome.outcome, refused.outcome.code, refused.ended_by) == ("refused", "ask_cycle", "")
        assert bob.reply(None, "yes").outcome == "delivered"
    assert results[0].reply.message.content.text == "yes"


def test_asker_that_leaves_retires_its_question(make: Make) -> None:
    alice, bob = make("alice"), make("bob", accepts_asks=True)
    assert alice.send("bob", "well?", expects_reply=True).outcome == "delivered"
    question = next_event(bob, Inbound)
    alice.unregister()
    next_event(bob, PeerLeft)
    assert bob.reply(question, "late").code == "no_pending_ask"


# ------------------------------------------------------------------ looking


def test_groups_are_seen_as_the_broker_enforces_them(make: Make) -> None:
    lead = make("lead", native_id="lead-1")
    kid = make("kid", environ=child_environment("lead-1"), status="tool:bash")
    make("sibling", environ=child_environment("lead-1"))
    other = make("other")
    seen = {
        one.session_id: build_roster(one.list_sessions(), one.profile, one.session_id) for one in (lead, kid, other)
    }
    assert [one["name"] for one in seen[lead.session_id].mains] == ["other"]
    assert seen[lead.session_id].children["byState"] == {"idle": 0, "busy": 1, "unknown": 1}
    assert [one["name"] for one in seen[kid.session_id].mains] == ["lead"]
    assert seen[kid.session_id].children["total"] == 1
    assert [one["name"] for one in seen[other.session_id].mains] == ["lead"]
    assert seen[other.session_id].children is None
    assert other.send(kid.session_id, "x").code == "not_found"
    assert lead.send("kid", "x").outcome == "delivered"


def test_observer_sees_mains_and_is_not_seen(make: Make) -> None:
    lead, observer = make("lead"), make("watcher", observer=True)
    assert observer.is_observer
    assert "lead" in [one.name for one in observer.list_sessions().rows]
    assert "watcher" not in [one.name for one in lead.list_sessions().rows]
    assert observer.send("lead", "x").outcome == "refused"


def test_presence_is_what_others_see_next(make: Make) -> None:
    alice, bob = make("alice"), make("bob")
    bob.presence(name="robert", status="thinking", accepts_asks=False, pending_asks=3)
    bob.health()
    [row] = [one for one in alice.list_sessions().rows if one.id == bob.session_id]
    assert (row.name, row.status, row.accepts_asks, row.pending_asks) == ("robert", "thinking", False, 3)


def test_counters_balance_and_dead_letters_are_ones_own(make: Make) -> None:
    alice = make("alice")
    make("bob")
    before = alice.stats()["counters"]["delivered"]
    alice.send("bob", "x")
    assert alice.stats()["counters"]["delivered"] == before + 1
    assert alice.dead_letters().letters == ()


# ------------------------------------------------------------------ joining


@pytest.mark.parametrize("kind", [Client, DrivenClient])
def test_stopped_broker_is_told_as_the_last_event(kind: Any) -> None:
    with running_daemon() as own:
        client = kind(profile_from_environment(name="last", environ={}), path=own.socket_path)
        client.connect()
        own.stop()
        assert [type(event) for event in client.events(5.0)] == [ConnectionEnded]
        assert client.send("x", "x").outcome == "not_sent"
        with pytest.raises(NotRunning):
            client.connect()
        (client.close if kind is DrivenClient else client.disconnect)()


@pytest.mark.parametrize("spawn", [True, False])
def test_join_starts_a_broker_only_when_asked_to(spawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with runtime_directory() as directory:
        monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", directory)
        profile = profile_from_environment(name="first", environ={})
        if not spawn:
            with pytest.raises(NotRunning):
                Client.join(profile, spawn=False, places=find_places())
            return
        with Client.join(profile, places=find_places()) as client:
            assert client.broker is not None
            pid = client.broker.pid
            assert [one.name for one in client.list_sessions().rows] == ["first"]
        # Started by us, it leaves by itself when nobody is connected.
        wait_until(lambda: not _is_alive(int(pid)), "the broker to leave", 15.0)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
