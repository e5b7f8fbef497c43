"""The recipient's own check of a guard."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.session.guards import OwnContext, find_fault
from tests.support.inbox_rig import inbound

GUARD = {"rootSessionId": "root-1", "peerId": "pi-me", "incarnation": "i1", "applicationGuard": "rev-1"}
OWN: dict[str, Any] = {
    "root_session_id": "root-1",
    "peer_id": "pi-me",
    "incarnation": "i1",
    "application_guard": "rev-1",
    "is_main": True,
    "is_live": True,
    "is_negotiated": True,
}


def guarded(guard: Any = GUARD, **members: Any) -> Any:
    given = {"expectsReply": False, "delivery": "steer", "guard": guard, **members}
    return inbound("m1", **{name: value for name, value in given.items() if value is not None}).message


def code_of(message: Any, **own: Any) -> str:
    context = {name: value for name, value in {**OWN, **own}.items() if value is not None}
    fault = find_fault(message, OwnContext(**context))
    return fault.code if fault else ""


def test_a_guard_that_fits_is_admitted():
    assert code_of(guarded()) == ""


def test_an_ordinary_message_has_nothing_to_fit():
    assert code_of(inbound("m1").message, is_main=False, is_live=False, application_guard=None) == ""


@pytest.mark.parametrize("member", sorted(GUARD))
@pytest.mark.parametrize("value", [None, "", 7])
def test_a_guard_without_one_of_its_members_is_invalid(member, value):
    broken = {name: value if name == member else was for name, was in GUARD.items()}
    if value is None:
        del broken[member]
    assert code_of(guarded(broken)) == "guard_invalid"


@pytest.mark.parametrize(
    "members", [{"expectsReply": True}, {"expectsReply": None}, {"delivery": None}, {"replyTo": "m0"}, {"guard": 7}]
)
def test_a_guarded_message_of_another_form_is_invalid(members):
    assert code_of(guarded(**{"guard": GUARD, **members})) == "guard_invalid"


def test_a_hint_without_a_guard_is_invalid():
    hint = {"tool": "publish", "commandId": "0a1b2c3d-0000-4000-8000-00000000000a"}
    assert code_of(guarded(None, replyHint=hint)) == "guard_invalid"


@pytest.mark.parametrize(
    ("own", "code"),
    [
        ({"is_main": False}, "guard_target"),
        ({"peer_id": "pi-other"}, "guard_target"),
        ({"root_session_id": "root-2"}, "guard_target"),
        ({"is_negotiated": False}, "guard_unsupported"),
        ({"is_live": False}, "guard_stale"),
        ({"incarnation": "i2"}, "guard_stale"),
        ({"application_guard": None}, "guard_stale"),
        ({"application_guard": "rev-2"}, "guard_stale"),
    ],
)
def test_what_does_not_fit_has_its_code(own, code):
    assert code_of(guarded(), **own) == code


def test_faults_are_found_in_order():
    all_wrong = {"is_main": False, "is_negotiated": False, "is_live": False, "application_guard": None}
    assert code_of(guarded(7), **all_wrong) == "guard_invalid"
    assert code_of(guarded(), **all_wrong) == "guard_target"
    assert code_of(guarded(), **{**all_wrong, "is_main": True}) == "guard_unsupported"
    assert code_of(guarded(), **{**all_wrong, "is_main": True, "is_negotiated": True}) == "guard_stale"
