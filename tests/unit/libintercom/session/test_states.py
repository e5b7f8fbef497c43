"""The context of a session: three states and the moves between them."""

from __future__ import annotations

import pytest

from libintercom.session.states import Inactive, Invalidated, Live, activate, clear, invalidate, is_current

LIVE = Live(session="s1", incarnation="g1")


def test_a_context_lives_is_invalidated_and_is_cleared():
    assert activate(Inactive(), "s1", "g1") == LIVE
    assert invalidate(LIVE) == Invalidated(session="s1")
    assert clear(Invalidated(session="s1")) == Inactive()


def test_cleaning_up_keeps_the_id_and_a_new_context_may_begin_meanwhile():
    assert activate(invalidate(LIVE), "s2", "g2") == Live(session="s2", incarnation="g2")


def test_a_move_that_does_not_apply_changes_nothing():
    assert invalidate(Inactive()) == Inactive()
    assert invalidate(Invalidated(session="s1")) == Invalidated(session="s1")
    assert clear(LIVE) == LIVE


def test_what_lives_is_not_replaced_silently():
    with pytest.raises(ValueError, match="s1 is still live"):
        activate(LIVE, "s2", "g2")


@pytest.mark.parametrize(("session", "incarnation"), [("", "g1"), ("s1", "")])
def test_a_live_context_has_both_names(session, incarnation):
    with pytest.raises(ValueError, match="needs a session and an incarnation"):
        activate(Inactive(), session, incarnation)


@pytest.mark.parametrize(
    ("context", "generation", "expected"),
    [(LIVE, "g1", True), (LIVE, "g2", False), (Invalidated(session="s1"), "g1", False), (Inactive(), "", False)],
)
def test_only_the_live_generation_may_act(context, generation, expected):
    assert is_current(context, generation) is expected
