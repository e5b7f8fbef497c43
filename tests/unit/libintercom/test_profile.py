"""What a program says about itself: from its environment, and as a registration."""

from __future__ import annotations

import pytest

from libintercom.errors import InvalidLineage, InvalidProfile
from libintercom.identity import peer_id, project_id
from libintercom.profile import Profile, presence_request, profile_from_environment, register_request
from libintercom.wire.messages import Host
from libintercom.wire.record import dump_record

BOTH = {"PI_INTERCOM_ROOT_SESSION_ID": "main-1", "PI_INTERCOM_PARENT_SESSION_ID": "main-1"}


def test_main_is_its_own_root() -> None:
    profile = profile_from_environment(native_id="native-1", cwd="/", environ={})
    assert (profile.root_session_id, profile.parent_session_id) == ("native-1", None)
    assert profile.requested_id == peer_id("native-1")
    assert profile.project_id == project_id("/")
    assert profile.name == "subagent-chat-native-1"


def test_program_in_a_childs_shell_is_that_child() -> None:
    profile = profile_from_environment(native_id="native-2", environ=BOTH, name="tester", status="idle")
    assert (profile.root_session_id, profile.parent_session_id) == ("main-1", "main-1")
    assert (profile.name, profile.status) == ("tester", "idle")


def test_each_call_is_another_session_and_incarnation() -> None:
    one, two = profile_from_environment(environ={}), profile_from_environment(environ={})
    assert one.requested_id != two.requested_id
    assert one.incarnation != two.incarnation


@pytest.mark.parametrize(
    "broken", [{"PI_INTERCOM_PARENT_SESSION_ID": "x"}, {**BOTH, "PI_INTERCOM_ROOT_SESSION_ID": ""}]
)
def test_half_a_lineage_is_no_identity(broken: dict[str, str]) -> None:
    with pytest.raises(InvalidLineage):
        profile_from_environment(environ=broken)


def test_registration_has_every_told_member_in_its_place() -> None:
    host = Host(steer=True, wake=None, turn_end=None, prompt_only=None)
    profile = Profile(
        cwd="/w",
        model="m",
        name="n",
        requested_id="pi-12345678",
        root_session_id="r",
        parent_session_id="r",
        incarnation="i",
        project_id="a" * 64,
        status="idle",
        accepts_asks=True,
        pending_asks=0,
        host=host,
        observer=True,
    )
    assert dump_record(register_request(profile)) == {
        "session": {
            "cwd": "/w",
            "model": "m",
            "name": "n",
            "projectId": "a" * 64,
            "status": "idle",
            "pendingAsks": 0,
            "acceptsAsks": True,
            "rootSessionId": "r",
            "parentSessionId": "r",
            "incarnation": "i",
            "host": {"steer": True},
        },
        "requestedId": "pi-12345678",
        "ext": 1,
        "observer": 1,
    }


def test_registration_is_never_taken_for_the_sibling_dialect() -> None:
    assert register_request(Profile(cwd="/w", model="m")).dialect == "native"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": ""},
        {"status": "a\x1bb"},
        {"project_id": "ZZ"},
        {"root_session_id": " padded"},
        {"parent_session_id": "p"},
        {"root_session_id": "r", "parent_session_id": "p"},
        {"incarnation": ""},
        {"accepts_asks": 1},
    ],
)
def test_registration_that_breaks_a_rule_says_which(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidProfile):
        register_request(Profile(**{"cwd": "/w", "model": "m", **wrong}))


def test_presence_takes_attribute_names() -> None:
    assert dump_record(presence_request({"accepts_asks": False, "context_pct": None})) == {
        "acceptsAsks": False,
        "contextPct": None,
    }
    with pytest.raises(InvalidProfile, match="root_session_id cannot change"):
        presence_request({"root_session_id": "x"})
