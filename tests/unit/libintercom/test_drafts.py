"""The message that is made of a caller's words (what may not leave is in ``test_sending``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from libintercom.drafts import choose_id, draft_message
from libintercom.errors import InvalidMessage
from libintercom.wire.record import dump_record

if TYPE_CHECKING:
    from libintercom.drafts import SendOptions


@pytest.mark.parametrize(
    ("options", "members"),
    [
        ({}, {"delivery": "steer"}),
        ({"delivery": "passive"}, {"delivery": "passive"}),
        ({"expects_reply": True}, {"expectsReply": True}),
        ({"expects_reply": True, "delivery": "queue"}, {"expectsReply": True, "delivery": "queue"}),
        ({"expects_reply": False}, {"expectsReply": False, "delivery": "steer"}),
        ({"delivery": None, "reply_to": None}, {"delivery": "steer"}),
        ({"delivery": "queue", "queue_mode": "stack"}, {"delivery": "queue", "queueMode": "stack"}),
    ],
)
def test_defaults(options: dict[str, object], members: dict[str, object]) -> None:
    drafted = draft_message("m1", 5, "hi", options)  # type: ignore[arg-type]
    assert dump_record(drafted) == {"id": "m1", "timestamp": 5, "content": {"text": "hi"}, **members}


def test_text_may_be_missing_beside_attachments_and_empty_alone() -> None:
    attached = {"type": "file", "name": "a", "content": "x"}
    assert draft_message("m1", 5, None, {"attachments": [attached]}).content.text == ""
    assert draft_message("m1", 5, "", {}).content.text == ""
    with pytest.raises(InvalidMessage):
        draft_message("m1", 5, None, {"attachments": []})


def test_lone_surrogates_and_line_ends_stay_as_they_are() -> None:
    assert draft_message("m1", 5, "a\ud83d\r\n\tb", {}).content.text == "a\ud83d\r\n\tb"


@pytest.mark.parametrize(
    ("options", "chosen"), [({}, "fresh"), ({"message_id": None}, "fresh"), ({"message_id": ""}, "")]
)
def test_an_empty_message_id_is_never_replaced(options: SendOptions, chosen: str) -> None:
    """It is refused like any other that breaks the rule, by ``draft_message``."""
    assert choose_id(options, lambda: "fresh") == chosen
