"""Every rule is shown by something, and the table that says by what is fresh."""

from __future__ import annotations

import pytest

from tests.conformance import coverage
from tests.conformance.catalogue import Vector, rules, vectors

# The sections whose rules have to be shown, and how many there are at least of each.
SECTIONS = {"1": 15, "2": 3, "2.1": 15, "2.2": 13, "3": 20, "4": 16, "5.4": 12, "8.1": 3, "8.2": 2, "8.3": 2, "8.4": 2}
SECTIONS |= {
    "8.5": 1,
    "8.6": 3,
    "8.7": 1,
    "9.1": 8,
    "9.2": 11,
    "9.3": 16,
    "9.4": 18,
    "9.5": 18,
    "9.6": 15,
    "9.7": 6,
    "9.8": 6,
    "9.9": 4,
    "13": 22,
    "14.6": 11,
}
SECTIONS |= {f"14.{number}": 1 for number in range(1, 16)}


def test_every_rule_is_shown():
    assert coverage.uncovered() == []


def test_every_mark_names_a_rule():
    assert coverage.unknown() == []


def test_table_is_fresh():
    assert coverage.TABLE.read_text("utf-8") == coverage.table(), "run python -m tests.conformance.coverage"


@pytest.mark.parametrize("section", SECTIONS)
def test_section_has_its_rules(section: str):
    assert sum(rule.section == section for rule in rules().values()) >= SECTIONS[section]


def test_vectors_have_distinct_names():
    labels = [vector.label for vector in vectors()]
    assert len(set(labels)) == len(labels)


def test_a_rule_without_vector_is_found(monkeypatch: pytest.MonkeyPatch):
    kept = tuple(vector for vector in vectors() if "13-self" not in vector.rules)
    monkeypatch.setattr(coverage, "vectors", lambda: kept)
    assert "13-self" in coverage.uncovered()


def test_a_mark_of_an_unknown_rule_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(coverage, "marks", lambda: iter([("test_x.py::test_y", ["2-lable"])]))
    assert coverage.unknown() == ["2-lable"]


def test_vector_is_kept_apart_from_its_file():
    assert all(isinstance(vector, Vector) and vector.file and vector.name for vector in vectors())
