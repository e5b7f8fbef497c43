"""Reading a call of the tool: what models send, and what is said about a mistake."""

from __future__ import annotations

import pytest

from intercom_adapters.mcp.calls import BadCall, Call, read_call
from intercom_adapters.mcp.tool import ACTIONS, INPUT_SCHEMA, PARAMETERS

FULL = {
    "list": {"to": "rev", "children": True, "scope": "project", "device": "laptop"},
    "status": {},
    "send": {"to": "reviewer", "message": "hi", "delivery": "queue", "queueMode": "replace", "threadId": "t"},
    "ask": {"to": "reviewer", "message": "why?", "delivery": "steer"},
    "pending": {"entryId": "m1", "offset": 5},
    "reply": {"message": "because", "to": "reviewer", "replyTo": "m1"},
    "last": {"to": "reviewer", "entryId": "e1", "offset": 16384},
}


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_takes_its_parameters(action):
    call = read_call({"action": action, **FULL[action]})
    assert call.action == action


def test_a_call_holds_what_was_given():
    call = read_call({"action": "send", **FULL["send"], "replyTo": "m1", "attachments": [{"name": "a"}]})
    assert call == Call(
        action="send",
        to="reviewer",
        message="hi",
        reply_to="m1",
        options={
            "delivery": "queue",
            "queue_mode": "replace",
            "thread_id": "t",
            "attachments": [{"name": "a"}],
        },
    )


def test_null_and_empty_mean_not_given():
    everything = dict.fromkeys(PARAMETERS) | {"action": "list", "to": "", "children": False, "attachments": []}
    assert read_call(everything) == Call(action="list")
    assert read_call({"action": "last", "to": "a", "offset": 0, "delivery": "", "message": ""}).offset == 0


def test_an_empty_message_is_a_message():
    assert read_call({"action": "send", "to": "a", "message": ""}).message == ""


MISTAKES = [
    ({}, "", "action is missing; give one of list, status, send, ask, pending, reply, last."),
    ({"action": 7}, "", 'action "7" is not known; give one of list, status, send, ask, pending, reply, last.'),
    ({"action": "fly"}, "", 'action "fly" is not known; give one of list, status, send, ask, pending, reply, last.'),
    ({"action": "send", "message": "x"}, "send", "send needs to."),
    ({"action": "ask", "to": "a"}, "ask", "ask needs message."),
    ({"action": "reply"}, "reply", "reply needs message."),
    ({"action": "last"}, "last", "last needs to."),
    ({"action": "status", "to": "a"}, "status", "status takes no to; it takes nothing else."),
    (
        {"action": "last", "to": "a", "delivery": "steer"},
        "last",
        "last takes no delivery; it takes to, entryId, offset.",
    ),
    ({"action": "last", "to": "a", "offset": -1}, "last", "offset is not a whole number from 0 on."),
    ({"action": "last", "to": "a", "offset": True}, "last", "offset is not a whole number from 0 on."),
    ({"action": "list", "children": "yes"}, "list", "children is not true or false."),
    ({"action": "list", "to": ["a"]}, "list", "to is not a string."),
    ({"action": "send", "to": "a", "attachments": "f"}, "send", "attachments is not a list."),
    ({"action": "list", "scope": "all"}, "list", 'scope is "all"; give one of project.'),
    (
        {"action": "send", "to": "a", "message": "x", "delivery": "now"},
        "send",
        'delivery is "now"; give one of steer, queue, passive.',
    ),
]


@pytest.mark.parametrize(("arguments", "action", "reason"), MISTAKES)
def test_a_mistake_says_what_to_give(arguments, action, reason):
    with pytest.raises(BadCall) as raised:
        read_call(arguments)
    assert (raised.value.action, raised.value.reason) == (action, reason)


def test_an_unknown_parameter_is_told_with_those_there_are():
    with pytest.raises(BadCall) as raised:
        read_call({"action": "list", "recipient\x1b": "a"})
    assert raised.value.reason.startswith('intercom has no parameter "recipient␛"; it has action, to, message,')


def test_a_long_wrong_value_is_cut():
    with pytest.raises(BadCall) as raised:
        read_call({"action": "x" * 5000})
    assert len(raised.value.reason) < 250


def test_the_schema_and_the_table_agree():
    named = {name for needed, allowed in ACTIONS.values() for name in (*needed, *allowed)}
    assert named | {"action"} == set(PARAMETERS) == set(INPUT_SCHEMA["properties"])
