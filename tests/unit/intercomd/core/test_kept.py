"""Late replies: kept for who asked, fetched with a token, never retired before their time (wire.md 9.7)."""

from __future__ import annotations

import pytest

from tests.support.conversation import Conversation
from tests.support.group import KEPT, TOKEN, Group, ack, ask, came, fetch, fetched, keep, queued
from tests.support.sayings import reply, send

LEFT = {"type": "session_left", "sessionId": "<any>"}


class Desk(Group):
    """``cli`` asks ``bob``, both mains with extensions."""

    def join_all(self) -> None:
        self.joins("cli", "cli", ext=1).joins("bob", "bob", ext=1).joins("eve", "eve", ext=1)

    def asked(self, **members: object) -> Desk:
        self.says("cli", keep("bob", **members)).receives("cli")
        self.receives("bob")
        return self

    def left(self, **members: object) -> Desk:
        self.asked(**members).hangs_up("cli")
        self.forgets("bob")
        return self

    def replied(self) -> Desk:
        self.left().says("bob", reply("session-cli", "r1", "q1")).expects("bob", queued("r1", KEPT))
        return self


def test_its_private_members_are_stripped_and_nothing_else() -> None:
    talk = Desk()
    talk.says(
        "cli",
        b'{"type":"send","to":"bob","message":{"id":"q1", "keepReplyMs" : 5000,"timestamp":1.0,"x":{"replyToken":1},'
        b'"replyToken":"' + TOKEN.encode() + b'","content":{"text":"t"},"expectsReply":true}}',
    )
    (payload,) = talk.receives_bytes("bob")
    assert b'"replyToken":1' in payload
    assert TOKEN.encode() not in payload
    assert b"keepReplyMs" not in payload


def test_who_still_waits_simply_gets_its_reply() -> None:
    talk = Desk().asked()
    talk.says("bob", reply("cli", "r1", "q1")).expects("cli", came("r1")).expects(
        "bob", {"type": "delivered", "messageId": "r1"}
    )
    talk.says("eve", fetch()).expects("eve", fetched("unknown"))
    assert talk.kept_items == {}


@pytest.mark.parametrize("to", ["session-cli", "cli", "CLI "])
def test_a_reply_to_who_left_is_kept(to: str) -> None:
    talk = Desk().left()
    talk.says("bob", reply(to, "r1", "q1")).expects("bob", queued("r1", KEPT))
    assert talk.counts() == {"accepted": 2, "delivered": 1, "kept": 1}


def test_a_reply_after_the_time_is_kept_though_the_asker_is_here() -> None:
    talk = Desk().asked(timeoutMs=1_000).after(5.0)
    talk.expects("bob")
    talk.says("bob", reply("cli", "r1", "q1")).expects("bob", queued("r1", KEPT)).expects("cli")
    talk.says("cli", fetch()).expects(
        "cli", fetched("replied", message={"id": "r1", "...": True}, **{"from": {"...": True}})
    )


def test_it_is_fetched_by_who_has_the_token_until_it_is_acknowledged() -> None:
    talk = Desk().replied()
    for _time in range(2):
        talk.says("eve", fetch())
        (answer,) = talk.receives("eve")
        assert (answer["state"], answer["message"]["id"], answer["from"]["name"]) == ("replied", "r1", "bob")
    talk.says("eve", ack(), fetch()).expects("eve", fetched("unknown"))
    assert talk.counts() == {"accepted": 2, "delivered": 1, "fetched": 1}
    assert talk.kept_items == {}


def test_without_the_token_nothing_is_told() -> None:
    talk = Desk().replied()
    talk.says("eve", fetch("f" * 32), fetch(message_id="q2")).expects("eve", fetched("unknown"), fetched("unknown"))
    talk.says("eve", ack("f" * 32)).says("eve", fetch())
    assert talk.receives("eve")[0]["state"] == "replied"


def test_before_the_reply_it_waits() -> None:
    Desk().left().says("eve", ack(), fetch()).expects("eve", fetched("waiting"))


def test_only_the_one_who_was_asked_replies() -> None:
    talk = Desk().left().says("eve", reply("session-cli", "r9", "q1"))
    talk.expects("eve", {"type": "delivery_failed", "code": "not_found", "...": True})


def test_one_who_came_back_as_somebody_else_does_not_reply() -> None:
    talk = Desk().left().hangs_up("bob").joins("thief", "bob", id="session-bob", ext=1, rootSessionId="else")
    talk.says("thief", reply("session-cli", "r1", "q1"))
    talk.expects("thief", {"type": "delivery_failed", "code": "not_found", "...": True})


def test_only_the_first_reply_is_kept() -> None:
    talk = Desk().replied().says("bob", reply("session-cli", "r2", "q1"))
    talk.expects("bob", {"type": "delivery_failed", "code": "not_found", "...": True})


def test_the_same_reply_again_is_answered_the_same() -> None:
    talk = Desk().left()
    talk.spool = "waits"
    talk.says("bob", reply("session-cli", "r1", "q1"), reply("session-cli", "r1", "q1")).expects("bob")
    talk.stores().expects("bob", queued("r1", KEPT), queued("r1", KEPT))
    talk.says("bob", reply("session-cli", "r1", "q1")).expects("bob", queued("r1", KEPT))
    talk.says("bob", reply("session-cli", "r1", "q1", "else"))
    talk.expects("bob", {"type": "delivery_failed", "code": "message_id_reuse", "...": True})


def test_a_reply_that_cannot_be_stored_is_refused_and_may_come_again() -> None:
    talk = Desk().left()
    talk.spool = "fails"
    talk.says("bob", reply("session-cli", "r1", "q1")).expects(
        "bob", {"type": "delivery_failed", "code": "store_failed", "...": True}
    )
    talk.spool = "stores"
    talk.says("bob", reply("session-cli", "r1", "q1")).expects("bob", queued("r1", KEPT))


def test_at_its_end_the_question_is_retired_as_timed_out() -> None:
    talk = Desk().left().after(59.0).expects("bob")
    talk.after(2.0).expects(
        "bob", {"type": "ask_retired", "messageId": "q1", "askerId": "session-cli", "reason": "timeout"}
    )
    talk.says("eve", fetch()).expects("eve", fetched("expired"))
    talk.says("bob", reply("session-cli", "r1", "q1")).expects("bob", {"type": "delivery_failed", "...": True})
    talk.after(3_600.0).says("eve", fetch()).expects("eve", fetched("unknown"))
    assert talk.kept_items == {}


def test_a_reply_that_nobody_fetched_is_a_dead_letter() -> None:
    talk = Desk().replied().after(61.0)
    talk.expects(
        "bob",
        {
            "type": "dead_letter",
            "messageId": "r1",
            "recipientId": "session-cli",
            "reason": "expired",
            "atMs": "<number>",
        },
    )
    assert talk.counts() == {"accepted": 2, "delivered": 1, "dead_expired": 1}


def test_a_reply_that_is_stored_behind_the_end_is_a_dead_letter_too() -> None:
    talk = Desk().left()
    talk.spool = "waits"
    talk.says("bob", reply("session-cli", "r1", "q1")).after(61.0).stores().stores()
    assert [frame["type"] for frame in talk.receives("bob")] == ["delivery_queued", "dead_letter"]
    assert talk.counts()["dead_expired"] == 1


def test_a_question_that_is_taken_back_keeps_nothing() -> None:
    talk = Desk().asked().says("cli", {"type": "cancel_ask", "messageId": "q1"})
    talk.says("eve", fetch()).expects("eve", fetched("unknown"))
    talk.expects("bob", {"type": "ask_retired", "messageId": "q1", "askerId": "session-cli", "reason": "cancelled"})


def test_a_question_that_never_arrived_keeps_nothing() -> None:
    talk = Desk().resets("bob").says("cli", keep("bob"))
    talk.expects("cli", {"type": "delivery_failed", "code": "recipient_left", "...": True}, LEFT)
    talk.says("eve", fetch()).expects("eve", fetched("unknown"))


def test_a_reply_that_was_lost_on_its_way_may_be_kept() -> None:
    talk = Desk().asked().resets("cli").says("bob", reply("cli", "r1", "q1"))
    talk.expects("bob", {"type": "delivery_failed", "code": "recipient_left", "...": True}, LEFT)
    talk.says("bob", reply("session-cli", "r1", "q1")).expects("bob", queued("r1", KEPT))


def test_without_extensions_the_members_are_the_senders_own_affair() -> None:
    talk = Conversation().joins("old", "old").joins("bob", "bob")
    talk.says("old", keep("bob")).expects("bob", came("q1", replyToken=TOKEN))


def test_an_asker_has_so_many_and_all_have_so_many() -> None:
    talk = Desk(kept_asks=1).left().joins("cli2", "cli", id="session-cli", ext=1)
    talk.says("cli2", keep("bob", "q2"))
    talk.expects("cli2", {"type": "delivery_failed", "code": "recipient_full", "rule": "kept_asks", "...": True})
    talk.says("cli2", keep("bob", "q1", text="other"))
    talk.expects("cli2", {"type": "delivery_failed", "code": "message_id_reuse", "...": True})
    small = Desk(kept_asks_total=1).left().says("eve", keep("bob", "q2"))
    small.expects("eve", {"type": "delivery_failed", "rule": "kept_asks_total", "...": True})


def test_replies_have_a_bound_of_bytes() -> None:
    talk = Desk(kept_bytes=3_000).left().says("bob", reply("session-cli", "r1", "q1", "x" * 3_000))
    talk.expects("bob", {"type": "delivery_failed", "rule": "kept_bytes", "...": True})
    talk.says("bob", reply("session-cli", "r2", "q1", "x" * 1_047_000))
    talk.expects("bob", {"type": "delivery_failed", "code": "too_large", "...": True})


@pytest.mark.parametrize("has_reply", [True, False])
def test_a_restart_forgets_neither_question_nor_reply(has_reply: bool) -> None:
    talk = (Desk().replied() if has_reply else Desk().left()).restarted()
    talk.joins("bob", "bob", ext=1).joins("eve", "eve", ext=1)
    if not has_reply:
        talk.says("bob", reply("session-cli", "r1", "q1")).expects("bob", queued("r1", KEPT))
    talk.says("eve", fetch())
    (answer,) = talk.receives("eve")
    assert (answer["state"], answer["message"]["id"]) == ("replied", "r1")
    talk.says("eve", ack())
    assert talk.counts() == {"accepted": 1, "fetched": 1}
    assert talk.kept_items == {}


def test_a_restart_knows_how_long_a_question_has() -> None:
    talk = Desk().left().after(30.0).restarted()
    talk.joins("eve", "eve", ext=1).after(61.0).says("eve", fetch()).expects("eve", fetched("expired"))


def test_a_recovered_reply_without_its_question_was_fetched() -> None:
    talk = Desk().replied()
    for key in [key for key, item in talk.kept_items.items() if item.kind == "ask"]:
        del talk.kept_items[key]
    again = talk.restarted()
    assert again.kept_items == {}
    assert again.counts() == {}


def test_a_plain_ask_keeps_nothing() -> None:
    talk = Desk().says("cli", ask("bob", "q1")).hangs_up("cli").says("bob", reply("session-cli", "r1", "q1"))
    assert talk.receives("bob")[-1]["code"] == "not_found"
    assert talk.says("eve", send("bob", "m1")).counts()["delivered"] == 2
