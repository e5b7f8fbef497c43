"""Who may see whom: every lineage against the rule, in every order of joining, renaming and leaving."""

from __future__ import annotations

import gc
import itertools
import weakref

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from intercomd.core.roster import Connection, Roster, Session, may_see
from intercomd.core.rows import RowBytes
from libintercom.targets import name_key
from libintercom.wire.connection import OBSERVING, REGISTERED
from libintercom.wire.messages import Registration

# (root, parent): standalone, two mains of one root, their child, another group's main and child, an orphaned child.
LINEAGES = {
    "alone": (None, None),
    "main1": ("R1", None),
    "twin1": ("R1", None),
    "kid1": ("R1", "R1"),
    "main2": ("R2", None),
    "kid2": ("R2", "R2"),
    "orphan": ("R3", "R3"),
}


def registered(peer_id: str, **members: str) -> Registration:
    root, parent = LINEAGES[peer_id]
    return Registration(
        cwd="/", model="m", **{"name": peer_id, **members}, root_session_id=root, parent_session_id=parent
    )


def session(peer_id: str, **members: str) -> Session:
    row = registered(peer_id, **members)
    return Session(list(LINEAGES).index(peer_id), peer_id, row, RowBytes(peer_id, row, f"epoch-{peer_id}", 0))


def rule(viewer: str, other: str) -> bool:
    """The rule of wire.md 9.2 in its own words: same root, or both mains."""
    (viewer_root, viewer_parent), (other_root, other_parent) = LINEAGES[viewer], LINEAGES[other]
    is_same_root = viewer_root is not None and viewer_root == other_root
    return is_same_root or (viewer_parent is None and other_parent is None)


def sees(roster: Roster, viewer: str) -> list[str]:
    return [found.peer_id for found in roster.visible_to(registered(viewer))]


# Who asks for lists, in turns: with ``ext:1``, with guarded delivery.
_READERS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=2)
_ROW_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "leave", "rename", "hear", "exchange", "stall", "list", "list"]),
        st.sampled_from(["main", "other", "root", "child", "twin"]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=25,
)
_LINEAGES: dict[str, dict[str, str]] = {
    "root": {"root_session_id": "root"},
    "child": {"root_session_id": "root", "parent_session_id": "root"},
    "twin": {"root_session_id": "root", "parent_session_id": "root"},
}


def change_row(roster: Roster, one: Session, step: str, name: str, at_ms: int) -> None:
    if step == "rename":
        roster.change(one, one.registered.replace(name=name))
    elif step == "hear":
        one.row.seen(at_ms)
    elif step == "exchange":
        one.row.exchanged(at_ms)
    elif step == "stall":
        one.row.stall(is_stalled=not one.row.is_stalled)


_HEARD = [(step, "main", "a") for step in ("join", "list", "hear", "list", "rename", "list")]


@given(_ROW_STEPS, _READERS)
@example(_HEARD, [(False, False)])
@example(_HEARD, [(True, False)])
@example(_HEARD, [(False, True)])
@example(_HEARD, [(True, True)])
def test_the_rows_kept_for_lists_are_those_of_everybody_now(
    steps: list[tuple[str, str, str]], readers: list[tuple[bool, bool]]
) -> None:
    roster, present = Roster(), {}
    for at_ms, (step, peer_id, name) in enumerate(steps, 2_000_000_000_000):
        if step == "join" and peer_id not in present:
            present[peer_id] = Session(
                len(present) + at_ms,
                peer_id,
                Registration(cwd="/", model="m", name=name, **_LINEAGES.get(peer_id, {})),
                RowBytes(peer_id, Registration(cwd="/", model="m", name=name), "epoch", at_ms, has_guard=name == "a"),
            )
            roster.join(present[peer_id])
        elif step == "leave" and peer_id in present:
            roster.leave(present.pop(peer_id))
        elif peer_id in present:
            change_row(roster, present[peer_id], step, name, at_ms)
        viewer = Registration(cwd="/", model="m", **_LINEAGES.get(peer_id, {}))
        if step == "list":
            reader = is_extended, is_guarded = readers[at_ms % len(readers)]
            shown = [one.row for one in roster.visible_to(viewer)]
            # Made anew, whatever the rows themselves remember.
            rows = [row._compose(is_extended=is_extended, is_guarded=is_guarded) for row in shown]
            assert roster.rows_for(viewer, reader) == rows


@pytest.mark.parametrize(("viewer", "other"), list(itertools.product(LINEAGES, repeat=2)))
def test_every_pair_of_lineages(viewer: str, other: str) -> None:
    assert may_see(registered(viewer), registered(other)) is rule(viewer, other)
    assert rule(viewer, other) is rule(other, viewer)


def check(roster: Roster, present: dict[str, Session]) -> None:
    """Lists, indexes and circles agree with the rule, for those present and for observers of any lineage."""
    assert roster.sessions == present
    for viewer in LINEAGES:
        visible = {peer_id for peer_id in present if rule(viewer, peer_id)}
        ordered = sorted(visible, key=lambda peer_id: present[peer_id].sort_key)
        assert sees(roster, viewer) == ordered
        circles = roster.circles_for(registered(viewer))
        assert sum(len(circle) for circle in circles) == len(visible)
        assert {peer_id for peer_id in LINEAGES if any(peer_id in circle.index for circle in circles)} == visible
    for peer_id, found in present.items():
        key = name_key(found.registered.name or "")
        circles = roster.circles_for(registered(peer_id))
        assert peer_id in {named for circle in circles for named in circle.index.named(key)}


def test_every_order_of_joining_and_leaving() -> None:
    for order in itertools.permutations(["alone", "main1", "kid1", "kid2", "twin1"]):
        roster, present = Roster(), {}
        for peer_id in order:
            present[peer_id] = session(peer_id)
            roster.join(present[peer_id])
        check(roster, present)
        for peer_id in order[::2]:
            roster.leave(present.pop(peer_id))
            check(roster, present)
        for peer_id in list(present):
            roster.leave(present.pop(peer_id))
        assert (roster._children, roster._group_mains, len(roster.mains)) == ({}, {}, 0)


NAMES = st.sampled_from(["a", "B", "b", " a ", "zz"])
PROJECTS = st.sampled_from([None, "0" * 64, "f" * 64])
CHANGES = st.lists(st.tuples(st.sampled_from(list(LINEAGES)), NAMES, PROJECTS), max_size=8)


@given(CHANGES)
def test_renaming_and_moving_keeps_every_list_in_order(changes: list[tuple[str, str, str | None]]) -> None:
    roster, present = Roster(), {}
    for peer_id in LINEAGES:
        present[peer_id] = session(peer_id)
        roster.join(present[peer_id])
    for peer_id, name, project_id in changes:
        project = {} if project_id is None else {"project_id": project_id}
        roster.change(present[peer_id], registered(peer_id, name=name, **project))
    check(roster, present)


def test_lists_are_in_order_of_project_name_and_id() -> None:
    roster = Roster()
    rows = [
        ("main1", {"name": "b", "project_id": "f" * 64}),
        ("main2", {"name": "A"}),
        ("alone", {"name": "a", "project_id": "f" * 64}),
        ("twin1", {"name": "z", "project_id": "0" * 64}),
        ("kid1", {"name": "B", "project_id": "f" * 64}),
    ]
    for peer_id, members in rows:
        roster.join(session(peer_id, **members))
    assert sees(roster, "main1") == ["twin1", "alone", "kid1", "main1", "main2"]
    assert sees(roster, "alone") == ["twin1", "alone", "main1", "main2"]


def test_a_change_that_moves_nothing_leaves_the_lists_alone() -> None:
    roster, one = Roster(), session("main1")
    roster.join(one)
    roster.change(one, registered("main1", status="thinking"))
    assert one.registered.status == "thinking"
    assert b"thinking" in one.row.render(is_extended=False)
    check(roster, {"main1": one})


@pytest.mark.parametrize(
    ("status", "is_idle"),
    [("idle", True), ("idle · x", True), ("idle ", True), ("idler", False), ("Idle", False), ("thinking", False)],
)
def test_who_is_idle(status: str, is_idle: bool) -> None:
    assert session("alone", status=status).is_idle is is_idle


def test_a_session_without_a_status_is_not_idle() -> None:
    assert not session("alone").is_idle


def test_what_a_session_says_of_itself() -> None:
    kid, alone = session("kid1"), session("alone")
    assert (kid.root, kid.lineage, kid.is_child) == ("R1", ("R1", "R1"), True)
    assert (alone.root, alone.lineage, alone.is_child) == (None, (None, None), False)
    assert session("main1").is_child is False


def test_a_connection_knows_whose_it_is() -> None:
    roster = Roster()
    assert roster.session_of(1) is None
    roster.connections[1] = Connection(1)
    assert roster.session_of(1) is None
    roster.connections[1].session = session("alone")
    assert roster.session_of(1) is roster.connections[1].session
    assert Connection(1, REGISTERED).is_registered
    assert Connection(1, OBSERVING).is_observer
    assert not Connection(1).is_registered
    assert not Connection(1).is_observer


@pytest.mark.parametrize("peer_id", LINEAGES)
def test_who_left_is_freed_at_once(peer_id: str) -> None:
    """Not when cycles are looked for: thousands may leave between two of those searches."""
    roster, leaving = Roster(), session(peer_id)
    roster.join(leaving)
    for circle in roster.circles_for(leaving.registered):
        circle.rows((True, False))
    leaving.row.exchanged(1)
    roster.leave(leaving)
    gone = weakref.ref(leaving.registered)
    gc.disable()
    try:
        del leaving, circle
        assert gone() is None
    finally:
        gc.enable()
