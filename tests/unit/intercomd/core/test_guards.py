"""Guarded sends: delivered when every part of the binding is right, else refused by the first thing that is wrong."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercomd.core import guards
from tests.support.conversation import Conversation
from tests.support.covering import covers
from tests.support.sayings import list_sessions, presence, register, send

GUARD = {"rootSessionId": "root-b", "peerId": "session-b", "incarnation": "i1", "applicationGuard": "v1"}
HINT = {"tool": "publish", "commandId": "00000000-0000-4000-8000-00000000000a"}
MAIN = {"rootSessionId": "root-b", "incarnation": "i1", "applicationGuard": "v1"}
UUID = "00000000-0000-4000-8000-0000000000ff"


def pair(**target: Any) -> Conversation:
    members = {"guardedDelivery": 1, **MAIN, **target}
    talk = Conversation().joins("a", "alice", guardedDelivery=1).joins("b", "bob", **members)
    talk.receives("a")
    return talk


def guarded(message_id: str = "m1", to: str = "session-b", **members: Any) -> dict[str, Any]:
    told = {"expectsReply": False, "delivery": "steer", "guard": GUARD, **members}
    return send(to, message_id, **told)


def outcome(talk: Conversation, frame: dict[str, Any], conn: str = "a") -> str:
    """The code of the refusal, or ``delivered``; never anything else, and never more than one answer."""
    answers = [answer for answer in talk.says(conn, frame).receives(conn) if answer["type"].startswith("deliver")]
    assert len(answers) == 1, answers
    arrived = [answer for answer in talk.receives("b") if answer["type"] == "message"]
    assert len(arrived) == (answers[0]["type"] == "delivered"), arrived
    return str(answers[0].get("code", answers[0]["type"]))


def test_a_message_for_this_very_context_is_delivered_with_its_guard() -> None:
    talk = pair().says("a", guarded(replyHint=HINT))
    (arrived,) = talk.receives("b")
    assert arrived["message"]["guard"] == GUARD
    assert arrived["message"]["replyHint"] == HINT
    talk.expects("a", {"type": "delivered", "messageId": "m1"})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"rootSessionId": "root-x"}, "guard_target"),
        ({"incarnation": "i0"}, "guard_stale"),
        ({"applicationGuard": "v0"}, "guard_stale"),
    ],
)
def test_each_member_that_does_not_fit_is_refused(change: dict[str, str], code: str) -> None:
    assert outcome(pair(), guarded(guard={**GUARD, **change})) == code


def test_a_guard_must_be_whole() -> None:
    talk = pair()
    for number, guard in enumerate([None, {}, 5, {**GUARD, "incarnation": ""}, {**GUARD, "peerId": "session-a"}]):
        frame = guarded(f"m{number}")
        frame["message"]["guard"] = guard
        assert outcome(talk, frame) == "guard_invalid"
    for number, name in enumerate(GUARD):
        guard = {key: value for key, value in GUARD.items() if key != name}
        assert outcome(talk, guarded(f"n{number}", guard=guard)) == "guard_invalid"


def test_a_hint_without_guard_is_refused_as_such() -> None:
    assert outcome(pair(), send("session-b", "m1", replyHint=HINT)) == "guard_invalid"


def test_a_sender_that_did_not_negotiate_is_refused_whoever_it_is_for() -> None:
    talk = pair().joins("c", "carol", ext=1)
    for to in ("session-b", "session-x"):
        frame = guarded(f"m-{to}", to, guard={**GUARD, "peerId": to})
        assert outcome(talk, frame, "c") == "guard_unsupported"


def test_a_target_is_meant_exactly() -> None:
    """Names, prefixes, other letter case and spaces select nobody, though an ordinary send would find bob."""
    talk = pair()
    for number, to in enumerate(("bob", "session-B", " session-b", "session-b ", "session-")):
        assert outcome(talk, guarded(f"m{number}", to, guard={**GUARD, "peerId": to})) == "not_found"


def test_a_hidden_target_is_byte_for_byte_an_unknown_one() -> None:
    talk = pair(parentSessionId="root-b").joins("c", "carol", guardedDelivery=1)
    talk.says("a", guarded("m1"), guarded("m2", "session-x", guard={**GUARD, "peerId": "session-x"}))
    hidden, unknown = talk.receives_bytes("a")
    assert hidden.replace(b"m1", b"m2") == unknown


def test_nobody_guards_a_message_to_itself() -> None:
    talk = pair()
    frame = guarded(to="session-a", guard={**GUARD, "peerId": "session-a"})
    assert outcome(talk, frame) == "self_target"


def test_a_child_is_no_target_even_in_its_own_group() -> None:
    talk = pair(parentSessionId="root-b").joins("m", "main", guardedDelivery=1, rootSessionId="root-b")
    assert outcome(talk, guarded(), "m") == "guard_target"


def test_a_recipient_that_did_not_negotiate_gets_nothing() -> None:
    assert outcome(pair(guardedDelivery=None), guarded()) == "guard_unsupported"
    assert outcome(pair(guardedDelivery=2), guarded()) == "guard_unsupported"


def test_two_mains_of_one_root_are_one_too_many() -> None:
    talk = pair().joins("c", "carol", rootSessionId="root-b")
    assert outcome(talk, guarded("m1")) == "guard_ambiguous_root"
    talk.hangs_up("c")
    assert outcome(talk, guarded("m2")) == "delivered"


def test_a_child_of_that_root_makes_nothing_ambiguous() -> None:
    talk = pair().joins("c", "carol", rootSessionId="root-b", parentSessionId="root-b", guardedDelivery=1)
    assert outcome(talk, guarded("m1")) == "delivered"
    assert outcome(talk, guarded("m2"), "c") == "delivered"


@pytest.mark.parametrize("word", ["v2", None])
def test_consent_that_changed_is_stale(word: str | None) -> None:
    talk = pair().says("b", {"type": "presence", "applicationGuard": word})
    assert outcome(talk, guarded("m1")) == "guard_stale"
    talk.says("b", presence(applicationGuard="v1"))
    assert outcome(talk, guarded("m2")) == "delivered"


def test_another_presence_keeps_the_consent_and_a_new_registration_does_not() -> None:
    talk = pair().says("b", presence(status="idle"))
    assert outcome(talk, guarded("m1")) == "delivered"
    again = {**MAIN, "applicationGuard": None}
    talk.says("b", {"type": "unregister"}, register("bob", id="session-b", guardedDelivery=1, **again))
    assert outcome(talk, guarded("m2")) == "guard_stale"


def test_consent_is_withdrawn_at_once_however_busy_its_session_is() -> None:
    """Other presence is merged and late when its budget is used up; admission must not go on meanwhile."""
    talk = Conversation(input_burst_bytes=2_000, input_bytes_per_s=1.0)
    talk.joins("a", "alice", guardedDelivery=1).joins("b", "bob", guardedDelivery=1, **MAIN)
    talk.says("b", send("nobody", "m0", "x" * 2_500), presence(status="busy"))
    talk.says("b", {"type": "presence", "applicationGuard": None}, presence(status="idle"))
    talk.receives("a")
    assert outcome(talk, guarded()) == "guard_stale"
    talk.after(2.1)
    assert talk.router.state.roster.sessions["session-b"].registered.status == "idle"
    assert outcome(talk, guarded("m2")) == "guard_stale"


def test_without_negotiation_consent_means_nothing() -> None:
    talk = Conversation().joins("a", "alice", guardedDelivery=1).joins("b", "bob", **MAIN)
    talk.says("b", presence(applicationGuard="v1")).says("a", list_sessions())
    rows = {row["id"]: row for row in talk.receives("a")[-1]["sessions"]}
    assert rows["session-b"]["incarnation"] == "i1"
    assert not {"applicationGuard", "guardedDelivery"} & rows["session-b"].keys()
    assert outcome(talk, guarded()) == "guard_unsupported"


def test_rows_tell_only_those_who_negotiated() -> None:
    shown = {"rootSessionId", "incarnation", "guardedDelivery", "applicationGuard"}
    talk = pair(ext=1).joins("c", "carol", ext=1).joins("d", "dora").joins("e", guardedDelivery=1, observer=1, id=None)
    for conn, members in (("a", shown), ("c", {"rootSessionId", "incarnation"}), ("d", set()), ("e", shown)):
        (answer,) = talk.says(conn, list_sessions()).receives(conn)
        (row,) = [row for row in answer["sessions"] if row["id"] == "session-b"]
        assert row.keys() & shown == members, conn
    talk.says("b", *[send(f"session-{conn}", f"m-{conn}") for conn in "acd"])
    for conn, members in (("a", shown), ("c", {"rootSessionId", "incarnation"}), ("d", set())):
        (arrived,) = [frame for frame in talk.receives(conn) if frame["type"] == "message"]
        assert arrived["from"].keys() & shown == members, conn


def test_a_repeat_is_answered_as_before_though_the_guard_is_stale_by_now() -> None:
    """To say that nothing was delivered would be untrue."""
    talk = pair()
    assert outcome(talk, guarded()) == "delivered"
    talk.says("b", {"type": "presence", "applicationGuard": None}).says("a", guarded())
    talk.expects("a", {"type": "delivered", "messageId": "m1"}).expects_nothing("b")
    assert outcome(talk, guarded("m2")) == "guard_stale"


# From the last check to the first: what goes wrong, and the code by then.
TROUBLES = [
    ("guard_stale", {}, {"incarnation": "i2"}, {}),
    ("guard_ambiguous_root", {"twin": True}, {}, {}),
    ("guard_unsupported", {}, {"guardedDelivery": None}, {}),
    ("guard_target", {}, {"rootSessionId": "root-y"}, {}),
    ("not_found", {"absent": True}, {}, {}),
    ("guard_unsupported", {"plain": True}, {}, {}),
    ("guard_invalid", {}, {}, {"expectsReply": True}),
]


@covers("9.3-order")
def test_the_checks_come_in_the_order_of_the_reference() -> None:
    """With every trouble that a check can have, the first check that finds one decides."""
    for count in range(1, len(TROUBLES) + 1):
        around: dict[str, Any] = {}
        target: dict[str, Any] = dict(MAIN, guardedDelivery=1)
        members: dict[str, Any] = {}
        for _code, more_around, more_target, more_members in TROUBLES[:count]:
            around.update(more_around)
            target.update(more_target)
            members.update(more_members)
        talk = Conversation().joins("a", "alice", **({} if "plain" in around else {"guardedDelivery": 1}))
        talk.connects("b")
        if "absent" not in around:
            talk.joins("b", "bob", **target)
        if "twin" in around:
            talk.joins("c", "carol", rootSessionId="root-b")
        assert outcome(talk, guarded(**members)) == TROUBLES[count - 1][0], TROUBLES[:count]


# -- no downgrade --------------------------------------------------------------------------------------------

_MEMBER = st.sampled_from(["right", "wrong", "empty", "null", "missing", "number"])
_BAD = {"wrong": "wrong", "empty": "", "null": None, "number": 5}


def _guard(forms: dict[str, str]) -> dict[str, Any]:
    made = {}
    for name, form in forms.items():
        if form != "missing":
            made[name] = GUARD[name] if form == "right" else _BAD[form]
    return made


def _everything_right(forms: dict[str, str], situation: dict[str, bool], to: str, form: dict[str, Any]) -> bool:
    is_whole = all(value == "right" for value in forms.values())
    return is_whole and not any(situation.values()) and to == "session-b" and form == {}


def _case() -> st.SearchStrategy[Any]:
    situation = st.fixed_dictionaries(
        {name: st.booleans() for name in ("plain sender", "plain recipient", "twin", "withdrawn", "child", "renewed")}
    )
    forms = st.fixed_dictionaries(dict.fromkeys(GUARD, _MEMBER))
    to = st.sampled_from(["session-b", "bob", "session-", " session-b", UUID])
    form = st.sampled_from(
        [{}, {"expectsReply": None}, {"delivery": None}, {"replyTo": "m0"}, {"delivery": "queue", "queueMode": "stack"}]
    )
    return st.tuples(forms, situation, to, form)


def _play(case: Any) -> tuple[bool, bool]:
    """Whether everything was right, and whether anything was delivered to anybody."""
    forms, situation, to, form = case
    target = {"guardedDelivery": None if situation["plain recipient"] else 1, **MAIN}
    if situation["child"]:
        target["parentSessionId"] = "root-b"
    if situation["withdrawn"]:
        target["applicationGuard"] = None
    if situation["renewed"]:
        target["incarnation"] = "i2"
    sender = {} if situation["plain sender"] else {"guardedDelivery": 1}
    lineage = {"rootSessionId": "root-b"} if situation["child"] else {}
    talk = Conversation().joins("a", "alice", **sender, **lineage).joins("b", "bob", **target)
    talk.joins("d", "session-other")
    if situation["twin"]:
        talk.joins("c", "bob", rootSessionId="root-b", guardedDelivery=1)
    talk.says("a", guarded("m1", to, **{"guard": _guard(forms), **form}))
    everybody = "bdc" if situation["twin"] else "bd"
    arrived = [frame for conn in everybody for frame in talk.receives(conn) if frame["type"] == "message"]
    assert all(frame["message"]["id"] == "m1" for frame in arrived)
    return _everything_right(forms, situation, to, form), bool(arrived)


RIGHT = (dict.fromkeys(GUARD, "right"), dict.fromkeys(("plain sender", "plain recipient"), False), "session-b", {})
QUIET = ("twin", "withdrawn", "child", "renewed")


@covers("9.3-no-downgrade")
@settings(max_examples=400, deadline=None)
@given(_case())
def test_a_message_is_never_downgraded(case: Any) -> None:
    """Whatever is wrong, stale or missing: nothing is delivered unless everything fits."""
    is_right, is_delivered = _play(case)
    assert is_delivered == is_right


def _one_wrong() -> list[Any]:
    """Every case in which exactly one thing is wrong."""
    forms, situation = dict(RIGHT[0]), {**RIGHT[1], **dict.fromkeys(QUIET, False)}
    # The form first: with a planted bug the others would break on a guard that is none.
    cases: list[Any] = [(forms, situation, "session-b", form) for form in ({"delivery": None}, {"replyTo": "m0"})]
    cases += [({**forms, name: form}, situation, "session-b", {}) for name, form in itertools.product(forms, _BAD)]
    cases += [({**forms, name: "missing"}, situation, "session-b", {}) for name in forms]
    cases += [(forms, {**situation, name: True}, "session-b", {}) for name in situation]
    cases += [(forms, situation, to, {}) for to in ("bob", "session-")]
    return cases


def test_each_single_fault_is_enough() -> None:
    situation = {**RIGHT[1], **dict.fromkeys(QUIET, False)}
    assert _play((RIGHT[0], situation, "session-b", {})) == (True, True)
    _find_downgrade()


def _find_downgrade() -> None:
    for case in _one_wrong():
        is_right, is_delivered = _play(case)
        assert is_delivered == is_right, f"downgraded: {case}"


def _anybody(roster: Any, _sender: Any, frame: Any) -> Any:
    return roster.sessions.get(frame.to) or next(iter(roster.sessions.values()))


def _nothing(*_given: Any) -> None:
    return None


PLANTED = {
    "a stale context is no matter": {"find_fault": _nothing},
    "a wrong guard is dropped": {"aim": _anybody, "find_fault": _nothing},
    "the form is no matter": {"guard_fault": lambda *_given: ""},
}


@pytest.mark.parametrize("bug", PLANTED)
def test_the_property_catches_a_downgrade(bug: str) -> None:
    with patch.multiple(guards, **PLANTED[bug]), pytest.raises(AssertionError, match="downgraded"):
        _find_downgrade()
