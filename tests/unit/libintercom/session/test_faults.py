"""Fault points: each that code reaches is listed, each that is listed is reached, and normal use pays nothing."""

from __future__ import annotations

import ast

import pytest

from libintercom.session import faults
from tests.architecture.sources import sources


def reached_names() -> set[str]:
    """The literal of every ``reach("…")`` in the library."""
    calls = (node for source in sources("libintercom") for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    named = (call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) == "reach")
    return {call.args[0].value for call in named if isinstance(call.args[0], ast.Constant)}


def test_the_list_names_exactly_the_points_in_the_code() -> None:
    assert reached_names() == set(faults.POINTS)
    assert len(set(faults.POINTS)) == len(faults.POINTS)


def test_without_a_hook_nothing_happens_and_any_name_will_do() -> None:
    faults.reach("no such point")


def test_a_hook_hears_each_point_until_it_is_taken_away() -> None:
    heard: list[str] = []
    faults.set_hook(heard.append)
    faults.reach("journal.opened")
    faults.set_hook(None)
    faults.reach("journal.opened")
    assert heard == ["journal.opened"]


def test_a_point_that_is_not_listed_is_an_error_under_a_hook() -> None:
    faults.set_hook(lambda _name: None)
    try:
        with pytest.raises(faults.UnknownPoint, match="add it to POINTS"):
            faults.reach("no such point")
    finally:
        faults.set_hook(None)
