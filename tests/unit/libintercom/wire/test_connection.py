"""The state tables: complete, closed, and the same conversation at both ends."""

from __future__ import annotations

import itertools

import pytest

from libintercom.wire.answers import ANSWERS
from libintercom.wire.connection import (
    BROKER_TABLE,
    CLIENT_TABLE,
    CLOSED,
    JOINED,
    JOINING,
    LEFT,
    OBSERVING,
    OPEN,
    REGISTERED,
    REJOINING,
    UNREGISTERED,
    next_broker_state,
    next_client_state,
)
from libintercom.wire.requests import REQUESTS, Ignored

SAID = [*REQUESTS, Ignored.type]
CLIENT_STATES = (OPEN, JOINING, JOINED, LEFT, REJOINING)
BROKER_STATES = (UNREGISTERED, REGISTERED, OBSERVING, CLOSED)


def test_tables_know_only_states_and_frames_that_exist() -> None:
    for (state, kind), after in BROKER_TABLE.items():
        assert state in BROKER_STATES
        assert kind in SAID
        assert after in BROKER_STATES
    for (state, step), after in CLIENT_TABLE.items():
        assert state in CLIENT_STATES
        assert step[1:] in (ANSWERS if step[0] == "<" else REQUESTS)
        assert after in (*CLIENT_STATES, CLOSED)


def test_every_frame_has_a_place() -> None:
    assert {kind for _state, kind in BROKER_TABLE} == set(SAID)
    assert {step[1:] for _state, step in CLIENT_TABLE if step[0] == "<"} == set(ANSWERS)


@pytest.mark.parametrize("kind", SAID)
def test_before_registering_only_two_frames_are_no_violation(kind: str) -> None:
    assert (next_broker_state(UNREGISTERED, kind) != CLOSED) == (kind in ("register", "health"))


def test_second_registration_is_a_violation_and_a_later_one_is_not() -> None:
    assert next_broker_state(REGISTERED, "register") == CLOSED
    assert next_broker_state(UNREGISTERED, "register") == REGISTERED
    assert next_broker_state(UNREGISTERED, "register", is_observer=True) == OBSERVING
    assert next_broker_state(OBSERVING, "register", is_observer=True) == CLOSED


@pytest.mark.parametrize("kind", SAID)
def test_observer_looks_and_leaves_only(kind: str) -> None:
    allowed = ("unregister", "list", "health", "stats", "send")
    assert (next_broker_state(OBSERVING, kind) != CLOSED) == (kind in allowed)


@pytest.mark.parametrize("kind", SAID)
def test_closed_stays_closed(kind: str) -> None:
    assert next_broker_state(CLOSED, kind) == CLOSED
    assert next_client_state(CLOSED, f">{kind}") == CLOSED


@pytest.mark.parametrize("kind", ANSWERS)
def test_first_answer_is_registered_or_a_refusal(kind: str) -> None:
    after = next_client_state(JOINING, f"<{kind}")
    assert after == {"registered": JOINED, "health_ok": JOINING}.get(kind, CLOSED)


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_was_on_its_way_to_an_earlier_registration_is_no_violation(kind: str) -> None:
    """A new registration on the same connection follows at once; messages to the old one are not read yet."""
    assert next_client_state(LEFT, f"<{kind}") == (CLOSED if kind in ("registered", "error") else LEFT)
    after = next_client_state(REJOINING, f"<{kind}")
    assert after == {"registered": JOINED, "error": CLOSED}.get(kind, REJOINING)


def test_second_registered_is_a_violation() -> None:
    assert next_client_state(JOINED, "<registered") == CLOSED
    assert next_client_state(OPEN, "<registered") == CLOSED


def test_what_a_client_may_say_the_broker_takes() -> None:
    """Every sequence of up to five steps that the client's table allows, answered at once, is none to the broker."""
    count = 0
    for length in range(1, 6):
        for kinds in itertools.product(REQUESTS, repeat=length):
            client, broker = OPEN, UNREGISTERED
            for kind in kinds:
                client = next_client_state(client, f">{kind}")
                if client == CLOSED:
                    break
                broker = next_broker_state(broker, kind)
                assert broker != CLOSED, kinds
                if kind == "register":
                    client = next_client_state(client, "<registered")
                assert (client == JOINED) == (broker == REGISTERED), kinds
                count += 1
    assert count > 50_000
