"""The table's tests run with all others; here is shown that a line nobody shows is told."""

from __future__ import annotations

from tests.trials.tables import judge_lines
from tests.trials.verdicts.lines import LINES


def test_a_line_is_shown_only_by_tests_that_passed() -> None:
    table = {"shown": ("a.py::test_x",), "missing": ("a.py::test_y",), "skipped": ("a.py::test_z",)}
    said, violations = judge_lines(table, {"a.py::test_x[1]": "passed", "a.py::test_z": "skipped"})
    assert said[0] == "  shown: 1 passed"
    assert violations == [
        "missing: a.py::test_y did not run",
        "missing: not shown, {}",
        "skipped: not shown, {'skipped': 1}",
    ]


def test_every_line_names_a_test_that_exists() -> None:
    for nodes in LINES.values():
        for node in nodes:
            path, _, name = node.partition("::")
            with open(path, encoding="utf-8") as file:
                assert f"def {name}(" in file.read(), node
