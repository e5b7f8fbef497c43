"""Who may park, what a parked child looks like, and who may come back as it (wire.md 9.5)."""

from __future__ import annotations

import pytest

from tests.support.conversation import Conversation
from tests.support.group import ROOT, Group, came, park, queued, unpark, wakes
from tests.support.sayings import send

DAY_S = 86_400.0
LEFT = {"type": "session_left", "sessionId": "child-001"}


def failed(code: str, child: str = "child-001") -> dict[str, str]:
    return {"type": "park_failed", "childId": child, "code": code}


def test_a_child_that_left_may_be_parked() -> None:
    talk = Group().child_comes().hangs_up("kid")
    talk.receives("sib")
    talk.says("main", park()).expects("main", {"type": "parked", "childId": "child-001"})
    assert talk.row("main")["status"] == "parked"


def test_nobody_hears_of_a_leaving_that_is_a_parking() -> None:
    talk = Group().child_comes()
    talk.says("main", park()).says("kid", send("sister", "m1")).receives("sib")
    talk.hangs_up("kid").expects_nothing("sib")
    assert talk.row("sib")["status"] == "parked"


def test_without_parking_a_leaving_is_told() -> None:
    talk = Group().child_comes().hangs_up("kid")
    talk.expects("sib", {"type": "session_left", "sessionId": "child-001"})


@pytest.mark.parametrize("conn", ["sib", "other", "alone"])
def test_only_a_main_of_the_childs_own_root_may_park_it(conn: str) -> None:
    talk = Group().child_comes().joins("other", id="main-0002", ext=1, rootSessionId="else")
    talk.joins("alone", id="main-0003", ext=1).says("sib", {"type": "unregister"})
    talk.joins("sib", "sister", id="child-002", ext=1, rootSessionId=ROOT, parentSessionId=ROOT)
    talk.says(conn, park()).expects(conn, failed("not_your_child"))


@pytest.mark.parametrize("child", ["nobody-1", "main-0001", "main-0002"])
def test_what_was_never_a_child_of_the_group_is_not_parked(child: str) -> None:
    talk = Group().joins("other", id="main-0002", rootSessionId="else")
    talk.says("main", park(child)).expects("main", failed("not_your_child", child))


def test_where_it_was_seen_last_counts() -> None:
    talk = Group().child_comes().hangs_up("kid").child_comes("away", root="else").hangs_up("away")
    talk.says("main", park()).expects("main", failed("not_your_child"))


def test_so_many_children_a_main() -> None:
    talk = Group(parked_children=2)
    for number in (1, 2, 3):
        talk.child_comes(f"kid-{number}", f"child-n0{number}")
        talk.says("main", park(f"child-n0{number}"))
    kinds = [frame["type"] for frame in talk.receives("main")]
    assert kinds == ["parked", "parked", "park_failed"]
    talk.says("main", park("child-n03")).expects("main", failed("limit", "child-n03"))
    # Parking one again is no more of them.
    talk.says("main", park("child-n01")).expects("main", {"type": "parked", "childId": "child-n01"})


def test_the_row_is_seen_in_its_group_only_and_says_what_waits() -> None:
    talk = Group().has_parked().joins("other", "out", id="main-0002", ext=1, rootSessionId="else")
    talk.says_to_child("m1", "m2").receives("main")
    row = talk.row("main")
    assert (row["parked"], row["queuedInput"], row["status"]) == (True, 2, "parked")
    assert "acceptsAsks" not in row
    assert row["rootSessionId"] == row["parentSessionId"] == ROOT
    assert talk.row("other") is None
    # An older client of the group is told by a member it knows.
    plain = talk.row("sib")
    assert plain["status"] == "parked"
    assert "parked" not in plain


def test_a_stranger_cannot_even_tell_that_it_is_there() -> None:
    talk = Group().has_parked().joins("other", id="main-0002", ext=1, rootSessionId="else")
    known = talk.says("other", send("child-001", "m1")).receives("other")
    unknown = talk.says("other", send("child-009", "m1")).receives("other")
    assert known == unknown


def test_a_main_may_describe_its_child() -> None:
    talk = Group().has_parked()
    row = {"name": "the parser", "cwd": "/p", "model": "small", "projectId": "a" * 64}
    talk.says("main", park(row=row, runId="run-7")).receives("main")
    shown = talk.row("main")
    assert {name: shown[name] for name in row} == row
    talk.says("sib", send("the parser", "m1")).expects("sib", queued("m1"))


def test_a_child_of_another_root_gets_another_id_and_nothing_of_the_input() -> None:
    talk = Group().has_parked().says_to_child("m1")
    talk.child_comes("thief", root="else")
    (registered,) = talk.receives("thief")
    assert registered["sessionId"] != "child-001"
    assert talk.row("main")["queuedInput"] == 1


@pytest.mark.parametrize("lineage", [{"rootSessionId": ROOT}, {}])
def test_a_main_gets_nothing_under_a_childs_id(lineage: dict[str, str]) -> None:
    talk = Group().has_parked().says_to_child("m1")
    talk.says(
        "thief", {"type": "register", "session": {"cwd": "/", "model": "m", **lineage}, "requestedId": "child-001"}
    )
    (registered,) = talk.receives("thief")
    assert registered["sessionId"] != "child-001"


def test_an_observer_drains_nothing() -> None:
    talk = Group().has_parked().says_to_child("m1")
    talk.says("eye", {**Group.registration(), "observer": 1})
    assert [frame["type"] for frame in talk.receives("eye")] == ["registered"]
    assert talk.row("main")["queuedInput"] == 1


def test_one_that_is_back_is_an_ordinary_session_again() -> None:
    talk = Group().has_parked().child_comes()
    talk.receives("kid")
    talk.says_to_child("m1").expects("kid", came("m1")).expects("main", {"type": "delivered", "messageId": "m1"})
    talk.receives("sib")
    talk.hangs_up("kid").expects("sib", {"type": "session_left", "sessionId": "child-001"})
    assert talk.kept_items == {}


def test_unparking_ends_it_and_is_a_leaving() -> None:
    talk = Group().has_parked()
    talk.receives("sib")
    talk.says("main", unpark()).expects("main", {"type": "unparked", "childId": "child-001", "dropped": 0})
    talk.expects("sib", {"type": "session_left", "sessionId": "child-001"})
    assert talk.row("main") is None
    talk.says("main", unpark()).expects("main", failed("not_your_child"))


def test_input_is_given_up_only_when_that_is_said() -> None:
    talk = Group().has_parked().says_to_child("m1", conn="main")
    talk.receives("main")
    talk.says("main", unpark()).expects("main", failed("has_input"))
    letter = {"type": "dead_letter", "messageId": "m1", "recipientId": "child-001", "reason": "discarded", "...": True}
    talk.says("main", unpark(discard=True))
    talk.expects("main", LEFT, letter, {"type": "unparked", "childId": "child-001", "dropped": 1})
    assert talk.counts() == {"accepted": 1, "dead_discarded": 1}


def test_what_is_on_its_way_to_it_is_not_given_up() -> None:
    talk = Group().has_parked().says_to_child("m1")
    talk.receives("main")
    talk.connects("kid").holds("kid").says("kid", Group.registration())
    talk.says("main", unpark(discard=True)).expects("main", failed("child_live"))


def test_an_intention_is_taken_back_by_unparking() -> None:
    talk = Group().child_comes()
    talk.says("main", park(), unpark()).receives("main")
    talk.receives("sib")
    talk.hangs_up("kid").expects("sib", {"type": "session_left", "sessionId": "child-001"})


def test_after_seven_days_input_is_dead_and_so_is_the_parking() -> None:
    talk = Group(idle_exit_s=None).has_parked()
    talk.after(DAY_S).says_to_child("m1").receives("main")
    talk.after(6 * DAY_S + 1)
    assert talk.row("main")["queuedInput"] == 1
    talk.after(DAY_S)
    letter = {
        "type": "dead_letter",
        "messageId": "m1",
        "recipientId": "child-001",
        "reason": "expired",
        "atMs": "<number>",
    }
    talk.expects("main", LEFT, letter)
    assert talk.row("main") is None
    assert talk.counts() == {"accepted": 1, "dead_expired": 1}


def test_a_parking_that_cannot_be_stored_is_refused() -> None:
    talk = Group().child_comes()
    talk.spool = "fails"
    talk.says("main", park()).expects("main", failed("store_failed"))
    talk.receives("sib")
    talk.hangs_up("kid").expects("sib", {"type": "session_left", "sessionId": "child-001"})


def test_a_parking_is_answered_once_it_is_stored() -> None:
    talk = Group().child_comes()
    talk.spool = "waits"
    talk.says("main", park()).expects("main")
    talk.stores().expects("main", {"type": "parked", "childId": "child-001"})


def test_a_restart_forgets_neither_child_nor_input() -> None:
    talk = Group().has_parked().says_to_child("m1", "m2", "m3").restarted()
    talk.joins("sib", "sister", id="child-002", rootSessionId=ROOT, parentSessionId=ROOT)
    assert talk.row("sib")["status"] == "parked"
    assert talk.counts() == {"accepted": 3, "parked": 3}
    talk.says("main", {"type": "register", "session": {"cwd": "/", "model": "m", "rootSessionId": ROOT}, "ext": 1})
    talk.expects("main", {"type": "registered", "...": True}, wakes("m1", 1))
    talk.child_comes()
    talk.expects("kid", {"type": "registered", "...": True}, came("m1"), came("m2"), came("m3"))
    assert talk.kept_items == {}
    assert talk.counts() == {"accepted": 3, "drained": 3}


def test_an_idle_broker_stays_for_input_and_leaves_without() -> None:
    talk = Group().has_parked().says_to_child("m1")
    talk.hangs_up("main").hangs_up("sib").after(600.0)
    assert talk.exit is None
    talk.child_comes().hangs_up("kid").after(6.0)
    assert talk.listener.has_stopped


def test_frames_of_parking_are_for_those_who_negotiated_them() -> None:
    talk = Conversation().joins("a", rootSessionId=ROOT)
    talk.says("a", park()).expects_closed("a")
