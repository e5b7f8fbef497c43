"""What both clients have before they have a connection, and when another attempt is worth it."""

from __future__ import annotations

import pytest

from libintercom.aio import AsyncClient
from libintercom.client import Client
from libintercom.errors import Busy, NotRegistered, NotRunning
from libintercom.inbound import PeerLeft
from libintercom.member import Member, is_passing, retry_pauses_s
from libintercom.profile import Profile

PROFILE = Profile(cwd="/work", model="m")


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_have_the_same_names() -> None:
    assert public_names(Client) == public_names(AsyncClient)
    assert {"connect", "join", "send", "ask", "reply", "list_sessions", "events", "disconnect"} <= public_names(Client)


def test_before_joining_nothing_is_claimed() -> None:
    member = Member(PROFILE, path="/nowhere")
    claims = (member.session_id, member.broker, member.has_ext, member.is_connected, member.is_observer)
    assert claims == ("", None, False, False, False)
    assert member.profile == PROFILE
    assert len(member.pending) == 0


def test_pauses_are_few_and_within_their_bounds() -> None:
    for _ in range(50):
        pauses = retry_pauses_s()
        assert len(pauses) == 3
        assert all(0.05 <= pause <= 0.25 for pause in pauses)


@pytest.mark.parametrize(
    ("error", "may_start", "is_worth_it"),
    [
        (NotRegistered("closed", is_retryable=True), False, True),
        (NotRegistered("refused"), True, False),
        (NotRunning("/p", "no socket"), True, True),
        (NotRunning("/p", "no socket"), False, False),
        (Busy("/p", "full"), True, False),
    ],
)
def test_attempt_is_repeated_only_when_the_failure_may_pass(
    error: Exception, may_start: bool, is_worth_it: bool
) -> None:
    assert is_passing(error, may_start=may_start) is is_worth_it


def test_unread_events_outlive_a_reconnection_and_a_changed_description() -> None:
    member = Member(PROFILE, path="/nowhere")
    member._exchange.mailroom.add(PeerLeft(session_id="x"))
    member._exchange.profile = PROFILE.replace(name="other")
    member._begin_exchange()
    assert member._exchange.mailroom.take() == PeerLeft(session_id="x")
    assert member.profile.name == "other"
