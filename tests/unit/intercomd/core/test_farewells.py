"""A child that is parked no more: said once no restart can bring anything back, and never before."""

from __future__ import annotations

from intercomd.core.events import Forgotten
from tests.support.group import Group, unpark
from tests.support.sayings import send

UNPARKED = {"type": "unparked", "childId": "child-001", "dropped": 0}


def test_it_is_said_when_it_is_forgotten() -> None:
    talk = Group().has_parked()
    talk.receives("main")
    talk.spool = "waits"
    talk.says("main", unpark()).expects("main")
    assert len(talk.router.parking.farewells) == 1
    talk.stores().expects("main", UNPARKED)
    assert len(talk.router.parking.farewells) == 0


def test_it_waits_for_everything_that_was_kept() -> None:
    talk = Group().has_parked().says_to_child("m1", "m2", conn="main")
    talk.receives("main")
    talk.spool = "waits"
    talk.says("main", unpark(discard=True)).receives("main")
    waiting = list(talk.unforgotten)
    talk.unforgotten.clear()
    assert len(waiting) == 3
    for key in waiting[:-1]:
        talk.happens(Forgotten(key))
        assert "unparked" not in [frame["type"] for frame in talk.receives("main")]
    talk.happens(Forgotten(waiting[-1]))
    assert [frame for frame in talk.receives("main") if frame["type"] == "unparked"] == [{**UNPARKED, "dropped": 2}]


def test_a_disk_that_is_full_is_said() -> None:
    talk = Group().has_parked()
    talk.receives("main")
    talk.spool = "fails"
    talk.says("main", unpark())
    failed = {"type": "park_failed", "childId": "child-001", "code": "store_failed"}
    talk.expects("main", failed)
    # Once it could be forgotten after all nobody waits for that any more.
    talk.spool = "stores"
    talk.happens(Forgotten("any")).expects("main")


def test_a_main_that_left_is_told_nothing() -> None:
    talk = Group().has_parked()
    talk.spool = "waits"
    talk.says("main", unpark()).hangs_up("main")
    talk.stores()
    assert len(talk.router.parking.farewells) == 0


def test_what_was_never_stored_has_not_to_be_forgotten() -> None:
    talk = Group().has_parked()
    talk.receives("main")
    talk.spool = "waits"
    talk.says("main", send("child-001", "m1"), unpark(discard=True)).receives("main")
    talk.spool = "fails"
    failed = [event for event in talk.store_answers(is_stored=False) if not isinstance(event, Forgotten)]
    talk.happens(*failed)
    assert [frame["type"] for frame in talk.receives("main")] == ["delivery_failed"]
    assert len(talk.router.parking.farewells) == 1
