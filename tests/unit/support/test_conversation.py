"""Conversations themselves: what they deliver, what they hold back, and that an expectation can fail."""

from __future__ import annotations

import pytest

from intercomd.core import events
from tests.support.conversation import Conversation
from tests.support.sayings import list_sessions, register, replace, send

ANY = {"...": True}


@pytest.fixture
def talk() -> Conversation:
    return Conversation().joins("a", "alice").joins("b", "bob", status="idle")


def test_a_message_is_seen_at_both_ends(talk: Conversation):
    talk.says("a", send("bob", "m1"))
    talk.expects("b", {"type": "message", **ANY}).expects("a", {"type": "delivered", "messageId": "m1"})
    talk.expects_nothing()


@pytest.mark.parametrize("patterns", [(), ({"type": "delivered", "messageId": "m2"},), (ANY, ANY)])
def test_a_wrong_expectation_fails(talk: Conversation, patterns: tuple[object, ...]):
    talk.says("a", send("bob", "m1"))
    with pytest.raises(AssertionError):
        talk.expects("a", *patterns)


def test_a_kernel_that_takes_nothing_holds_the_message(talk: Conversation):
    talk.holds("b", 3).says("a", send("bob", "m1")).expects("a", {"type": "delivery_queued", **ANY})
    talk.expects_nothing("b")
    talk.reads("b").expects("b", {"type": "message", **ANY})


def test_a_reset_is_noticed_at_the_next_write(talk: Conversation):
    talk.resets("b").says("a", send("bob", "m1"))
    talk.expects("a", {"type": "delivery_failed", "code": "recipient_left", **ANY}, {"type": "session_left", **ANY})


def test_time_fires_deadlines_at_their_moment(talk: Conversation):
    talk.says("a", replace("bob", "m1", "t")).expects("a", {"type": "delivery_queued", **ANY})
    talk.after(1.4).expects_nothing("b")
    talk.after(0.2).expects("b", {"type": "message", **ANY})


def test_frames_behind_a_bad_one_are_not_read(talk: Conversation):
    talk.says("a", b"{", send("bob", "m1")).expects_closed("a").expects_open("b")
    talk.expects("b", {"type": "session_left", **ANY})


def test_a_paused_backlog_is_accepted_later():
    talk = Conversation(max_unregistered=1).connects("a", "b")
    assert talk.is_accepted("a")
    assert not talk.is_accepted("b")
    talk.says("b", list_sessions()).says("a", register("alice")).expects("a", {"type": "registered", **ANY})
    assert talk.is_accepted("b")
    talk.expects_closed("b")


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_spool_that_waits_is_answered_for_by_hand(talk: Conversation, is_stored: bool):
    talk.joins("c", "carol", ext=1).says("c", replace("bob", "m1", "t")).expects("c", ANY)
    talk.spool = "waits"
    talk.hangs_up("b").expects("c", {"type": "session_left", **ANY})
    talk.stores(is_stored=is_stored).expects("c", {"type": "dead_letter", "messageId": "m1", **ANY})


def test_a_stop_ends_everything(talk: Conversation):
    talk.happens(events.StopRequested("SIGTERM")).expects_closed("a", "b")
    assert talk.exit is not None
    assert talk.exit.status == 0
