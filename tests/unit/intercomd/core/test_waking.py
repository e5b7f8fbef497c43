"""Who is asked to wake a parked child, when, and what a failed wake does to those who wait (wire.md 9.5)."""

from __future__ import annotations

from tests.support.group import ROOT, TOKEN, Group, ask, came, park, queued, wakes, woke
from tests.support.sayings import send

REGISTERED = {"type": "registered", "...": True}


def test_each_message_that_is_not_passive_asks_for_a_wake() -> None:
    talk = Group().has_parked().says("sib", send("child-001", "m1"), send("child-001", "m2"))
    talk.expects("main", wakes("m1", 1), wakes("m2", 2))


def test_a_main_that_registers_is_asked_once_for_each_child_with_input() -> None:
    talk = Group().has_parked().has_parked_second()
    talk.hangs_up("main").says("sib", send("child-001", "m1"), send("child-001", "m2"), send("child-003", "m3"))
    talk.says("sib", send("child-004", "m4", passive=True))
    talk.says("new", {"type": "register", "session": {"cwd": "/", "model": "m", "rootSessionId": ROOT}, "ext": 1})
    talk.expects("new", REGISTERED, wakes("m1", 1), wakes("m3", 1, "child-003"))


def test_the_main_that_parked_it_is_asked() -> None:
    talk = Group().joins("second", "deputy", id="main-0000", ext=1, rootSessionId=ROOT).has_parked()
    talk.says("sib", send("child-001", "m1")).expects("main", wakes("m1", 1)).expects("second")
    talk.hangs_up("main").says("sib", send("child-001", "m2")).forgets("second").says(
        "sib", send("child-001", "m3")
    ).expects("second", wakes("m3", 3))


def test_a_failed_wake_ends_the_wait_but_not_the_question() -> None:
    talk = Group().child_comes("asker", "child-009").has_parked()
    talk.receives("asker")
    talk.says("asker", ask("child-001", "q1")).expects("asker", queued("q1"))
    assert talk.router.state.asks.waiting == 1
    talk.says("main", woke(1, "failed", reason="no such binary"))
    talk.expects("asker", {"type": "wake_failed", "messageId": "q1", "reason": "no such binary"})
    assert (talk.router.state.asks.waiting, len(talk.router.state.asks)) == (0, 1)
    failure = talk.row("asker")["lastWakeFailure"]
    assert failure["reason"] == "no such binary"
    # Nothing is retired when the old time is over, and a late answer still is one.
    talk.after(300.0).child_comes().expects("kid", REGISTERED, came("q1"))
    talk.says("kid", send("child-009", "r1", replyTo="q1")).receives("kid")
    talk.expects("asker", came("r1"))
    assert talk.router.obligations.ended == {"replied": 1}


def test_a_failed_wake_for_several_ends_the_wait_of_all_of_them() -> None:
    talk = Group().child_comes("x", "child-008").child_comes("y", "child-009").has_parked().hangs_up("main")
    talk.says("x", ask("child-001", "q1")).says("y", ask("child-001", "q2"))
    talk.says("new", {"type": "register", "session": {"cwd": "/", "model": "m", "rootSessionId": ROOT}, "ext": 1})
    talk.receives("x")
    talk.receives("y")
    attempt = talk.receives("new")[-1]["attempt"]
    talk.says("new", woke(attempt, "failed"))
    reason = "its main gave no reason"
    talk.expects("x", {"type": "wake_failed", "messageId": "q1", "reason": reason})
    talk.expects("y", {"type": "wake_failed", "messageId": "q2", "reason": reason})


def test_an_outcome_counts_once_and_from_its_main_only() -> None:
    talk = (
        Group().child_comes("asker", "child-009").has_parked().joins("o", id="main-0002", ext=1, rootSessionId="else")
    )
    talk.says("asker", ask("child-001", "q1")).receives("asker")
    for conn in ("o", "asker"):
        talk.says(conn, woke(1, "failed")).expects(conn)
    talk.says("main", woke(7, "failed")).expects("asker")
    talk.says("main", woke(1), woke(1, "failed")).expects("asker")
    assert "lastWakeFailure" not in talk.row("main")


def test_a_later_message_asks_again_and_a_started_wake_clears_the_failure() -> None:
    talk = Group().has_parked().says("sib", send("child-001", "m1")).says("main", woke(1, "failed", reason="x"))
    talk.says("sib", send("child-001", "m2")).expects("main", wakes("m1", 1), wakes("m2", 2))
    assert talk.row("main")["lastWakeFailure"]["reason"] == "x"
    talk.says("main", woke(2))
    assert "lastWakeFailure" not in talk.row("main")


def test_an_outcome_that_comes_when_it_is_back_changes_nothing() -> None:
    talk = Group().child_comes("asker", "child-009").has_parked().says("asker", ask("child-001", "q1"))
    talk.child_comes().receives("asker")
    talk.says("main", woke(1, "failed")).expects("asker")
    assert talk.router.state.asks.waiting == 1


def test_an_asker_without_extensions_is_not_told_by_a_frame_it_does_not_know() -> None:
    talk = Group().has_parked().says("sib", ask("child-001", "q1")).expects("sib", queued("q1"))
    talk.says("main", woke(1, "failed")).expects("sib").expects_open("sib")
    assert talk.router.state.asks.waiting == 0


def test_a_kept_ask_goes_through_parking_without_its_token() -> None:
    talk = Group().has_parked()
    talk.says("main", ask("child-001", "q1", keepReplyMs=60_000, replyToken=TOKEN)).says("main", park()).child_comes()
    talk.expects("kid", REGISTERED, came("q1", replyToken="<absent>", keepReplyMs="<absent>"))
