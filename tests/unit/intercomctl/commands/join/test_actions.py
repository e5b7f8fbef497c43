"""One scripted line: which action it is, or what is wrong with it and whose it was."""

from __future__ import annotations

import json

import pytest

from intercomctl.commands.join.actions import BadLine, read_action

VALID = [
    ({"action": "send", "to": "a", "text": ""}, {"to": "a", "text": ""}),
    ({"action": "send", "to": "a", "text": "b", "replyTo": "q"}, {"reply_to": "q"}),
    ({"action": "ask", "to": "a", "text": "b", "timeoutMs": 1500}, {"timeout_s": 1.5}),
    ({"action": "reply", "text": "b"}, {"reply_to": None, "to": None}),
    ({"action": "reply", "text": "b", "replyTo": "q", "to": "a"}, {"reply_to": "q", "to": "a"}),
    ({"action": "pending"}, {}),
    ({"action": "list"}, {}),
]


@pytest.mark.parametrize(("said", "fields"), VALID)
def test_an_action_has_the_fields_of_its_line(said, fields):
    action = read_action(json.dumps({**said, "requestId": "r"}))
    assert action.kind == said["action"]
    assert action.request_id == "r"
    assert {name: getattr(action, name) for name in fields} == fields


def test_the_options_of_a_message_keep_the_names_of_the_client():
    said = {
        "action": "send",
        "to": "a",
        "text": "b",
        "messageId": "m",
        "delivery": "queue",
        "queueMode": "replace",
        "threadId": "t",
        "attachments": [{"type": "file", "name": "n", "content": "c"}],
    }
    message = read_action(json.dumps(said)).message
    (attachment,) = message.pop("attachments")
    assert message == {"message_id": "m", "delivery": "queue", "queue_mode": "replace", "thread_id": "t"}
    assert (attachment.type, attachment.name, attachment.content) == ("file", "n", "c")


def test_a_presence_holds_its_changes():
    assert read_action('{"action":"presence","status":"idle","acceptsAsks":false}').changes == {
        "status": "idle",
        "accepts_asks": False,
    }


def test_a_mark_may_be_a_number_or_absent():
    assert read_action('{"action":"list","requestId":7}').request_id == 7
    assert read_action('{"action":"list"}').request_id is None


def test_two_equal_lines_are_two_actions():
    line = '{"action":"list","requestId":"r"}'
    assert read_action(line) != read_action(line)


BAD = [
    ("", "not JSON"),
    ("nonsense", "not JSON"),
    ("[1]", "not a JSON object"),
    ("[" * 100_000, "not JSON"),
    ('{"requestId":"r"}', "action is not one of"),
    ('{"action":"fly","requestId":"r"}', "action is not one of"),
    ('{"action":["send"],"requestId":"r"}', "action is not one of"),
    ('{"action":"send","requestId":"r","to":"a"}', "send needs text"),
    ('{"action":"ask","requestId":"r","text":"a"}', "ask needs to"),
    ('{"action":"reply","requestId":"r"}', "reply needs text"),
    ('{"action":"send","requestId":"r","to":1,"text":"a"}', "to is not a string"),
    ('{"action":"send","requestId":"r","to":null,"text":"a"}', "to is not a string"),
    ('{"action":"send","requestId":"r","to":"a","text":"a","attachments":{}}', "attachments is not a list"),
    ('{"action":"send","requestId":"r","to":"a","text":"a","attachments":[{"type":"image"}]}', "type is not one of"),
    ('{"action":"send","requestId":"r","to":"a","text":"a","timeoutMs":5}', "send takes no timeoutMs"),
    ('{"action":"ask","requestId":"r","to":"a","text":"a","timeoutMs":0}', "timeoutMs is not an integer of 1 to"),
    ('{"action":"ask","requestId":"r","to":"a","text":"a","timeoutMs":3600001}', "timeoutMs is not an integer"),
    ('{"action":"ask","requestId":"r","to":"a","text":"a","timeoutMs":true}', "timeoutMs is not an integer"),
    ('{"action":"list","requestId":"r","to":"a"}', "list takes no to"),
    ('{"action":"presence","requestId":"r"}', "presence needs one of"),
    ('{"action":"presence","requestId":"r","acceptsAsks":"no"}', "acceptsAsks is not true or false"),
    ('{"action":"list","requestId":"r","color":"red"}', "list takes no color"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_a_bad_line_says_what_is_wrong_under_its_own_mark(line, reason):
    with pytest.raises(BadLine, match=reason) as bad:
        read_action(line)
    assert bad.value.request_id == ("r" if '"r"' in line else None)


@pytest.mark.parametrize("mark", ["null", "true", "1.5", "[]", "{}"])
def test_a_mark_is_a_string_or_an_integer(mark):
    line = f'{{"action":"list","requestId":{mark}}}'
    if mark == "null":
        assert read_action(line).request_id is None
    else:
        with pytest.raises(BadLine, match="requestId") as bad:
            read_action(line)
        assert bad.value.request_id is None
