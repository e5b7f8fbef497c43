"""Who a session sees and how it is arranged: blocks, filters, counts, states, the JSON that others rely on."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.outcomes import Listing
from libintercom.profile import Profile
from libintercom.roster import Filters, build_roster, state_of
from libintercom.wire.answers import parse_rows
from tests.support.desk import row

P1, P2 = "1" * 64, "2" * 64
MAIN = Profile(cwd="/work", model="m", root_session_id="root-a")
CHILD = Profile(cwd="/work", model="m", root_session_id="root-a", parent_session_id="root-a")
LEGACY = Profile(cwd="/work", model="m")
# The main, two of its children, and others.
ME = row("pi-aaaa0001", "lead", rootSessionId="root-a", projectId=P1)
KID_1 = row("pi-kid00001", "Tester", rootSessionId="root-a", parentSessionId="root-a", acceptsAsks=True)
KID_2 = row(
    "pi-kid00002", "builder", rootSessionId="root-a", parentSessionId="root-a", status="tool:bash", projectId=P1
)
OTHER = row("pi-bbbb0001", "Reviewer", rootSessionId="root-b", projectId=P2)
SAME = row("pi-cccc0001", "docs", rootSessionId="root-c", projectId=P1)
OLD = row("pi-dddd0001", "Archive")
FOREIGN_KID = row("pi-eeee0001", "hidden", rootSessionId="root-b", parentSessionId="root-b")
ALL = [KID_2, OLD, OTHER, ME, SAME, KID_1]


def roster(
    rows: list[dict[str, Any]], viewer: Profile = MAIN, own: str = "pi-aaaa0001", **filters: Any
) -> dict[str, Any]:
    listing = Listing(rows=tuple(parse_rows(rows)), omitted=0)
    return build_roster(listing, viewer, own, Filters(**filters)).dump()


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in rows]


def test_main_sees_every_other_main_sorted_by_project_then_name() -> None:
    view = roster(ALL)
    assert view["self"]["name"] == "lead"
    assert names(view["mains"]) == ["docs", "Reviewer", "Archive"]
    assert (view["mainsTotal"], view["omitted"]) == (3, 0)


def test_children_are_one_count_by_state() -> None:
    assert roster(ALL)["children"] == {"total": 2, "matching": 2, "byState": {"idle": 1, "busy": 1, "unknown": 0}}


def test_children_have_rows_when_asked() -> None:
    view = roster(ALL, with_children=True)["children"]
    assert names(view["rows"]) == ["builder", "Tester"]


def test_main_without_children_has_no_second_block() -> None:
    assert roster([ME, OTHER])["children"] is None


def test_child_sees_its_main_and_the_other_children() -> None:
    view = roster([ME, KID_1, KID_2], CHILD, "pi-kid00001")
    assert view["self"]["name"] == "Tester"
    assert names(view["mains"]) == ["lead"]
    assert view["children"]["total"] == 1


def test_child_whose_main_is_away_sees_its_siblings() -> None:
    view = roster([KID_1, KID_2], CHILD, "pi-kid00001")
    assert (view["mains"], view["mainsTotal"], view["children"]["total"]) == ([], 0, 1)


def test_what_an_old_broker_shows_too_much_is_left_out() -> None:
    assert names(roster([*ALL, FOREIGN_KID])["mains"]) == ["docs", "Reviewer", "Archive"]
    assert roster([ME, FOREIGN_KID])["children"] is None
    seen_by_child = roster([*ALL, FOREIGN_KID], CHILD, "pi-kid00001")
    assert names(seen_by_child["mains"]) == ["lead"]
    assert seen_by_child["children"]["total"] == 1


def test_standalone_main_sees_mains() -> None:
    view = roster([OLD, OTHER, FOREIGN_KID], LEGACY, "pi-dddd0001")
    assert names(view["mains"]) == ["Reviewer"]
    assert view["children"] is None


def test_observer_is_no_session_itself() -> None:
    view = roster([OTHER, SAME], MAIN, "pi-observer")
    assert view["self"] is None
    assert view["mainsTotal"] == 2


@pytest.mark.parametrize(
    ("to", "mains", "children"),
    [
        ("REV", ["Reviewer"], []),
        ("pi-", ["docs", "Reviewer", "Archive"], ["builder", "Tester"]),
        ("KID00002", [], ["builder"]),
        ("nobody", [], []),
    ],
)
def test_text_filters_both_blocks_by_name_or_id_and_totals_stay(to: str, mains: list[str], children: list[str]) -> None:
    view = roster(ALL, to=to)
    assert names(view["mains"]) == mains
    assert view["mainsTotal"] == 3
    assert names(view["children"]["rows"]) == children
    assert (view["children"]["total"], view["children"]["matching"]) == (2, len(children))
    assert view["children"]["byState"] == {"idle": 1, "busy": 1, "unknown": 0}
    # The caller's own row is no match or miss.
    assert view["self"] is not None


def test_project_filters_both_blocks() -> None:
    view = roster(ALL, project_id=P1)
    assert names(view["mains"]) == ["docs"]
    assert (view["mainsTotal"], view["children"]["matching"]) == (3, 1)
    assert "rows" not in view["children"]


def test_row_has_every_member_and_unknown_ones_are_null() -> None:
    told = {
        "status": "idle",
        "acceptsAsks": True,
        "pendingAsks": 2,
        "lastSeen": 1700000000123.7,
        "lastIntercomActivity": 5,
        "projectId": P1,
    }
    full, bare = roster([row("pi-full0001", "full", **told), row("pi-bare0001")])["mains"]
    assert full == {
        "id": "pi-full0001",
        "name": "full",
        "target": "pi-full0",
        "cwd": "/work",
        "model": "model-a",
        "status": "idle",
        "state": "idle",
        "acceptsAsks": True,
        "pendingAsks": 2,
        "lastSeenMs": 1700000000123,
        "lastIntercomActivityMs": 5,
        "projectId": P1,
    }
    unknown = ("name", "status", "acceptsAsks", "pendingAsks", "lastSeenMs", "lastIntercomActivityMs", "projectId")
    assert [bare[member] for member in unknown] == [None] * 7
    assert bare["state"] == "unknown"


def test_no_activity_is_told_as_none_and_a_stalled_session_as_such() -> None:
    [one] = roster([row("pi-bare0001", lastIntercomActivity=0, stalled=True)])["mains"]
    assert one["lastIntercomActivityMs"] is None
    assert one["stalled"] is True


def test_targets_grow_until_they_distinguish() -> None:
    view = roster([row("pi-aaaabbbb1", "one"), row("pi-aaaabbbb2", "two"), row("pi-cccc", "pi-cccc")])
    assert [one["target"] for one in view["mains"]] == ["pi-aaaabbbb1", "pi-cccc", "pi-aaaabbbb2"]


@pytest.mark.parametrize(
    ("accepts", "status", "state"),
    [
        (True, "thinking", "idle"),
        (False, "idle", "busy"),
        (None, "idle", "idle"),
        (None, "idle · waiting", "idle"),
        (None, "idler", "busy"),
        (None, "thinking", "busy"),
        (None, "tool:bash", "busy"),
        (None, None, "unknown"),
    ],
)
def test_state_follows_what_a_session_says_about_asks_then_its_status(
    accepts: bool | None, status: str | None, state: str
) -> None:
    members = {"acceptsAsks": accepts, "status": status}
    told = {name: value for name, value in members.items() if value is not None}
    assert state_of(parse_rows([row("pi-a", **told)])[0]) == state


def test_names_of_more_than_one_session_are_known_to_be_shared() -> None:
    listing = Listing(rows=tuple(parse_rows([ME, row("pi-x", " LEAD"), OTHER, row("pi-y"), row("pi-z")])), omitted=3)
    view = build_roster(listing, MAIN, "pi-aaaa0001")
    assert view.shared_names == {"lead"}
    assert view.omitted == 3
    assert view.sessions_total == 5
